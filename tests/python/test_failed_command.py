# SPDX-License-Identifier: Apache-2.0
"""A command that failed, run again in the folder that `error.save()` writes."""

import pickle
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


def wrong(name):
    """Return the error of a load that does not compile."""
    return failure(kernix.load_cpp_inline, name, "nonsense;\n" + kernels.ADD_ONE)


def test_the_command_of_an_error_from_another_process_runs(fresh_name, tmp_path):
    error = pickle.loads(pickle.dumps(wrong(fresh_name)))
    assert "unit.cc" in error.command
    assert first_error(run(error.save(tmp_path))[1]) == first_error(error.compiler_output)


def test_the_build_directory_receives_what_failed(fresh_name, tmp_path):
    error = failure(
        kernix.load_cpp_inline, fresh_name, "nonsense;\n" + kernels.ADD_ONE, build_directory=tmp_path / "out"
    )
    folder = tmp_path / "out" / f"{fresh_name}.failed"
    assert first_error(run(folder / "run.sh")[1]) == first_error(error.compiler_output)


def test_a_build_directory_that_cannot_be_written_hides_no_error(fresh_name, tmp_path):
    (tmp_path / "file").write_text("")
    error = failure(
        kernix.load_cpp_inline, fresh_name, "nonsense;\n" + kernels.ADD_ONE, build_directory=tmp_path / "file"
    )
    assert "nonsense" in error.compiler_output


def test_an_error_without_a_command_says_so(tmp_path):
    with pytest.raises(kernix.KernelRequestError, match="has no command to run again"):
        kernix.KernelCompilationError("no").save(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(fresh_name, tmp_path):
    error = wrong(fresh_name)
    (tmp_path / "file").write_text("")
    with pytest.raises(kernix.KernelResourceError, match=f"cannot save the command to {tmp_path}/file/x: "):
        error.save(tmp_path / "file" / "x")


def test_the_key_of_an_error_finds_it_in_the_log(place, fresh_name):
    source = '#include "brainevent/common.h"\n// @BE wrong ret\nvoid wrong(BE::Tensor y) { nonsense; }\n'
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cpp_inline(fresh_name, source)
    assert len(caught.value.key) == 64
    log = "".join(path.read_text() for path in (place.root / "run").glob("kernix/*/kernixd.log"))
    lines = [line.split()[2] for line in log.splitlines() if f"key={caught.value.key[:16]}" in line]
    assert sorted(lines) == ["build_failed", "load"]
