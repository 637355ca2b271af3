# SPDX-License-Identifier: Apache-2.0
"""The caller's environment: each variable that a compiler would read counts for a load, or a warning names it."""

import os
import pathlib
import shutil
import subprocess
import sys
import warnings

import jax
import kernels
import numpy as np
import pytest

import kernix

CPP = """
#include "brainevent/common.h"
#include "answer.h"
// @BE answer arg ret
void answer(const BE::Tensor x, BE::Tensor y) { *y.data_ptr<float>() = ANSWER; }
"""

# Compiles only where ANSWER is 42.
CUDA = (
    """
#if ANSWER != 42
#error ANSWER is not 42
#endif
"""
    + kernels.VECTOR_ADD
)


@pytest.fixture(name="header")
def header_fixture(tmp_path):
    """A folder whose header says that the answer is 42."""
    (tmp_path / "answer.h").write_text("#define ANSWER 42\n")
    return tmp_path


def call(target):
    """Call a target of one argument and one result like it."""
    x = np.zeros(1, np.float32)
    with jax.default_device(jax.devices("cpu")[0]):
        return float(jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)[0])


def load_cuda(source, **options):
    """Load a CUDA source for an architecture that needs no GPU."""
    return kernix.load_cuda_inline("environment", source, compute_capability="sm_90", auto_register=False, **options)


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH"])
def test_headers_of_a_cpp_kernel(variable, header, fresh_name, monkeypatch):
    with pytest.raises(kernix.KernelCompilationError, match=r"answer\.h"):
        kernix.load_cpp_inline(fresh_name, CPP)
    monkeypatch.setenv(variable, f"/no/such/folder:{header}")
    kernix.load_cpp_inline(fresh_name, CPP)
    assert call(f"{fresh_name}.answer") == 42


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH"])
def test_headers_of_a_cuda_kernel(variable, header, monkeypatch):
    source = '#include "answer.h"\n' + CUDA
    with pytest.raises(kernix.KernelCompilationError, match=r"answer\.h"):
        load_cuda(source)
    monkeypatch.setenv(variable, str(header))
    assert load_cuda(source).function_names == ["vector_add"]


def test_a_header_path_of_c_alone_is_named(header, fresh_name, monkeypatch):
    monkeypatch.setenv("C_INCLUDE_PATH", str(header))
    with (
        pytest.warns(kernix.KernelWarning, match="C_INCLUDE_PATH.*CPATH"),
        pytest.raises(kernix.KernelCompilationError, match=r"answer\.h"),
    ):
        kernix.load_cpp_inline(fresh_name, CPP)


@pytest.mark.parametrize("variable", ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"])
def test_flags_for_nvcc(variable, monkeypatch):
    with pytest.raises(kernix.KernelCompilationError, match="ANSWER is not 42"):
        load_cuda(CUDA)
    monkeypatch.setenv(variable, "-DANSWER=42")
    assert load_cuda(CUDA).function_names == ["vector_add"]


def test_appended_flags_come_last(monkeypatch):
    monkeypatch.setenv("NVCC_PREPEND_FLAGS", "-UANSWER")
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-UANSWER -DANSWER=42")
    assert load_cuda(CUDA, extra_cuda_cflags=["-DANSWER=7"]).function_names == ["vector_add"]


def test_host_compiler_of_nvcc(monkeypatch, fresh_name):
    monkeypatch.setenv("NVCC_CCBIN", "/no/such/g++")
    with pytest.raises(kernix.KernelToolchainError, match=r"/no/such/g\+\+"):
        load_cuda(kernels.VECTOR_ADD)
    kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, auto_register=False)  # the kernel has nothing to do with it


