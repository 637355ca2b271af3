# SPDX-License-Identifier: Apache-2.0
"""CUDA kernels, compiled by a real nvcc and probed; tests/gpu runs them where there is a GPU."""

import pathlib
import re
import runpy
import struct

import conftest
import kernels
import pytest

import kernix


@pytest.mark.parametrize(
    ("source", "function", "tokens"),
    [
        (kernels.VECTOR_ADD, "vector_add", ["arg", "arg", "ret", "stream"]),
        (kernels.SCALE_BY, "scale_by", ["arg", "ret", "attr.scale_factor:float32", "stream"]),
        (kernels.ADD_BY_REFERENCE, "add_by_reference", ["arg", "arg", "ret", "stream"]),
    ],
    ids=["vector_add", "scale_by", "add_by_reference"],
)
def test_examples_of_the_reference(source, function, tokens):
    module = kernix.load_cuda_inline("cuda_examples", source, compute_capability="sm_90")
    assert module.function_names == [function]
    assert module.arg_spec(function) == tokens
    assert module.platform == "CUDA"
    assert f"cuda_examples.{function}" in kernix.list_registered_targets()


def test_demo_shows_the_same():
    """The demo has a copy of its own, so that it can be read and run alone."""
    demo = runpy.run_path(str(conftest.HERE.parents[1] / "python" / "examples" / "demo.py"))
    assert demo["CUDA_SOURCE"] == kernels.VECTOR_ADD
    assert demo["CPP_SOURCE"] == kernels.ADD_ONE


def test_spellings_of_a_capability_are_one_build(counters):
    keys = {
        kernix.load_cuda_inline("cuda_examples", kernels.VECTOR_ADD, compute_capability=spelling).key
        for spelling in ("sm_90", "9.0", " 9.0", "90")
    }
    assert len(keys) == 1
    assert counters.builds <= 1  # 0 when an earlier test has built it


@pytest.mark.parametrize(
    ("source", "function", "flags"),
    [(kernels.WGMMA, "multiply", []), (kernels.TILE, "tile", []), (kernels.LAUNCHES, "run", ["-rdc=true"])],
    ids=["wgmma", "tma", "launches"],
)
def test_kernels_for_hopper(source, function, flags):
    """tests/gpu calls them."""
    options = {"compute_capability": "sm_90a", "auto_register": False, "extra_cuda_cflags": flags}
    assert kernix.load_cuda_inline("hopper", source, **options).function_names == [function]


def code_in(library):
    """Return kind and architecture of every piece of device code in the fat binary of a library."""
    kinds = {1: "ptx", 2: "machine"}
    start = library.index(b"\x50\xed\x55\xba")
    _, _, header_size, size = struct.unpack_from("<IHHQ", library, start)
    at, found = start + header_size, set()
    while at < start + header_size + size:
        kind, _, entry_header_size, entry_size = struct.unpack_from("<HHIQ", library, at)
        found.add((kinds[kind], struct.unpack_from("<I", library, at + 28)[0]))
        at += entry_header_size + entry_size
    return found


def test_fat_binary_has_code_for_all_and_ptx_of_the_newest(tmp_path):
    kernix.load_cuda_inline(
        "cuda_fat", kernels.VECTOR_ADD, compute_capability="8.6,sm_80", auto_register=False, build_directory=tmp_path
    )
    assert code_in((tmp_path / "cuda_fat.so").read_bytes()) == {("machine", 80), ("machine", 86), ("ptx", 86)}


def test_words_of_nvcc_for_many(tmp_path):
    def built(capability):
        folder = tmp_path / capability
        folder.mkdir()
        kernix.load_cuda_inline(
            "cuda_many", kernels.VECTOR_ADD, compute_capability=capability, auto_register=False, build_directory=folder
        )
        return code_in((folder / "cuda_many.so").read_bytes())

    major = built("all-major")
    code = {number for kind, number in major if kind == "machine"}
    assert {80, 90} < code
    assert all(number % 10 == 0 or number == min(code) for number in code)
    assert {number for kind, number in major if kind == "ptx"} == {max(code)}


