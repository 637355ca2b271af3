# SPDX-License-Identifier: Apache-2.0
"""A command that failed, run again in a folder that its error has saved."""

import re
import subprocess

import kernels
import pytest

import kernix

UNDEFINED = """
#include "brainevent/common.h"
int missing();
// @BE value
void value(BE::Tensor y) { *y.data_ptr<int>() = missing(); }
"""


def failure(load, *arguments, **options):
    """Return the error of a load."""
    with pytest.raises(kernix.KernelCompilationError) as caught:
        load(*arguments, auto_register=False, **options)
    return caught.value


def run(script):
    """Return the exit code and the output of a saved command."""
    done = subprocess.run([script], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def first_error(text):
    """Return the place and the words of the first error, with the file's own name only."""
    return re.search(r"([^/\s]+[:(]\d+.*error: .*)", text)[1]


def test_a_compile_error_comes_again_and_goes_with_its_cause(fresh_name, tmp_path):
    (tmp_path / "include").mkdir()
    header = tmp_path / "above.h"
    header.write_text("#pragma once\n#include <vector>\nstd::vector<Missing> all();\n")
    source = '#include "../above.h"\n' + kernels.ADD_ONE
    options = {"extra_include_paths": [str(tmp_path / "include")], "defines": {"WORDS": '"a b"'}}
    error = failure(kernix.load_cpp_inline, fresh_name, source, **options)
    script = error.save(tmp_path / "saved")
    assert script == str(tmp_path / "saved" / "run.sh")
    code, output = run(script)
    assert code != 0
    assert first_error(output) == first_error(error.compiler_output)
    assert first_error(output).startswith("above.h:3:13: error: ")
    header.write_text("#pragma once\nusing Missing = int;\n")
    assert run(script) == (0, "")


def test_a_link_error_comes_again(fresh_name, tmp_path):
    error = failure(kernix.load_cpp_inline, fresh_name, UNDEFINED, extra_ldflags=["-Wl,--no-undefined"])
    code, output = run(error.save(tmp_path))
    assert code != 0
    assert "undefined reference to `missing()'" in output


def test_an_error_of_nvcc_comes_again(fresh_name, tmp_path):
    source = kernels.VECTOR_ADD.replace("blockIdx.x", "nowhere.x", 1)
    error = failure(kernix.load_cuda_inline, fresh_name, source, compute_capability="sm_90")
    (tmp_path / "moved").mkdir()
    error.save(tmp_path / "saved")
    code, output = run((tmp_path / "saved").rename(tmp_path / "moved" / "here") / "run.sh")
    assert code != 0
    assert first_error(output) == first_error(error.compiler_output)
    assert 'identifier "nowhere" is undefined' in output


def test_an_error_without_a_command_says_so(tmp_path):
    with pytest.raises(kernix.KernelRequestError, match="has no command that can be run again"):
        kernix.KernelCompilationError("no").save(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(fresh_name, tmp_path):
    error = failure(kernix.load_cpp_inline, fresh_name, "nonsense;\n" + kernels.ADD_ONE)
    (tmp_path / "file").write_text("")
    with pytest.raises(kernix.KernelResourceError, match=f"cannot save the command to {tmp_path}/file/x: "):
        error.save(tmp_path / "file" / "x")
