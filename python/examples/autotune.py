# SPDX-License-Identifier: Apache-2.0
"""Tunes a matrix product in C++ and, if JAX has a GPU, a reduction and a matrix product in CUDA.

The second run takes the winners from the first. ``--force`` searches again.
"""

import argparse
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import kernix

PRODUCT = r"""
#include <algorithm>
#include "brainevent/common.h"

// c = a b, in blocks of ROWS rows of a and DEPTH rows of b.
// @BE product
void product(BE::In<float, 2> a, BE::In<float, 2> b, BE::Out<float, 2> c) {
    const int64_t n = a.shape(0), depth = a.shape(1), m = b.shape(1);
    const float *A = a.data(), *B = b.data();
    float* C = c.data();
    std::fill_n(C, n * m, 0.0f);
    for (int64_t k0 = 0; k0 < depth; k0 += DEPTH)
        for (int64_t i0 = 0; i0 < n; i0 += ROWS)
            for (int64_t k = k0; k < std::min<int64_t>(k0 + DEPTH, depth); ++k)
                for (int64_t i = i0; i < std::min<int64_t>(i0 + ROWS, n); ++i)
                    for (int64_t j = 0; j < m; ++j) C[i * m + j] += A[i * depth + k] * B[k * m + j];
}
"""

REDUCTION = r"""
// Adds up a part of x with each block. The parts are added by the caller.
// @BE parts
__global__ void parts(const float* __restrict__ x, float* y, int n) {
    __shared__ float shared[1024];
    float sums[UNROLL] = {};
    const int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += UNROLL * step)
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) sums[k] += i + k * step < n ? x[i + k * step] : 0.0f;
    float sum = 0;
    for (float each : sums) sum += each;
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = shared[0];
}
"""
PARTS = 1024

# What CUB makes of the same sum.
LIBRARY_REDUCTION = r"""
#include <cub/device/device_reduce.cuh>
// @BE total
void total(BE::In<float> x, BE::Out<uint8_t> scratch, BE::Out<float> y, cudaStream_t stream) {
    size_t bytes = scratch.size();
    BE_CUDA_CHECK(cub::DeviceReduce::Sum(scratch.data(), bytes, x.data(), y.data(), x.size(), stream));
}
"""

# Each block makes TILE_M x TILE_N elements of c, DEPTH products at a time, and each thread THREAD_M x THREAD_N of them.
GPU_PRODUCT = r"""
// @BE product
__global__ void product(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
    constexpr int kThreads = (TILE_M / THREAD_M) * (TILE_N / THREAD_N);
    __shared__ float a_tile[DEPTH][TILE_M + 4];  // transposed
    __shared__ float b_tile[DEPTH][TILE_N];
    const int row = blockIdx.y * TILE_M, column = blockIdx.x * TILE_N;
    const int own_row = threadIdx.x / (TILE_N / THREAD_N), own_column = threadIdx.x % (TILE_N / THREAD_N);
    float sums[THREAD_M][THREAD_N] = {};
    for (int k0 = 0; k0 < n; k0 += DEPTH) {
        for (int i = threadIdx.x; i < TILE_M * DEPTH; i += kThreads)
            a_tile[i % DEPTH][i / DEPTH] = a[(row + i / DEPTH) * n + k0 + i % DEPTH];
        for (int i = threadIdx.x; i < DEPTH * TILE_N; i += kThreads)
            b_tile[i / TILE_N][i % TILE_N] = b[(k0 + i / TILE_N) * n + column + i % TILE_N];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; ++k)
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
                for (int j = 0; j < THREAD_N; ++j)
                    sums[i][j] += a_tile[k][own_row + i * (TILE_M / THREAD_M)]
                                * b_tile[k][own_column + j * (TILE_N / THREAD_N)];
        __syncthreads();
    }
    for (int i = 0; i < THREAD_M; ++i)
        for (int j = 0; j < THREAD_N; ++j)
            c[(row + own_row + i * (TILE_M / THREAD_M)) * n + column + own_column + j * (TILE_N / THREAD_N)]
                = sums[i][j];
}
"""
SIZE = 1024