def test_file_and_folder(tmp_path, counters):
    (tmp_path / "half.cuh").write_text("__device__ inline float half_of(float x) { return x * 0.5f; }\n")
    (tmp_path / "a_kernel.cu").write_text(
        '#include <cuda_runtime.h>\n#include "brainevent/common.h"\n#include "half.cuh"\n'
        "__global__ void halve_kernel(const float* x, float* y) { y[threadIdx.x] = half_of(x[threadIdx.x]); }\n"
    )
    (tmp_path / "b_function.cu").write_text(
        "// @BE halve arg ret stream\n"
        "void halve(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {\n"
        "    halve_kernel<<<1, x.numel(), 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>());\n"
        "    BE_CHECK_KERNEL_LAUNCH();\n}\n"
    )
    module = kernix.load_cuda_dir(tmp_path, compute_capability="sm_90", auto_register=False)
    assert module.name == tmp_path.name
    assert module.function_names == ["halve"]
    assert counters.builds == 1

    whole = tmp_path / "whole.cu"
    whole.write_text((tmp_path / "a_kernel.cu").read_text() + (tmp_path / "b_function.cu").read_text())
    module = kernix.load_cuda_file(whole, ["halve"], compute_capability="sm_90", auto_register=False)
    assert module.name == "whole"

    picked = kernix.load_cuda_dir(
        tmp_path, name="picked", file_patterns=["whole.*", "*.none"], compute_capability="sm_90", auto_register=False
    )
    assert picked.function_names == ["halve"]


def test_folder_without_files(tmp_path):
    with pytest.raises(kernix.KernelRequestError, match=r"\*\.cu"):
        kernix.load_cuda_dir(tmp_path)


def test_options_that_change_the_code_are_builds_of_their_own(counters):
    def key(**options):
        return kernix.load_cuda_inline(
            "cuda_options", kernels.VECTOR_ADD, compute_capability="sm_90", auto_register=False, **options
        ).key

    keys = {
        key(),
        key(optimization_level=1),
        key(use_fast_math=True),
        key(allow_cuda_graph=False),
        key(extra_cuda_cflags=["-DSOMETHING=1"]),
    }
    assert len(keys) == 5
    assert key(ninja_workers=1) in keys  # how it is built does not matter


def commands(capsys, program):
    """Return the commands of a program that stderr shows, as words."""
    lines = (line.split() for line in capsys.readouterr().err.splitlines())
    return [line for line in lines if line and line[0].endswith("/" + program)]


def test_verbose_shows_the_options_in_the_commands_of_nvccs_programs(capsys, fresh_name):
    kernix.load_cuda_inline(
        fresh_name,
        "// " + fresh_name + kernels.VECTOR_ADD,
        compute_capability="sm_90",
        auto_register=False,
        verbose=True,
        use_fast_math=True,
        optimization_level=1,
    )
    (command,) = commands(capsys, "cicc")
    assert "-ftz=1" in command  # fast maths


def test_each_architecture_is_compiled_with_any_number_of_workers(capsys, fresh_name):
    for workers in (2, 1):
        kernix.load_cuda_inline(
            fresh_name,
            f"static const int {fresh_name}_{workers} = 0;\n{kernels.VECTOR_ADD}",
            compute_capability="8.0,9.0",
            auto_register=False,
            verbose=True,
            ninja_workers=workers,
        )
        compiled = {command[command.index("-arch") + 1] for command in commands(capsys, "cicc")}
        assert compiled == {"compute_80", "compute_90"}


def test_paths_flags_prefix_and_rebuild(tmp_path, counters, fresh_name):
    (tmp_path / "answer.h").write_text("#define ANSWER zlibVersion()[0]\n")
    source = '#include "answer.h"\nextern "C" const char* zlibVersion();\n' + kernels.VECTOR_ADD.replace(
        "int n = a.numel();", "int n = a.numel() + ANSWER - ANSWER;"
    )
    options = {
        "compute_capability": "sm_90",
        "extra_include_paths": [tmp_path],
        "extra_ldflags": ["-l:libz.so.1"],
        "target_prefix": f"{fresh_name}_mine",
    }
    first = kernix.load_cuda_inline(fresh_name, source, **options)
    assert f"{fresh_name}_mine.vector_add" in kernix.list_registered_targets()
    assert f"{fresh_name}.vector_add" not in kernix.list_registered_targets()
    assert counters.builds == 1
    again = kernix.load_cuda_inline(fresh_name, source, force_rebuild=True, **options)
    assert counters.builds == 2
    assert again.content_hash == first.content_hash
    assert b"libz.so.1" in pathlib.Path(first.path).read_bytes()


