# SPDX-License-Identifier: Apache-2.0
"""Editors understand kernels: clangd, with the flags that kernix writes."""

import pathlib
import re
import shutil
import subprocess

import kernels
import pytest

import kernix

TYPED_CPP = """
#include "brainevent/common.h"
#include "own.h"
// @BE twice
void twice(BE::In<BE::float16_t> x, BE::Out<float, 1> y, float factor) {
    BE_CHECK(x.size() <= BLOCK) << "too many";
    y[0] = OWN * factor * float(x[0]);
}
"""
POINTER_CUDA = """
// @BE twice
__global__ void twice(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x]; }
"""
TYPED_CUDA = """
#include "brainevent/common.h"
#include "cuda_common.h"
template <typename T>
__global__ void twice_kernel(const T* x, T* y) { y[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x]; }
// @BE twice
void twice(BE::In<BE::bfloat16_t> x, BE::Out<BE::bfloat16_t> y, cudaStream_t stream) {
    twice_kernel<<<1, BLOCK, 0, stream>>>(x.data(), y.data());
    BE_CHECK_KERNEL_LAUNCH();
}
"""
TENSOR_CPP = """
#include "brainevent/common.h"
// @BE twice
void twice(const BE::Tensor x, BE::Tensor y) {
    BE_DISPATCH_FLOATING_AND_HALF(x.dtype(), scalar_t, {
        y.data_ptr<scalar_t>()[0] = x.data_ptr<const scalar_t>()[0] + x.data_ptr<const scalar_t>()[0];
    });
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
    for name, text in (("a.cpp", TYPED_CPP), ("b.cpp", TENSOR_CPP), ("a.cu", TYPED_CUDA), ("b.cu", POINTER_CUDA)):
        assert errors_of_clangd(sources / name, text) == [], name
        wrong = text.replace(" twice(", " twice(nothing z, ")
        line = wrong[: wrong.index("nothing")].count("\n") + 1
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