def tune_product(force: bool) -> None:
    """Tune the matrix product on the CPU."""
    a, b = np.random.default_rng(0).random((2, 192, 192), np.float32)
    tuned = kernix.autotune(
        PRODUCT,
        {"ROWS": [1, 4, 16, 64], "DEPTH": [4, 16, 64]},
        [a, b],
        check=a @ b,
        extra_cflags=["-march=native"],
        name="product",
        force=force,
    )
    show(tuned)
    assert tuned.function is not None
    with jax.default_device(jax.devices("cpu")[0]):
        np.testing.assert_allclose(jax.jit(tuned.function)(a, jnp.asarray(b)), a @ b, rtol=1e-4)


def tune_reduction(force: bool) -> None:
    """Tune the reduction on the GPU, and compare it with those of CUB and XLA."""
    x = jnp.ones(1 << 26, jnp.float32)
    tuned = kernix.autotune(
        REDUCTION,
        {"UNROLL": [1, 2, 4, 8], "block": [128, 256, 512, 1024]},
        [x],
        out=jax.ShapeDtypeStruct((PARTS,), "float32"),
        attributes={"n": x.size, "grid": PARTS},
        check=lambda parts: float(parts.sum()) == x.size,
        name="reduction",
        force=force,
    )
    show(tuned)
    assert tuned.function is not None
    total = tuned.function
    library = kernix.load_cuda_inline("library_reduction", LIBRARY_REDUCTION)
    out = [jax.ShapeDtypeStruct((1 << 20,), "uint8"), jax.ShapeDtypeStruct((1,), "float32")]
    rivals = {
        "kernix": lambda x: total(x).sum(),
        "CUB": lambda x: library.total(x, out=out)[1],
        "XLA": jnp.sum,
    }
    for name, seconds in measured(rivals, x).items():
        print(f"{name}: {seconds * 1e6:.0f} µs, {x.nbytes / seconds / 1e9:.0f} GB/s")
    print()


def tune_gpu_product(force: bool) -> None:
    """Tune the matrix product on the GPU, and compare it with that of cuBLAS, which XLA calls."""
    a, b = jax.random.uniform(jax.random.key(0), (2, SIZE, SIZE))

    def exact(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.matmul(a, b, precision="highest")

    tuned = kernix.autotune(
        GPU_PRODUCT,
        {
            "TILE_M": [32, 64, 128],
            "TILE_N": [32, 64, 128],
            "DEPTH": [8, 16, 32],
            "THREAD_M": [4, 8],
            "THREAD_N": [4, 8],
        },
        [a, b],
        launch={
            "grid": lambda s: (SIZE // s["TILE_N"], SIZE // s["TILE_M"]),
            "block": lambda s: (s["TILE_M"] // s["THREAD_M"]) * (s["TILE_N"] // s["THREAD_N"]),
        },
        attributes={"n": SIZE},
        check=exact(a, b),
        name="gpu_product",
        force=force,
    )
    show(tuned)
    assert tuned.function is not None
    for name, seconds in measured({"kernix": tuned.function, "cuBLAS": exact}, a, b).items():
        print(f"{name}: {seconds * 1e6:.0f} µs, {2 * SIZE**3 / seconds / 1e12:.1f} TFLOP/s")


def measured(functions: dict[str, Callable[..., jax.Array]], *arguments: jax.Array) -> dict[str, float]:
    """Return the seconds of a call of each function, compiled by JAX."""
    found = {}
    for name, function in functions.items():
        compiled = jax.jit(function)
        compiled(*arguments).block_until_ready()
        begin = time.perf_counter()
        for _ in range(20):
            result = compiled(*arguments)
        result.block_until_ready()
        found[name] = (time.perf_counter() - begin) / 20
    return found


def show(tuned: kernix.TuningResult) -> None:
    """Print a result."""
    print(f"{tuned}\n")


def main() -> None:
    """Tune what this machine can run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--force", action="store_true", help="search again")
    force = parser.parse_args().force
    tune_product(force)
    if jax.default_backend() == "gpu":
        tune_reduction(force)
        tune_gpu_product(force)
    else:
        print("no GPU here: the CUDA kernels are not tuned")


if __name__ == "__main__":
    main()