def test_graph_trait_follows_the_option():
    def traits(allow):
        module = kernix.load_cuda_inline(
            "cuda_options", kernels.VECTOR_ADD, compute_capability="sm_90", auto_register=False, allow_cuda_graph=allow
        )
        return module._code.core.functions[0].traits & 1

    assert (traits(True), traits(False)) == (1, 0)


# --- Mistakes ---------------------------------------------------------------------------------------------------------

mistake = pytest.mark.usefixtures("daemon_and_cache_as_they_were")


@mistake
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ninja_workers": 0}, "ninja_workers"),
        ({"optimization_level": 4}, "optimization"),
        ({"optimization_level": -1}, "optimization"),
        ({"compute_capability": "fast"}, "fast"),
        ({"functions": {}}, "functions is empty"),
    ],
    ids=str,
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(kernix.KernelRequestError, match=message):
        kernix.load_cuda_inline("cuda_wrong", kernels.VECTOR_ADD, **{"compute_capability": "sm_90"} | options)


@mistake
def test_unsupported_architecture():
    with pytest.raises(kernix.KernelToolchainError, match="sm_15"):
        kernix.load_cuda_inline("cuda_old", kernels.VECTOR_ADD, compute_capability="sm_15")


@mistake
def test_no_gpu_and_no_capability(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(kernix.KernelToolchainError, match="compute_capability"):
        kernix.load_cuda_inline("cuda_where", kernels.VECTOR_ADD)


WRONG = {
    "device": ("", "*y = nope;", ""),
    "host": ("", "", "nope();"),
    "type": ("", "int* p = y;", ""),
    "overload": ("__device__ int g(int*); __device__ int g(float);", "g((char*)nullptr);", ""),
    "template": ("template <class T> __device__ void g(T t) { t.nope(); }", "g(1);", ""),
    "function of CUDA": ("", "atomicAdd(y, nullptr, nullptr);", ""),
    "two": ("", "*y = nope; return 1;", ""),
    "warning": ("", "int unused; *y = nope;", ""),
    "#warning": ("#warning look", "*y = nope;", ""),
    "header": ("#include <cooperative_groups.h>", "cooperative_groups::nope();", ""),
    "device only": ("", 'asm("nope;");', ""),
    "host compiler": ("", "", "__builtin_nope(0, 0, 0);"),
    "preprocessor": ("#error no", "", ""),
}


@mistake
@pytest.mark.parametrize("wrong", WRONG)
def test_an_error_is_what_nvcc_says(wrong):
    """Whether phases of nvcc have found it or the whole call."""
    before, device, host = WRONG[wrong]
    source = (
        f'#include <cuda_runtime.h>\n#include "brainevent/common.h"\n{before}\n'
        f"__global__ void k(float* y) {{\n  {device}\n}}\n"
        f"// @BE f\nvoid f(BE::Out<float> y, cudaStream_t s) {{\n  {host}\n  k<<<1, 1, 0, s>>>(y.data());\n}}\n"
    )
    errors = []
    for forced in (False, True):
        with pytest.raises(kernix.KernelCompilationError) as caught:
            kernix.load_cuda_inline("cuda_wrong", source, compute_capability="sm_90", force_rebuild=forced)
        errors.append((str(caught.value), caught.value.compiler_output, caught.value.command))
    assert errors[0] == errors[1]


@mistake
def test_error_in_device_code_is_on_the_users_line():
    source = kernels.VECTOR_ADD.replace("out[idx] = a[idx] + b[idx]", "out[idx] = a[idx] + nothing")
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cuda_inline("cuda_broken", source, compute_capability="sm_90")
    line = 1 + source[: source.index("nothing")].count("\n")
    output = caught.value.compiler_output
    assert f"cuda_broken({line})" in output or f"cuda_broken:{line}" in output
    assert "nothing" in output
    assert caught.value.command


def test_error_names_a_header_of_the_toolkit_by_its_path():
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cuda_inline("toolkit_header", "struct dim3 {};\n" + kernels.VECTOR_ADD, compute_capability="sm_90")
    output = caught.value.compiler_output
    header = re.search(r"of (/\S+/vector_types\.h)\)", output)
    assert header, output
    assert pathlib.Path(header[1]).is_file()
