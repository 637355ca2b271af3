# SPDX-License-Identifier: Apache-2.0
"""Loads of several sources: side by side and linked once, and what is linked to them."""

import ctypes
import shutil
import subprocess

import pytest

import kernix

CUDA = {"compute_capability": "sm_90", "auto_register": False}


def function(name, value, declarations=""):
    """Return a C++ source that exports `name`, which writes `value`."""
    return (
        f'#include "brainevent/common.h"\n{declarations}\n'
        f"// @BE {name} arg ret\n"
        f"void {name}(const BE::Tensor x, BE::Tensor y) {{ *y.data_ptr<float>() = {value}; }}\n"
    )


def call(target):
    """Return what a function of one number gives on the CPU."""
    import jax
    import jax.numpy as jnp

    x = jnp.zeros(1, jnp.float32)
    return float(jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)[0])


@pytest.mark.usefixtures("on_cpu")
def test_separate_texts_are_units_of_their_own(fresh_name, counters):
    # In one unit the two functions called `helper` would be one too many.
    first = function("first", "helper() + second_value()", "static int helper() { return 1; }\nint second_value();")
    second = function("second", "helper()", "static int helper() { return 2; }\nint second_value() { return 40; }")
    with pytest.raises(kernix.KernelCompilationError):
        kernix.load_cpp_inline(fresh_name, [first, second])
    module = kernix.load_cpp_inline(fresh_name, [first, second], separate=True)
    assert module.function_names == ["first", "second"]
    assert (call(f"{fresh_name}.first"), call(f"{fresh_name}.second")) == (41, 2)
    assert counters.builds == 1
    assert "second_value() { return 40; }" not in module.source(f"{fresh_name}[0]")
    assert module.source() == module.source(f"{fresh_name}[0]") + module.source(f"{fresh_name}[1]")
    with pytest.raises(KeyError, match="no source 'third'"):
        module.source("third")


