# SPDX-License-Identifier: Apache-2.0
"""Looking inside a module: what was compiled, PTX, machine code, resources, and builds for debuggers."""

import pathlib
import re
import shutil
import subprocess

import kernels
import pytest

import kernix

SPILLING = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
template <typename T> __global__ void reverse(T* data) {
    __shared__ T copy[64];
    copy[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = copy[63 - threadIdx.x];
}
// @BE reverse_both ret ret stream
void reverse_both(BE::Tensor floats, BE::Tensor doubles, cudaStream_t stream) {
    reverse<<<1, 64, 0, stream>>>(floats.data_ptr<float>());
    reverse<<<1, 64, 0, stream>>>(doubles.data_ptr<double>());
}
"""
OPTIONS = {"auto_register": False, "compute_capability": "8.0,9.0", "keep": True}


def sections(path):
    """Return what readelf says of the sections of a library."""
    return subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout


def nvdisasm():
    """Return nvdisasm beside the nvcc that tests use, or None."""
    from kernix import _core, _environment

    program = pathlib.Path(_core.find_nvcc(_environment.site_packages())).resolve().with_name("nvdisasm")
    return program if program.is_file() else None


def test_kept_texts_of_each_architecture():
    module = kernix.load_cuda_inline("inspected", SPILLING, **OPTIONS)
    assert ".target sm_90" in module.ptx()
    assert ".target sm_80" in module.ptx("sm_80")
    assert module.ptx("sm_90") == module.ptx()
    with pytest.raises(kernix.KernelRequestError, match="compiled for sm_80, sm_90, not for sm_70"):
        module.ptx("sm_70")

    resources = module.resources()
    assert sorted((kernel.architecture, kernel.name) for kernel in resources) == [
        (architecture, f"void reverse<{kind}>({kind}*)")
        for architecture in ("sm_80", "sm_90")
        for kind in ("double", "float")
    ]
    by_name = {kernel.name: kernel for kernel in resources if kernel.architecture == "sm_90"}
    assert by_name["void reverse<float>(float*)"].shared_memory == 64 * 4
    assert by_name["void reverse<double>(double*)"].shared_memory == 64 * 8
    assert all(kernel.registers > 0 and kernel.spill_stores == 0 for kernel in resources)
    assert {kernel.barriers for kernel in resources} in ({1}, {0})  # ptxas of CUDA 12.0 does not say
    assert "kernix_handler_reverse_both" in module.source()


def test_resources_without_keep():
    options = {**OPTIONS, "keep": False}
    built = kernix.load_cuda_inline("inspected_plainly", SPILLING, **options)
    resources = built.resources()
    assert [kernel.architecture for kernel in resources] == ["sm_80", "sm_80", "sm_90", "sm_90"]
    assert sorted((kernel.name, kernel.shared_memory, kernel.barriers) for kernel in resources[2:]) == [
        ("void reverse<double>(double*)", 64 * 8, 1),
        ("void reverse<float>(float*)", 64 * 4, 1),
    ]
    assert all(kernel.registers > 0 and kernel.spill_stores == 0 == kernel.spill_loads for kernel in resources)
    kept = kernix.load_cuda_inline("inspected_plainly", SPILLING, **OPTIONS)
    assert sorted(kept.resources()) == sorted(resources)
    kernix.clear_cache("another")  # so that this process asks the daemon again
    hit = kernix.load_cuda_inline("inspected_plainly", SPILLING, **options)
    assert (hit.cache_hit, hit.resources()) == (True, resources)


def test_resources_of_linked_device_code():
    module = kernix.load_cuda_inline(
        "inspected_plainly", SPILLING, extra_cuda_cflags=["-rdc=true"], auto_register=False, compute_capability="9.0"
    )
    assert sorted(kernel.shared_memory for kernel in module.resources()) == [64 * 4, 64 * 8]


def sizes_or_error(module):
    """Return the shared memory of the kernels, or the error that says why it is not known."""
    try:
        return sorted(kernel.shared_memory for kernel in module.resources())
    except kernix.KernelRequestError as error:
        return str(error)


def test_resources_of_code_for_a_debugger():
    """Most releases of nvcc compress it."""
    options = {"auto_register": False, "compute_capability": "9.0", "debug": True}
    sizes = [64 * 4, 64 * 8]
    assert sizes_or_error(kernix.load_cuda_inline("inspected_debug", SPILLING, keep=True, **options)) == sizes
    plain = sizes_or_error(kernix.load_cuda_inline("inspected_debug", SPILLING, **options))
    assert plain == sizes or "the machine code is compressed. Load it again with `keep`" in plain


def test_occupancy():
    kernel = kernix.KernelResources("k()", "k", "sm_90", registers=40, shared_memory=1024)
    assert kernel.occupancy(128) == kernel.occupancy((32, 2, 2)) == kernel.occupancy([128]) == 48 / 64
    assert kernel.occupancy(128, shared=100 * 1024) == 2 * 4 / 64
    assert kernel.occupancy(2**70) == kernel.occupancy(32, 2**70) == 0
    assert kernel._replace(architecture="sm_999").occupancy(128) is None
    for block in (0, (), (1, 1, 1, 1), (32, -1)):
        with pytest.raises(ValueError, match="it must be 1 to 3 numbers of threads"):
            kernel.occupancy(block)
    with pytest.raises(ValueError, match="shared is -1; it must be a number of bytes"):
        kernel.occupancy(32, -1)
    with pytest.raises(TypeError):
        kernel.occupancy(1.5)


def test_kept_texts_are_the_same_each_time():
    first = kernix.load_cuda_inline("inspected", SPILLING, **OPTIONS)
    again = kernix.load_cuda_inline("inspected", SPILLING, force_rebuild=True, **OPTIONS)
    assert (again.content_hash, again.cache_hit) == (first.content_hash, False)


def test_kept_texts_outlive_the_linkers_sweep(tmp_path):
    flags = ["-Wl,--gc-sections", "-s"]
    module = kernix.load_cuda_inline("inspected", SPILLING, extra_ldflags=flags, build_directory=tmp_path, **OPTIONS)
    assert module.ptx()
    assert ".kernix.texts" in sections(tmp_path / "inspected.so")


@pytest.mark.skipif(nvdisasm() is None, reason="needs nvdisasm beside nvcc (wheel nvidia-cuda-nvdisasm)")
def test_machine_code_in_words():
    module = kernix.load_cuda_inline("inspected", SPILLING, **OPTIONS)
    assert "BAR.SYNC" in module.sass("sm_90")
    assert re.search(r"\.target\tsm_80|EF_CUDA_SM80", module.sass("sm_80"))  # as CUDA 13 and 12 write it


def test_without_nvdisasm_there_is_a_clear_error(tmp_path, monkeypatch):
    """With a toolkit that has none; once it is there, the same load is another build."""
    from kernix import _core, _environment

    if pathlib.Path("/usr/bin/nvdisasm").exists():
        pytest.skip("the system's own nvdisasm, in /usr/bin, is every toolkit's")
    toolkit = pathlib.Path(_core.find_nvcc(_environment.site_packages())).resolve().parents[1]
    bare = tmp_path / "toolkit"
    shutil.copytree(toolkit, bare, symlinks=True, copy_function=lambda a, b: pathlib.Path(b).symlink_to(a))
    for program in (bare / "bin").iterdir():
        if program.is_symlink():  # nvcc finds its parts beside its real place
            source = program.resolve()
            program.unlink()
            if program.name != "nvdisasm":
                shutil.copy(source, program)
    monkeypatch.setenv("CUDA_HOME", str(bare))
    module = kernix.load_cuda_inline("inspected", SPILLING, **OPTIONS)
    assert module.ptx()
    with pytest.raises(kernix.KernelRequestError, match="nvidia-cuda-nvdisasm"):
        module.sass()

    (bare / "bin" / "nvdisasm").write_text("#!/bin/sh\necho in words\n")
    (bare / "bin" / "nvdisasm").chmod(0o755)
    kernix.clear_cache("another")  # so that this process asks the daemon again
    assert kernix.load_cuda_inline("inspected", SPILLING, **OPTIONS).sass() == "in words\n"


def test_names_that_are_none():
    module = kernix.load_cpp_inline("inspected_cpp", kernels.ADD_ONE, auto_register=False)
    for read in (module.ptx, module.sass):
        with pytest.raises(TypeError, match="architecture is of type int; it must be a str or None"):
            read(90)
        with pytest.raises(ValueError, match='architecture is empty; name one, such as "sm_90"'):
            read("")
    with pytest.raises(TypeError, match="label is of type int; it must be a str or None"):
        module.source(3)
    with pytest.raises(KeyError, match="no source ''"):
        module.source("")
    assert "kernix_handler_add_one" in module.source()


def test_what_was_not_kept_is_a_clear_error():
    module = kernix.load_cuda_inline("cuda_examples", kernels.VECTOR_ADD, compute_capability="sm_90")
    with pytest.raises(kernix.KernelRequestError, match="without `keep`"):
        module.ptx()
    cpp = kernix.load_cpp_inline("inspected_cpp", kernels.ADD_ONE, auto_register=False)
    with pytest.raises(kernix.KernelRequestError, match="only CUDA modules"):
        cpp.resources()
    assert "kernix_handler_add_one" in cpp.source()


# Counts the architectures that a pass compiles for: two in the build, one where the PTX of each is made.
INCLUDES_FOR_ONE = r"""
#define SECOND_OR(a, b, c, ...) c
#define COUNT(...) SECOND_OR(__VA_ARGS__, 2, 1)
#define COUNT_EXPANDED(list) COUNT(list)
#if defined(__CUDA_ARCH_LIST__)
#if COUNT_EXPANDED(__CUDA_ARCH_LIST__) == 1
#define HIDDEN <%s>
#include HIDDEN
#endif
#endif
#ifndef VALUE
#define VALUE 1
#endif
__global__ void set(int* y) { *y = VALUE; }
"""


def test_what_is_read_for_the_ptx_alone_counts(tmp_path):
    header = tmp_path / "hidden.h"
    source = INCLUDES_FOR_ONE % header + kernels.VECTOR_ADD
    options = {"auto_register": False, "compute_capability": "8.0,9.0", "keep": True}
    for value in (4711, 4712):
        header.write_text(f"#define VALUE {value}\n")
        kernix.clear_cache("nothing")  # so that this process asks the daemon again
        assert str(value) in kernix.load_cuda_inline("ptx_alone", source, **options).ptx()


def test_a_build_for_debuggers(tmp_path):
    options = {"auto_register": False, "compute_capability": "sm_90", "build_directory": tmp_path}
    plain = kernix.load_cuda_inline("debugged", kernels.VECTOR_ADD, keep=True, **options)
    assert ".debug_info" not in sections(tmp_path / "debugged.so")
    assert ".debug" not in plain.ptx().split(".target")[1].split("\n")[0]
    module = kernix.load_cuda_inline("debugged", kernels.VECTOR_ADD, keep=True, debug=True, **options)
    assert ".debug_info" in sections(tmp_path / "debugged.so")
    assert ", debug" in module.ptx().split(".target")[1].split("\n")[0]  # -G
    assert module.key != plain.key

    kernix.load_cpp_inline("debugged", kernels.ADD_ONE, debug=True, auto_register=False, build_directory=tmp_path)
    assert ".debug_info" in sections(tmp_path / "debugged.so")


def test_lines_of_device_code():
    """``-lineinfo`` is a flag of nvcc's, and no library."""
    flags = ["-lineinfo"]
    options = {"auto_register": False, "compute_capability": "sm_90", "keep": True, "extra_cuda_cflags": flags}
    module = kernix.load_cuda_inline("with_lines", kernels.VECTOR_ADD, **options)
    assert re.search(r"^\s*\.loc\s", module.ptx(), re.MULTILINE)
    assert ".debug" not in module.ptx().split(".target")[1].split("\n")[0]
    again = kernix.load_cuda_inline("with_lines", kernels.VECTOR_ADD, force_rebuild=True, **options)
    assert again.content_hash == module.content_hash


def test_flags_come_after_those_of_debug(capsys):
    kernix.load_cpp_inline(
        "debugged",
        kernels.ADD_ONE,
        debug=True,
        extra_cflags=["-O1"],
        verbose=True,
        auto_register=False,
        force_rebuild=True,
    )
    lines = capsys.readouterr().err.splitlines()  # its handlers' part may be compiled first
    command = next(line for line in lines if " -c " in line and "handler" not in line).split()
    assert command.index("-O0") < command.index("-g") < command.index("-O1")
