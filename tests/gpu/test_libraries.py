# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's libraries inside kernels, and kernels inside a loop on the device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernix

CUB = r"""
#include <cub/device/device_reduce.cuh>
#include "brainevent/common.h"
// The size comes first, from a call that only asks for it.
static size_t SumBytes(int64_t count) {
    size_t bytes = 0;
    BE_CUDA_CHECK(cub::DeviceReduce::Sum(nullptr, bytes, static_cast<const float*>(nullptr),
                                         static_cast<float*>(nullptr), static_cast<int>(count)));
    return bytes;
}
// @BE total arg ret stream scratch:SumBytes(arg0.numel())
void total(const BE::Tensor x, BE::Tensor y, cudaStream_t stream, BE::Scratch scratch) {
    size_t bytes = scratch.size();
    BE_CUDA_CHECK(cub::DeviceReduce::Sum(scratch.data(), bytes, x.data_ptr<const float>(), y.data_ptr<float>(),
                                         static_cast<int>(x.numel()), stream));
}
"""

CUBLAS = r"""
#include <cublas_v2.h>
#include "brainevent/common.h"
static cublasHandle_t Handle() {
    static cublasHandle_t handle = [] {
        cublasHandle_t made = nullptr;
        BE_CHECK(cublasCreate(&made) == CUBLAS_STATUS_SUCCESS);
        return made;
    }();
    return handle;
}
// Row-major a (m x k) times b (k x n): to cuBLAS, whose matrices are column-major, these are the transposes.
// @BE multiply
void multiply(const BE::Tensor a, const BE::Tensor b, BE::Tensor c, cudaStream_t stream) {
    const int m = a.shape(0), k = a.shape(1), n = b.shape(1);
    const float one = 1, zero = 0;
    BE_CHECK(cublasSetStream(Handle(), stream) == CUBLAS_STATUS_SUCCESS);
    BE_CHECK(cublasSgemm(Handle(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b.data_ptr<const float>(), n,
                         a.data_ptr<const float>(), k, &zero, c.data_ptr<float>(), n) == CUBLAS_STATUS_SUCCESS);
}
"""

STEP = r"""
#include "brainevent/common.h"
__global__ void step_kernel(const float* x, float* y, int64_t n) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i < n) y[i] = x[i] + 1;
}
// @BE step
void step(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
    step_kernel<<<(x.numel() + 255) / 256, 256, 0, stream>>>(x.data_ptr<const float>(), y.data_ptr<float>(), x.numel());
    BE_CHECK_KERNEL_LAUNCH();
}
"""


def test_cub_sums_with_scratch_memory():
    module = kernix.load_cuda_inline("gpu_cub", CUB)
    x = jnp.arange(100_000, dtype=jnp.float32)
    total = module.total(x, out=jax.ShapeDtypeStruct((), jnp.float32))
    np.testing.assert_allclose(total, np.arange(100_000, dtype=np.float64).sum(), rtol=1e-5)


def test_cublas_multiplies():
    try:
        module = kernix.load_cuda_inline("gpu_cublas", CUBLAS, extra_ldflags=["-lcublas"])
    except kernix.KernelCompilationError as error:
        if "cublas_v2.h" in str(error):
            pytest.skip("this machine has no headers of cuBLAS (the whole toolkit, or the wheel nvidia-cublas)")
        raise
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in [(33, 17), (17, 65)])
    product = module.multiply(jnp.asarray(a), jnp.asarray(b), out=jax.ShapeDtypeStruct((33, 65), jnp.float32))
    np.testing.assert_allclose(product, a @ b, rtol=1e-4, atol=1e-4)


def test_a_loop_on_the_device():
    module = kernix.load_cuda_inline("gpu_loop", STEP)
    loop = jax.jit(lambda x, count: jax.lax.fori_loop(0, count, lambda _, value: module.step(value), x))
    x = jnp.zeros(1000, jnp.float32)
    for count in (0, 1, 7, 100):
        np.testing.assert_array_equal(loop(x, count), np.full(1000, count, np.float32))
