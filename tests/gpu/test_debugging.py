# SPDX-License-Identifier: Apache-2.0
"""docs/debugging.md: the tools that it shows say about its CUDA program what it promises."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "debugging.md"


def tool(name):
    """Return the path of a tool of the CUDA toolkit; without it, skip the test."""
    folder = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin"
    found = shutil.which(name) or shutil.which(name, path=folder)
    if found is None:
        pytest.skip(f"this machine has no {name}, which comes with the CUDA toolkit")
    return found


@pytest.fixture(name="program")
def program_fixture(tmp_path, private_daemon):
    """Write the page's CUDA program to fill.py, and return its text."""
    found = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (text,) = [text for text in found if "// @BE fill" in text]
    (tmp_path / "fill.py").write_text(text)
    return text


def run(command, folder, store, **variables):
    """Run a command on fill.py, and return all that it prints."""
    environment = os.environ | {"KERNIX_CACHE_DIR": store} | variables
    done = subprocess.run(
        [*command, sys.executable, "fill.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=150
    )
    return done.stdout + done.stderr


def line_of(program, text):
    """Return the number of the line of the kernel that contains a text."""
    kernel = program[program.index('r"""') :]
    return kernel[: kernel.index(text)].count("\n") + 1


def test_compute_sanitizer_names_the_line_of_the_write(program, tmp_path, private_daemon):
    shown = run([tool("compute-sanitizer")], tmp_path, private_daemon, XLA_PYTHON_CLIENT_ALLOCATOR="platform")
    assert "Invalid __global__ write of size 4 bytes" in shown, shown
    assert re.search(rf"fill_kernel\(float ?\*, int\).*\bfill:{line_of(program, 'y[i] = 1')}\b", shown), shown


def test_cuda_gdb_stops_in_the_kernel(program, tmp_path, private_daemon):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    (ending,) = re.findall(r"^```py\n(module = .*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    start = program[: program.index("module = ")].replace("import jax\nimport jax.numpy as jnp\n", "import torch\n")
    (tmp_path / "fill.py").write_text(start + ending)
    assert "1048576" in run([], tmp_path, private_daemon)  # compiles it
    commands = ["set breakpoint pending on", "break fill_kernel", "run", "next", "print i"]
    each = [word for command in commands for word in ("-ex", command)]
    shown = run([tool("cuda-gdb"), "-batch", *each, "--args"], tmp_path, private_daemon)
    place = rf"fill_kernel<<<\(4097,1,1\),\(256,1,1\)>>> .*\bfill:{line_of(program, 'int i =')}\b"
    assert re.search(rf"hit Breakpoint.*{place}", shown), shown
    assert re.search(r"^\$1 = 0$", shown, re.MULTILINE), shown


def test_nsight_compute_measures_the_kernel(program, tmp_path, private_daemon):
    (tmp_path / "fill.py").write_text(
        program.replace("debug=True", 'extra_cuda_cflags=["-lineinfo"]').replace("i <= n", "i < n")
    )
    command = [tool("ncu"), "--kernel-name", "fill_kernel", "--launch-count", "1", "--section", "LaunchStats"]
    shown = run(command, tmp_path, private_daemon)
    if "ERR_NVGPUCTRPERM" in shown:
        pytest.skip("this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)")
    assert re.search(r"fill_kernel.*Registers Per Thread", shown, re.DOTALL), shown
