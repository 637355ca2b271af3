# SPDX-License-Identifier: Apache-2.0
"""docs/debugging.md: what it shows of a sanitizer happens to the page's own program."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

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
