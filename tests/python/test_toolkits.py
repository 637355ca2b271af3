# SPDX-License-Identifier: Apache-2.0
"""Several CUDA toolkits under one kernixd, with real tools: they never mix, in whatever order they are used."""

import collections
import os
import re
import subprocess
import sys
import time

import kernels
import pytest
from toolkits import Distribution, Toolkit

from kernix import _environment

LOAD = """
import sys, kernix
module = kernix.load_cuda_file(sys.argv[1], compute_capability="sm_90", auto_register=False)
print(module.key, "hit" if module.cache_hit else "built", *module.function_names)
"""
Loaded = collections.namedtuple("Loaded", "key how functions")


class Loads:
    """Loads of a kernel in fresh processes, by one daemon."""

    def __init__(self, place, folder, name):
        self.place = place
        self.source = folder / "vector_add.cu"
        self.name = name
        self.variables = {}  # of the process that starts the daemon
        self.edit("")

    def edit(self, text):
        """Change the source."""
        self.source.write_text(f"{kernels.VECTOR_ADD}// {self.name}\n{text}\n")

    def start(self, toolkit):
        """Start a process that loads the kernel and opens what was built."""
        variables = {"KERNIXD": _environment.program("kernixd")} | self.variables | toolkit.variables
        return subprocess.Popen(
            [sys.executable, "-c", LOAD, str(self.source)],
            env=self.place.environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @staticmethod
    def finish(process):
        """Return what it has loaded."""
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        key, how, *functions = output.split()
        return Loaded(key, how, functions)

    def load(self, toolkit):
        """Load the kernel, and return what was loaded."""
        return self.finish(self.start(toolkit))

    def counters(self):
        """Return the daemon's counters, by name and labels."""
        text = self.place.kernixctl("metrics").stdout
        samples = re.findall(r"^(kernix_\w+(?:\{[^{}]*\})?) ([0-9.e+]+)$", text, re.MULTILINE)
        return {name: float(value) for name, value in samples}

    def steps(self):
        """Return how often steps that can serve other builds were run, and how often they were not."""
        counters = self.counters()
        ways = ("reused", "upstream", "run")
        return {how: counters[f'kernix_reusable_steps_total{{how="{how}"}}'] for how in ways}

    def device_steps(self):
        """Return how often each program for device code has run."""
        counters = self.counters()
        return [counters.get(f'kernix_step_seconds_count{{step="{step}"}}', 0) for step in ("cicc", "ptxas")]

    def await_lessons(self):
        """Return when the daemon has learned from all builds."""
        deadline = time.monotonic() + 60
        while self.counters()["kernix_lessons"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture(name="loads")
def loads_fixture(own_place, tmp_path, request):
    """Loads by a daemon of the test's own."""
    return Loads(own_place, tmp_path, request.node.name)


@pytest.mark.parametrize("program", ["ptxas", "cicc"])
def test_two_toolkits_side_by_side_never_mix(loads, tmp_path, program):
    one, other = Toolkit(tmp_path / "one"), Toolkit(tmp_path / "other")
    other.copy(program, b"\0of another release")

    # In turn.
    of_one = loads.load(one)
    run = loads.steps()["run"]
    assert run >= 4  # cudafe++, cicc, ptxas, the host compiler
    of_other = loads.load(other)
    assert of_one.key != of_other.key
    assert {of_one.how, of_other.how} == {"built"}
    assert of_one.functions == of_other.functions == ["vector_add"]
    assert loads.steps() == {"run": 2 * run, "reused": 0, "upstream": 0}
    assert loads.device_steps() == [2, 2]
    assert loads.load(one) == of_one._replace(how="hit")
    assert loads.load(other) == of_other._replace(how="hit")

    # What one has made serves itself, as soon as nothing more is learned, and nobody else.
    for toolkit in (one, other):
        assert comment_costs_nothing(loads, toolkit)
    assert loads.device_steps()[0] % 2 == 0

    # At once, with code that nobody has built: a step of one does not serve the other.
    loads.edit("__global__ void one_more(float* p) { p[threadIdx.x] *= 3; }")
    before, device_before = loads.steps(), loads.device_steps()
    built = [loads.finish(process) for process in [loads.start(one), loads.start(other)]]
    after = loads.steps()
    assert built[0].key != built[1].key
    assert after["reused"] == before["reused"]
    assert loads.device_steps() == [count + 2 for count in device_before]


def comment_costs_nothing(loads, toolkit):
    """Edit a comment until such a build runs no step. Return whether that comes to pass."""
    for number in range(6):
        loads.await_lessons()
        before = loads.steps()
        loads.edit(f"// comment {number} for {toolkit.root.name}")
        assert loads.load(toolkit).how == "built"
        if loads.steps()["run"] == before["run"]:
            return loads.steps()["reused"] > before["reused"]
    return False


def test_a_toolkit_that_is_replaced_between_two_steps(loads, tmp_path):
    """When ptxas begins, it is another one than cudafe++ and cicc belong to."""
    toolkit, as_replaced = Toolkit(tmp_path / "toolkit"), Toolkit(tmp_path / "as_replaced")
    new = tmp_path / "new"
    toolkit.copy("ptxas", b"\0of another release", to=new)
    as_replaced.copy("ptxas", b"\0of another release")
    moves = f"[ ! -e {new} ] || mv {new} {toolkit.program('ptxas')}"
    for each in (toolkit, as_replaced):
        each.script("cicc", f'{moves}; exec {each.original("cicc")} "$@"')

    loads.variables = {"KERNIX_SANDBOX": "none"}  # else a tool moves no files of the toolkit
    loaded = loads.load(toolkit)  # the client asks once more
    assert not new.exists()
    stats = loads.place.stats()
    assert (stats["failures"], stats["builds"], stats["entries"]) == (1, 1, 1)
    steps = loads.steps()
    assert steps["reused"] == 0
    assert loads.device_steps()[0] == 2  # what the first one made is not served
    loads.await_lessons()
    assert list((loads.place.store / "private" / "tmp").glob("action-*")) == []
    assert loads.load(as_replaced) == loaded._replace(how="hit")


def test_a_distributions_toolkit_runs_in_phases(loads, tmp_path):
    toolkit = Distribution(tmp_path / "distribution")
    assert loads.load(toolkit).functions == ["vector_add"]
    compiles = {
        name: value for name, value in loads.counters().items() if name.startswith("kernix_nvcc_compiles_total")
    }
    assert {name for name, value in compiles.items() if value} == {'kernix_nvcc_compiles_total{how="phases"}'}


def wheel_of(folder, package, *programs):
    """Make what a wheel of NVIDIA's has, for kernixctl's search."""
    for part in ("bin", "include", "lib"):
        (folder / "nvidia" / package / part).mkdir(parents=True)
    for program in programs:
        (folder / "nvidia" / package / "bin" / program).write_text("#!/bin/sh\n")
        (folder / "nvidia" / package / "bin" / program).chmod(0o755)
    return folder


@pytest.mark.skipif(os.geteuid() != 0, reason="files of two users")
def test_setup_registers_no_folder_that_a_member_can_change(tmp_path):
    ours = wheel_of(tmp_path / "ours", "cuda_nvcc", "nvcc")
    theirs = wheel_of(tmp_path / "theirs", "cublas")

    def setup():
        command = [_environment.program("kernixctl"), "setup", "--dry-run"]
        command += [f"--site-packages={folder}" for folder in (ours, theirs)]
        environment = {"PATH": "/usr/bin:/bin", "BRAINEVENT_NVCC_PREFER": "pip"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert f'"{theirs}/nvidia/cublas/include"' in setup()
    assert "To undo it:\n  systemctl disable --now" in setup()
    for part in ("include", "lib"):
        folder = theirs / "nvidia" / "cublas" / part
        os.chown(folder, 65534, 65534)
        assert f"# not registered: {folder} (" in setup()
        assert f'"{folder}"' not in setup()
        os.chown(folder, 0, 0)
