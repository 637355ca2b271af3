# SPDX-License-Identifier: Apache-2.0
"""What a program has loaded is built in the background after an upgrade of its compiler."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import conftest
import kernels
import pytest

SCRIPTS = pathlib.Path(__file__).parent / "scripts"
COUNT = 4
NAMES = [f"k{number}" for number in range(COUNT)]
BUILT, CACHED = ["built"] * COUNT, ["cache"] * COUNT


class Machine(conftest.Place):
    """A place with a program, and with a compiler that can be upgraded."""

    def __init__(self, folder):
        super().__init__()
        self.program = folder / "program.py"
        shutil.copy(SCRIPTS / "load_one_by_one.py", self.program)
        self._compiler = folder / "c++"
        self._versions = 0
        self.upgrade()

    @property
    def variables(self):
        return super().variables | {"KERNIX_HISTORY": "1", "CXX": str(self._compiler)}

    @property
    def histories(self):
        """The folders of programs."""
        folder = self.store / "history"
        return list(folder.iterdir()) if folder.exists() else []

    def loads(self, program):
        """Return how many loads a program's history has."""
        folder = self.store / "history" / hashlib.sha256(os.fsencode(program)).hexdigest()
        return len(list(folder.glob("*.load")))

    def upgrade(self):
        """Make the compiler another one that does the same."""
        self._versions += 1
        new = self._compiler.with_suffix(".new")
        new.write_text(f'#!/bin/sh\n# version {self._versions}\nexec {shutil.which("g++")} "$@"\n')
        new.chmod(0o755)
        new.replace(self._compiler)

    def start(self, *arguments, **variables):
        """Start the program."""
        command = [sys.executable, self.program, *map(str, arguments or [COUNT])]
        return subprocess.Popen(
            command, env=self.environment | variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *arguments, **variables):
        """Run the program to its end, and return the origins of its loads."""
        return self.origins(self.start(*arguments, **variables))

    @staticmethod
    def origins(process):
        """Return what a program prints. It gives no warning."""
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        assert err == ""
        return json.loads(out)

    def python(self, *arguments, **options):
        """Run Python without the program."""
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, **options)
        assert done.returncode == 0, done.stderr
        return done

    def warmup(self, *arguments):
        """Run ``kernixctl warmup --json``, and return what it prints."""
        return [json.loads(line) for line in self.kernixctl("warmup", *arguments, "--json").stdout.splitlines()]


@pytest.fixture(name="machine")
def machine_fixture(request, tmp_path):
    """One of a test alone."""
    machine = Machine(tmp_path)
    before = request.session.testsfailed
    yield machine
    machine.close(keep=request.session.testsfailed > before)


def test_after_an_upgrade_one_load_has_the_others_built(machine):
    assert machine.run() == BUILT
    machine.upgrade()
    assert machine.run(COUNT, 2 * COUNT) == ["built", *CACHED[1:]]
    assert machine.run() == CACHED
    assert machine.stats()["builds"] == 2 * COUNT


@pytest.mark.parametrize("how", ["switched off", "frozen"])
def test_nothing_is_built_that_nobody_wants(machine, how):
    assert machine.run() == BUILT
    machine.upgrade()
    if how == "frozen":
        assert machine.run(COUNT, 0, "count") == BUILT
    else:
        assert machine.run(KERNIX_HISTORY="0") == BUILT


def test_nothing_is_noted_if_it_is_switched_off(machine):
    assert machine.run(KERNIX_HISTORY="0") == BUILT
    assert machine.histories == []


def test_a_process_that_may_not_compile_warms_nothing_up(machine):
    assert machine.run() == BUILT
    machine.upgrade()
    refused = machine.start(KERNIX_POLICY="cached")
    assert "KernelNotCachedError" in refused.communicate(timeout=240)[1]
    assert machine.stats()["builds"] == COUNT
    assert machine.run(COUNT, 0, "count") == BUILT, "nothing was built meanwhile"