def test_libraries(tmp_path, fresh_name, monkeypatch):
    (tmp_path / "answer.c").write_text("float answer(void) { return 42; }\n")
    subprocess.run(["gcc", "-fPIC", "-c", "answer.c"], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rcs", "libanswer.a", "answer.o"], cwd=tmp_path, check=True)
    source = kernels.constant("answer()").replace("// @BE", 'extern "C" float answer();\n// @BE')
    with pytest.raises(kernix.KernelCompilationError, match="answer"):
        kernix.load_cpp_inline(fresh_name, source, extra_ldflags=["-lanswer"])
    monkeypatch.setenv("LIBRARY_PATH", str(tmp_path))
    kernix.load_cpp_inline(fresh_name, source, extra_ldflags=["-lanswer"])
    assert call(f"{fresh_name}.value") == 42


@pytest.mark.parametrize("variable", ["BRAINEVENT_CACHE_DIR", "BRAINEVENT_COMPILE_TIMEOUT", "BRAINEVENT_CAHCE_DIR"])
def test_variable_without_effect_is_named_once(variable, fresh_name, monkeypatch, forget):
    monkeypatch.setenv(variable, "/x")
    with pytest.warns(kernix.KernelWarning, match=f"{variable} has no effect") as caught:
        kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, auto_register=False)
    assert caught[0].filename == __file__
    forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, auto_register=False)


# --- Other compilers -------------------------------------------------------------------------------------------------

needs_clang = pytest.mark.skipif(shutil.which("clang++") is None, reason="there is no clang++ on this machine")


@needs_clang
def test_clang_builds_cpp_kernels(fresh_name, monkeypatch, counters):
    source = kernels.constant("__clang_major__ > 0")
    monkeypatch.setenv("CXX", "clang++")
    kernix.load_cpp_inline(fresh_name, source)
    assert call(f"{fresh_name}.value") == 1
    assert counters.builds == 1


@needs_clang
def test_an_error_of_clang_is_on_the_users_line(fresh_name, monkeypatch):
    monkeypatch.setenv("CXX", "clang++")
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cpp_inline(fresh_name, kernels.constant("nothing"))
    assert f"{fresh_name}:4:" in caught.value.compiler_output
    assert "clang" in caught.value.command


@needs_clang
def test_clang_is_the_host_compiler_of_nvcc(monkeypatch):
    source = "#if !defined(__clang__) || !defined(__CUDACC__)\n#error not clang\n#endif\n" + kernels.VECTOR_ADD
    with pytest.raises(kernix.KernelCompilationError, match="not clang"):
        load_cuda(source)
    monkeypatch.setenv("NVCC_CCBIN", "clang++")
    assert load_cuda(source).function_names == ["vector_add"]


# Each compiles C++ and links no C++ library.
C_DRIVERS = ["gcc", "cc", "clang"]
THROWS = kernels.constant("thrown()").replace(
    "// @BE",
    """#include <stdexcept>
#include <string>
static float thrown() {
    static const std::string text = std::to_string(42);
    try { throw std::runtime_error(text); } catch (const std::exception& error) { return std::stof(error.what()); }
}
// @BE""",
)


@pytest.fixture(name="c_driver", params=[*C_DRIVERS, "a script"])
def c_driver_fixture(request, tmp_path):
    """A compiler that is a driver of C."""
    program = shutil.which("gcc" if request.param == "a script" else request.param)
    if program is None:
        pytest.skip(f"there is no {request.param} on this machine")
    if request.param != "a script":
        return program
    script = tmp_path / "compiler"
    script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_a_driver_of_c_gets_the_libraries_of_cpp(c_driver, fresh_name, monkeypatch):
    monkeypatch.setenv("CXX", c_driver)
    kernix.load_cpp_inline(fresh_name, THROWS)
    assert call(f"{fresh_name}.value") == 42
    flags = {"extra_cflags": ["-O1"], "extra_ldflags": ["-static-libstdc++", "-lm"]}
    kernix.load_cpp_inline(fresh_name, THROWS, replace=True, **flags)
    assert call(f"{fresh_name}.value") == 42


def test_a_driver_of_c_is_the_host_compiler_of_nvcc(c_driver, monkeypatch):
    source = THROWS + kernels.VECTOR_ADD
    assert load_cuda(source, extra_cuda_cflags=["-ccbin", c_driver]).function_names == ["value", "vector_add"]
    monkeypatch.setenv("NVCC_CCBIN", c_driver)
    assert load_cuda(source, force_rebuild=True).function_names == ["value", "vector_add"]