@pytest.mark.usefixtures("on_cpu")
def test_each_file_has_the_headers_beside_it(tmp_path, fresh_name):
    paths = []
    for name, value in (("one", 1), ("two", 2)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.h").write_text(f"#define VALUE {value}\n")
        paths.append(folder / "kernel.cpp")
        paths[-1].write_text(function(name, "VALUE", '#include "config.h"'))
    kernix.load_cpp_file(paths, name=fresh_name, separate=True)
    assert (call(f"{fresh_name}.one"), call(f"{fresh_name}.two")) == (1, 2)

    # Each is input of its own unit.
    (tmp_path / "two" / "config.h").write_text("#define VALUE 3\n")
    kernix.load_cpp_file(paths, name=fresh_name, separate=True, replace=True)
    assert (call(f"{fresh_name}.one"), call(f"{fresh_name}.two")) == (1, 3)


def test_listed_functions_are_exported_where_they_are_defined(tmp_path):
    declare = "void g(const BE::Tensor x, BE::Tensor y);"
    (tmp_path / "f.cpp").write_text(function("f", "0; g(x, y)", declare).replace("// @BE", "//"))
    (tmp_path / "g.cpp").write_text(function("g", "7").replace("// @BE", "//"))
    module = kernix.load_cpp_file(
        [tmp_path / "f.cpp", tmp_path / "g.cpp"], ["g", "f"], separate=True, auto_register=False
    )
    assert module.name == "f"
    assert module.function_names == ["g", "f"]
    assert "kernix_handler_g" not in module.source("f.cpp")
    assert "kernix_handler_g" in module.source("g.cpp")


def test_errors_name_the_file(tmp_path):
    good, broken, again = (tmp_path / name for name in ("good.cpp", "broken.cpp", "again.cpp"))
    good.write_text(function("f", "1", "int shared() { return 1; }"))
    broken.write_text("int ok;\nint broken = nothing;\n")
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cpp_file([good, broken], separate=True)
    assert f"{broken}:2:" in caught.value.compiler_output
    assert "compile broken.cpp failed" in str(caught.value)

    again.write_text(function("f", "2"))
    with pytest.raises(
        kernix.KernelRequestError, match=r"again\.cpp:3: function 'f' is exported twice, also at .*good"
    ):
        kernix.load_cpp_file([good, again], separate=True)

    again.write_text(function("g", "2", "int shared() { return 2; }"))
    with pytest.raises(kernix.KernelCompilationError, match="multiple definition of `shared") as caught:
        kernix.load_cpp_file([good, again], separate=True)
    assert "0-good.cpp" in caught.value.compiler_output
    assert "1-again.cpp" in caught.value.compiler_output


def test_a_cuda_file_is_no_part_of_a_load_of_cpp(tmp_path):
    (tmp_path / "a.cpp").write_text(function("a", "1"))
    (tmp_path / "b.cu").write_text("__device__ int x;\n")
    with pytest.raises(kernix.KernelRequestError, match=r"b\.cu is CUDA.*load_cuda_file"):
        kernix.load_cpp_file([tmp_path / "a.cpp", tmp_path / "b.cu"], separate=True)


def test_an_empty_list_of_files():
    with pytest.raises(kernix.KernelRequestError, match="nothing to compile"):
        kernix.load_cuda_file([])


@pytest.fixture(name="mixed")
def mixed_fixture(tmp_path):
    """A folder with a kernel whose device code and host code are in other files."""
    (tmp_path / "kernel.cu").write_text(
        '#include <cuda_runtime.h>\n#include "brainevent/common.h"\n#include "twice.cuh"\n'
        "int checked(int n);\n"
        "__global__ void twice_kernel(const float* x, float* y) { y[threadIdx.x] = twice(x[threadIdx.x]); }\n"
        "// @BE twice_all arg ret stream\n"
        "void twice_all(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {\n"
        "    twice_kernel<<<1, checked(x.numel()), 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>());\n"
        "    BE_CHECK_KERNEL_LAUNCH();\n}\n"
    )
    (tmp_path / "twice.cuh").write_text("#pragma once\nextern __device__ float twice(float x);\n")
    (tmp_path / "device.cu").write_text('#include "twice.cuh"\n__device__ float twice(float x) { return x + x; }\n')
    (tmp_path / "host.cpp").write_text(
        "#ifdef __CUDACC__\n#error this is C++\n#endif\n"
        "#include <cuda_runtime.h>\n#include <stdexcept>\n"
        '#include "brainevent/common.h"\n'
        'int checked(int n) { return n <= 1024 ? n : throw std::invalid_argument("too many"); }\n'
        "// @BE clear ret stream\n"
        "void clear(BE::Tensor y, cudaStream_t stream) {\n"
        "    cudaMemsetAsync(y.data_ptr(), 0, y.nbytes(), stream);\n}\n"
    )
    return tmp_path


def test_device_code_across_units_beside_cpp(mixed, fresh_name):
    options = {"file_patterns": ["*.cu", "*.cpp"], "separate": True, "name": fresh_name, **CUDA}
    # Without relocatable device code each unit must have all of its own.
    with pytest.raises(kernix.KernelCompilationError, match="compile kernel.cu failed") as caught:
        kernix.load_cuda_dir(mixed, **options)
    assert "twice" in caught.value.compiler_output
    module = kernix.load_cuda_dir(mixed, extra_cuda_cflags=["-rdc=true"], force_rebuild=True, **options)
    assert module.function_names == ["twice_all", "clear"]
    # nvcc's own word for it means the same, and as nobody's path is in it, a build elsewhere gives the same bytes.
    elsewhere = shutil.copytree(mixed, mixed / "elsewhere")
    again = kernix.load_cuda_dir(elsewhere, extra_cuda_cflags=["-dc"], force_rebuild=True, **options)
    assert (again.key, again.content_hash, again.cache_hit) == (module.key, module.content_hash, False)


@pytest.mark.usefixtures("on_cpu")
def test_folder_of_cpp(tmp_path):
    folder = tmp_path / "both_kinds"
    folder.mkdir()
    (folder / "b.cpp").write_text(function("second", "kOne + BY"))
    (folder / "a.cpp").write_text("constexpr int kOne = 1;\n")
    (folder / "c.cc").write_text(function("third", "kOne + 2"))
    (folder / "d.cu").write_text("this is not C++")
    module = kernix.load_cpp_dir(folder, defines={"BY": 1})
    assert (module.name, module.function_names) == ("both_kinds", ["second", "third"])
    assert (call("both_kinds.second"), call("both_kinds.third")) == (2, 3)
    only = kernix.load_cpp_dir(folder, name="only", file_patterns=["a.*", "c.*"], auto_register=False)
    assert (only.name, only.function_names) == ("only", ["third"])
    with pytest.raises(kernix.KernelRequestError, match=r"no file in .*both_kinds matches \*.hpp"):
        kernix.load_cpp_dir(folder, file_patterns=["*.hpp"])


def compiled(tmp_path, source, *flags):
    """Compile `source` to an object beside it and return its path."""
    path = tmp_path / "part.cpp"
    path.write_text(source)
    subprocess.run(["g++", "-c", "-fPIC", *flags, "-o", tmp_path / "part.o", path], check=True)
    return tmp_path / "part.o"


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("archive", [False, True], ids=["object", "static library"])
def test_prebuilt_code_counts_by_content(tmp_path, fresh_name, archive):
    def prebuilt(value):
        path = compiled(tmp_path, f"int part() {{ return {value}; }}\n")
        if not archive:
            return str(path)
        subprocess.run(["ar", "rcsD", tmp_path / "libpart.a", path], check=True)
        return str(tmp_path / "libpart.a")

    source = function("f", "part()", "int part();")
    first = kernix.load_cpp_inline(fresh_name, source, extra_ldflags=[prebuilt(5)])
    assert call(f"{fresh_name}.f") == 5
    # The process has not seen this file's content yet, so it must not take the load for one that it has done.
    second = kernix.load_cpp_inline(fresh_name, source, extra_ldflags=[prebuilt(6)], replace=True)
    assert call(f"{fresh_name}.f") == 6
    assert first.key != second.key


@pytest.mark.usefixtures("on_cpu")
def test_the_wrapper_of_xlas_buffers_needs_no_other_include(fresh_name):
    declarations = '#include "brainevent/ffi_compat.h"\nnamespace ffi = xla::ffi;'
    kernix.load_cpp_inline(fresh_name, function("f", "ffi::DataType::F32 == ffi::F32", declarations))
    assert call(f"{fresh_name}.f") == 1


@pytest.mark.usefixtures("on_cpu")
def test_what_a_source_defines_is_what_it_calls(tmp_path, fresh_name):
    """Also where a library that is open for the whole process has a function and a variable of these names."""
    other = tmp_path / "other.cpp"
    other.write_text("int kx_interposed() { return 77; }\nint kx_interposed_number = 77;\n")
    library = tmp_path / "libother.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, other], check=True)
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    own = "int kx_interposed() { return 5; }\nint kx_interposed_number = 6;"
    source = function("f", "10 * kx_interposed() + kx_interposed_number", own)
    kernix.load_cpp_inline(fresh_name, source, extra_cflags=["-O0"])
    assert call(f"{fresh_name}.f") == 56


def test_includes_that_wander_and_files_with_a_byte_order_mark(tmp_path, fresh_name):
    """What a compiler does with them beside the files, it does here."""
    (tmp_path / "src").mkdir()
    (tmp_path / "inc" / "empty").mkdir(parents=True)
    (tmp_path / "inc" / "a.h").write_text('#include "../src/../inc/b.h"\n#include "empty/../c.h"\n')
    (tmp_path / "inc" / "b.h").write_bytes(b'\xef\xbb\xbf#include "d.h"\r\n')
    (tmp_path / "inc" / "c.h").write_text("#define C 2\n")
    (tmp_path / "inc" / "d.h").write_text("#define D 1\n")
    source = tmp_path / "src" / f"{fresh_name}.cpp"
    text = '#include "../inc/a.h"\n' + function("f", "C + D")
    source.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert kernix.load_cpp_file(str(source)).function_names == ["f"]
