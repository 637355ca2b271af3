# SPDX-License-Identifier: Apache-2.0
"""The main use of kernix, starting from an empty cache.

Compiles a C++ and a CUDA kernel through a kernixd that starts automatically, calls them from JAX, repeats this in a
fresh process, and shows the cache's counters. ``make demo`` runs it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from kernix import _environment

CPP_SOURCE = """
#include "brainevent/common.h"

// @BE add_one arg ret
void add_one(const BE::Tensor x, BE::Tensor y) {
    const float* in = x.data_ptr<const float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] + 1.0f;
}
"""

CUDA_SOURCE = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
__global__ void add_kernel(const float* a, const float* b, float* out, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) out[idx] = a[idx] + b[idx];
}
// @BE vector_add arg arg ret stream
void vector_add(const BE::Tensor a, const BE::Tensor b, BE::Tensor out, int64_t stream) {
    int n = a.numel();
    add_kernel<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(
        static_cast<const float*>(a.data_ptr()), static_cast<const float*>(b.data_ptr()),
        static_cast<float*>(out.data_ptr()), n);
    BE_CHECK_KERNEL_LAUNCH();
}
"""

STORE_VARIABLE = "DEMO_STORE"


def load_and_call() -> None:
    """Load both kernels and call those that this machine can run. One process of the demo."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import kernix

    kernix.set_cache_dir(os.environ[STORE_VARIABLE])
    jax.devices()  # exclude JAX's own start-up from the times

    start = time.perf_counter()
    kernix.load_cpp_inline("demo_cpp", CPP_SOURCE)
    print(f"  load_cpp_inline   {1e3 * (time.perf_counter() - start):8.1f} ms")

    x = jnp.arange(5, dtype=jnp.float32)
    with jax.default_device(jax.devices("cpu")[0]):
        y = jax.jit(jax.ffi.ffi_call("demo_cpp.add_one", jax.ShapeDtypeStruct(x.shape, x.dtype)))(x)
    print(f"  add_one({x}) = {y}")
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x) + 1)

    on_gpu = jax.default_backend() == "gpu"
    capability = None if on_gpu else "sm_90"
    start = time.perf_counter()
    module = kernix.load_cuda_inline("demo_cuda", CUDA_SOURCE, compute_capability=capability)
    print(f"  load_cuda_inline  {1e3 * (time.perf_counter() - start):8.1f} ms")

    if on_gpu:
        z = jax.ffi.ffi_call("demo_cuda.vector_add", jax.ShapeDtypeStruct(x.shape, x.dtype))(x, x)
        print(f"  vector_add({x}, same) = {z}")
        np.testing.assert_array_equal(np.asarray(z), 2 * np.asarray(x))
    else:
        print(
            f"  JAX has no GPU here: vector_add is compiled for {capability}, probed and registered as "
            f"demo_cuda.{module.function_names[0]}, not run"
        )


def main() -> int:
    """Run the two processes on a fresh store, then show its statistics and stop its daemon."""
    kernixctl = _environment.program("kernixctl")
    store = tempfile.mkdtemp(prefix="kernix-demo-")
    environment = dict(os.environ, **{STORE_VARIABLE: store})
    try:
        for title in (
            "First process: an empty cache, a kernixd that starts automatically, real compilers",
            "Second, fresh process: served from the cache",
        ):
            print(title, flush=True)
            subprocess.run([sys.executable, __file__, "--load"], env=environment, check=True)
        print("kernixctl cache stats --json", flush=True)
        stats = subprocess.run(
            [kernixctl, "--store", store, "cache", "stats", "--json"], check=True, capture_output=True, text=True
        ).stdout
        print(stats.rstrip())
        counts = json.loads(stats)
        if counts["builds"] != 2 or counts["hits"] != 2:
            print("demo: expected 2 builds and 2 hits", file=sys.stderr)
            return 1
    finally:
        subprocess.run([kernixctl, "--store", store, "shutdown"], check=False, capture_output=True)
        shutil.rmtree(store, ignore_errors=True)
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--load"]:
        load_and_call()
    else:
        sys.exit(main())
