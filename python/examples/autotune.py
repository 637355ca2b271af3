# SPDX-License-Identifier: Apache-2.0
"""Tunes a matrix product in C++ and, if JAX has a GPU, a reduction in CUDA.

The second run takes the winners from the first. ``--force`` searches again.
"""

import argparse
import time

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
    """Tune the reduction on the GPU, and compare it with that of XLA."""
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
    with_kernel = jax.jit(lambda x: total(x).sum())
    for name, function in (("kernix", with_kernel), ("XLA", jax.jit(jnp.sum))):
        function(x).block_until_ready()
        begin = time.perf_counter()
        for _ in range(20):
            result = function(x)
        result.block_until_ready()
        seconds = (time.perf_counter() - begin) / 20
        print(f"{name}: {seconds * 1e6:.0f} µs, {x.nbytes / seconds / 1e9:.0f} GB/s")


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
    else:
        print("no GPU here: the CUDA reduction is not tuned")


if __name__ == "__main__":
    main()