def test_kernixctl_warms_up_at_once(machine):
    assert machine.run() == BUILT
    assert machine.loads(machine.program) == COUNT
    machine.upgrade()
    done = machine.warmup(str(machine.program))
    assert sorted(load["name"] for load in done) == NAMES
    assert not any(load["cache_hit"] for load in done)
    assert machine.run() == CACHED

    there = machine.kernixctl("warmup", str(machine.program))
    assert f"{COUNT} modules: {COUNT} from the cache, in " in there.stderr
    unknown = machine.kernixctl("warmup", "/another.py", check=False)
    assert unknown.returncode == 1
    assert "no run of /another.py" in unknown.stderr
    assert machine.kernixctl("warmup", check=False).returncode == 2


def test_an_edited_kernel_replaces_the_older_one(machine):
    assert machine.run() == BUILT
    edited = "kernels.constant(number + (number == 1) * 70)"
    machine.program.write_text(machine.program.read_text().replace("kernels.constant(number)", edited))
    assert machine.run() == ["cache", "built", *CACHED[2:]]
    assert machine.loads(machine.program) == COUNT
    machine.upgrade()
    machine.warmup(str(machine.program))
    assert machine.run() == CACHED


def test_processes_of_a_program_build_each_kernel_once(machine):
    assert machine.run() == BUILT
    machine.upgrade()
    for process in [machine.start() for _ in range(3)]:
        assert len(machine.origins(process)) == COUNT
    assert machine.run() == CACHED
    assert machine.stats()["builds"] == 2 * COUNT
    assert machine.loads(machine.program) == COUNT


def test_a_damaged_history_is_repaired_by_the_next_run(machine):
    assert machine.run() == BUILT
    (folder,) = machine.histories
    texts, loads = sorted(folder.glob("*.text")), sorted(folder.glob("*.load"))
    texts[0].write_bytes(b"")
    loads[0].write_bytes(loads[0].read_bytes()[:20])
    assert COUNT - 2 <= len(machine.warmup(str(machine.program))) < COUNT
    assert machine.run() == CACHED
    assert sorted(load["name"] for load in machine.warmup(str(machine.program))) == NAMES


def test_in_a_folder_that_others_may_change_there_is_no_history(machine):
    machine.store.mkdir(mode=0o700)
    (machine.store / "history").mkdir()
    (machine.store / "history").chmod(0o777)
    assert machine.run() == BUILT
    assert machine.histories == []


def test_a_history_that_cannot_be_written_is_a_warning(machine):
    assert machine.run(1) == ["built"]
    (folder,) = machine.histories
    shutil.rmtree(folder)
    folder.write_text("")
    process = machine.start()
    out, err = process.communicate(timeout=240)
    assert json.loads(out) == ["cache", *BUILT[1:]]
    assert err.count("KERNIX_WARNINGS=no-history-not-kept") == 1
    assert machine.run(KERNIX_WARNINGS="no-history-not-kept") == CACHED


LOAD = f"import kernix; kernix.load_cpp_inline('k', {kernels.constant(5)!r}, auto_register=False)\n"


def test_what_is_no_program_has_no_history(machine, tmp_path):
    (tmp_path / "kernel.cpp").write_text(kernels.ADD_ONE)
    machine.python("-c", LOAD)
    machine.python("-", input=LOAD)
    machine.python("-m", "IPython", "-c", LOAD, cwd=tmp_path)
    machine.kernixctl("compile", str(tmp_path / "kernel.cpp"))
    assert machine.stats()["builds"] == 2
    assert machine.histories == []


def test_a_module_is_a_program_by_its_file(machine, tmp_path):
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "__main__.py").write_text(LOAD)
    machine.python("-m", "tool", cwd=tmp_path)
    assert machine.loads(os.path.realpath(tmp_path / "tool" / "__main__.py")) == 1


def test_variants_of_a_tuning_are_no_history(machine, tmp_path):
    source = "// @BE f\nvoid f(BE::Out<float> y) { y[0] = V; }"
    (tmp_path / "tune.py").write_text(
        "import kernix, numpy\n"
        f"kernix.autotune({source!r}, {{'V': [1, 2, 3]}}, [], out=[numpy.empty(1, numpy.float32)])\n"
    )
    machine.python(tmp_path / "tune.py")
    assert machine.histories == []
    machine.python(tmp_path / "tune.py")
    assert machine.stats()["builds"] == 3
    assert machine.loads(tmp_path / "tune.py") == 1, "the second run has loaded the winner alone"
