# SPDX-License-Identifier: Apache-2.0
"""docs/debugging.md: what it shows of a sanitizer happens to the page's own program."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import kernix

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "debugging.md"


def program(containing):
    """Return the page's Python program that contains a text."""
    found = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (text,) = [text for text in found if containing in text]
    return text


def library(name):
    """Return the path of a library that belongs to g++."""
    command = ["g++", f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_address_sanitizer_names_the_line_of_the_kernel(tmp_path):
    """The page's C++ program, run as the page says, ends with a report of the line that reads past the end."""
    if "-fsanitize" in os.environ.get("CXXFLAGS", ""):
        pytest.skip("Python's own libraries are sanitized")
    source = program("// @BE shift")
    (tmp_path / "shift.py").write_text(source)
    preloaded = " ".join(library(name) for name in ("libasan.so", "libstdc++.so"))
    environment = os.environ | {"LD_PRELOAD": preloaded, "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0"}
    done = subprocess.run([sys.executable, "shift.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    kernel = source[source.index('r"""') :]
    line = kernel[: kernel.index("from[i + 1]")].count("\n") + 1
    assert "heap-buffer-overflow" in done.stderr
    assert re.search(rf"#0 .* in shift\(BE::Tensor, BE::Tensor\) .*shift:{line}\b", done.stderr), done.stderr
    assert "0 bytes to the right of 4000-byte region" in done.stderr or "0 bytes after" in done.stderr


CHECKED = """#include "brainevent/common.h"
// @BE read
void read(BE::In<float> x, BE::In<float, 2> w, BE::Out<float> y, int64_t i, int64_t j) {
  y[0] = x[i];
  y[1] = w(i, j);
  y[2] = x(i);
}
"""
WRONG_INDICES = {
    (4, 0): "check failed at checked:4: read: index 4 is out of range of x, whose shape is (4,)",
    (-1, 0): "check failed at checked:4: read: index -1 is out of range of x, whose shape is (4,)",
    (2, 0): "check failed at checked:5: read: index 2 is out of range in axis 0 of w, whose shape is (2, 3)",
    (0, 3): "check failed at checked:5: read: index 3 is out of range in axis 1 of w, whose shape is (2, 3)",
}


@pytest.mark.parametrize("indices", WRONG_INDICES)
def test_indices_are_checked_in_debug_builds(indices):
    module = kernix.load_cpp_inline("checked", CHECKED, debug=True, auto_register=False)
    arrays = np.arange(4, dtype=np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    out = np.zeros(3, np.float32)
    module.read(*arrays, i=1, j=2, out=out)
    assert out.tolist() == [1, 5, 1]
    with pytest.raises(kernix.KernelCallError) as caught:
        module.read(*arrays, i=indices[0], j=indices[1], out=out)
    assert WRONG_INDICES[indices] in str(caught.value)


def test_indices_of_device_code_are_checked_in_debug_builds():
    """The texts of the checks, with the user's line, are in the device code; without debug=True they are not."""
    source = '#include "brainevent/common.h"\n// @BE k\n__global__ void k(BE::In<int> x, BE::Out<int, 2> y) {\n'
    source += "  y(threadIdx.x, 0u) = x[threadIdx.x];\n}\n"
    for debug in (True, False):
        module = kernix.load_cuda_inline(
            "checked", source, debug=debug, compute_capability="sm_90", keep=True, auto_register=False
        )
        assert ("trap" in module.ptx()) == debug