def needy(tmp_path, variable):
    """Return a compiler that works only if a folder is in a variable."""
    script = tmp_path / f"g++-{variable}"
    script.write_text(
        f"""#!/bin/sh
case "${variable}" in *{tmp_path}/gcc13*) unset {variable}; exec {shutil.which("g++")} "$@";; esac
echo "cc1plus: error while loading shared libraries: libmpfr.so.6: cannot open shared object file" >&2
exit 127
"""
    )
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize("variable", ["LD_LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH"])
def test_a_compiler_that_needs_a_variable(variable, tmp_path, fresh_name, monkeypatch, forget):
    monkeypatch.setenv("CXX", needy(tmp_path, variable))
    monkeypatch.delenv(variable, raising=False)
    message = r"libmpfr.so.6(.|\n)*tries LD_LIBRARY_PATH, .*set CXX to a script"
    with pytest.raises(kernix.KernelToolchainError, match=message):
        kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE)
    monkeypatch.setenv(variable, f":/opt/a:{tmp_path}/gcc13")
    kernix.load_cpp_inline(fresh_name, kernels.constant("42"), extra_cflags=["-march=native"])
    assert call(f"{fresh_name}.value") == 42
    forget()
    assert kernix.load_cpp_inline(fresh_name, kernels.constant("42"), extra_cflags=["-march=native"]).cache_hit
    load_cuda(kernels.VECTOR_ADD)


def test_a_compiler_that_needs_another_variable(tmp_path, fresh_name, monkeypatch):
    monkeypatch.setenv("CXX", needy(tmp_path, "LM_LICENSE_FILE"))
    monkeypatch.setenv("LM_LICENSE_FILE", f"{tmp_path}/gcc13")
    with pytest.raises(kernix.KernelToolchainError, match="set CXX to a script that sets them and runs the compiler"):
        kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE)


# --- XLA's own headers -----------------------------------------------------------------------------------------------

FFI = '#include "xla/ffi/api/ffi.h"\n'
WITH_FFI = {
    "before": lambda source: FFI + source,
    "after": lambda source: source.replace('common.h"\n', 'common.h"\n' + FFI),
}


@pytest.mark.parametrize("place", WITH_FFI)
def test_ffi_header_in_a_cpp_kernel(place, fresh_name):
    """``jax.ffi.include_dir()`` is searched last, without being asked for."""
    source = WITH_FFI[place](kernels.constant("static_cast<int>(xla::ffi::DataType::F32)"))
    kernix.load_cpp_inline(fresh_name, source)
    assert call(f"{fresh_name}.value") == 11


def test_a_header_of_the_user_comes_before_xlas(fresh_name, tmp_path):
    """The last include path is no more than that."""
    (tmp_path / "xla/ffi/api").mkdir(parents=True)
    (tmp_path / "xla/ffi/api/c_api.h").write_text("#define MINE 7\n")
    source = '#include "xla/ffi/api/c_api.h"\n' + kernels.constant("MINE")
    kernix.load_cpp_inline(fresh_name, source, extra_include_paths=[str(tmp_path)])
    assert call(f"{fresh_name}.value") == 7


@pytest.mark.parametrize("place", WITH_FFI)
def test_ffi_header_in_a_cuda_kernel(place):
    source = (
        WITH_FFI[place](kernels.VECTOR_ADD) + "static_assert(xla::ffi::DataType::F32 != xla::ffi::DataType::F64);\n"
    )
    assert load_cuda(source).function_names == ["vector_add"]


def test_the_python_path_may_hold_anything(fresh_name, monkeypatch):
    odd = [os.fsdecode(b"/no/\xff"), pathlib.Path("/no/path"), b"/no/bytes", 7, ""]  # Python itself takes the strings
    monkeypatch.setattr(sys, "path", [*sys.path, *odd])
    assert kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, auto_register=False).function_names == ["add_one"]
