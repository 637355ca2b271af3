# SPDX-License-Identifier: Apache-2.0
"""Editors understand kernels: clangd, with the flags that kernix writes."""

import pathlib
import re
import shutil
import subprocess

import kernels
import pytest

import kernix

HALF_CPP = """
#include "brainevent/common.h"
#include "own.h"
// @BE twice
void twice(const BE::Tensor x, BE::Tensor y) {
    BE_CHECK(x.numel() <= BLOCK) << "too many";
    BE_DISPATCH_FLOATING_AND_HALF(x.dtype(), scalar_t, {
        y.data_ptr<scalar_t>()[0] = OWN * x.data_ptr<const scalar_t>()[0];
    });
}
"""
HALF_CUDA = """
#include "brainevent/common.h"
#include "cuda_common.h"
template <typename T>
__global__ void twice_kernel(const T* x, T* y) { y[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x]; }
// @BE twice
void twice(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
    BE_DISPATCH_FLOATING_AND_HALF(x.dtype(), scalar_t, {
        twice_kernel<<<1, BLOCK, 0, stream>>>(x.data_ptr<const scalar_t>(), y.data_ptr<scalar_t>());
    });
    BE_CHECK_KERNEL_LAUNCH();
}
"""


def errors_of_clangd(path, text):
    """Write `text` to `path` and return the lines with errors that clangd sees there."""
    path.write_text(text)
    done = subprocess.run(["clangd", f"--check={path}"], capture_output=True, text=True)
    assert "All checks completed" in done.stderr, done.stderr
    return [int(line) for line in re.findall(r"^E\[.*?\] \[.*?\] Line (\d+)", done.stderr, re.MULTILINE)]


@pytest.mark.skipif(not shutil.which("clangd"), reason="clangd is not installed")
def test_clangd_understands_kernels(tmp_path):
    own = tmp_path / "own headers"
    own.mkdir()
    (own / "own.h").write_text("#define OWN 2\n")
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "compile_flags.txt").write_text("an older file")
    written = kernix.write_compile_flags(sources, defines={"BLOCK": 128}, extra_include_paths=[own])
    assert pathlib.Path(written) == sources / "compile_flags.txt"
    for name, text in (("a.cpp", HALF_CPP), ("a.cu", HALF_CUDA), ("b.cu", kernels.VECTOR_ADD)):
        assert errors_of_clangd(sources / name, text) == [], name
        wrong = text.replace("const BE::Tensor", "const BE::Tenser", 1)
        line = wrong[: wrong.index("Tenser")].count("\n") + 1
        assert line in errors_of_clangd(sources / name, wrong), name


def test_include_has_what_a_kernel_includes(fresh_name, tmp_path):
    """A compiler of one's own finds what a load finds, with the same contents."""
    include = pathlib.Path(kernix.get_include())
    (tmp_path / "kernel.cpp").write_text(kernels.ADD_ONE)
    subprocess.run(["g++", "-fsyntax-only", f"-I{include}", tmp_path / "kernel.cpp"], check=True)
    assert (include / "compat" / "cuda_common.h").is_file()


def test_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        kernix.write_compile_flags(tmp_path / "nowhere")
