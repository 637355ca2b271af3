# SPDX-License-Identifier: Apache-2.0
"""The kernel headers' support for device code: element types by dispatch, half arithmetic, checks on the device."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernix

AXPY = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
template <typename T>
__global__ void axpy_kernel(const T* x, const T* y, T* out, T alpha, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) out[idx] = alpha * x[idx] + y[idx];
}
// @BE axpy arg arg ret attr.alpha:float32 stream
void axpy(const BE::Tensor x, const BE::Tensor y, BE::Tensor out, float alpha, cudaStream_t stream) {
    int n = x.numel();
    BE_DISPATCH_FLOATING_AND_HALF(x.dtype(), scalar_t, {
        axpy_kernel<scalar_t><<<(n + 255) / 256, 256, 0, stream>>>(
            x.data_ptr<const scalar_t>(), y.data_ptr<const scalar_t>(), out.data_ptr<scalar_t>(),
            static_cast<scalar_t>(alpha), n);
    });
    BE_CHECK_KERNEL_LAUNCH();
}
"""

NEGATE = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
template <typename T>
__global__ void negate_kernel(const T* x, T* out, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) out[idx] = static_cast<T>(-x[idx]);
}
// @BE negate arg ret stream
void negate(const BE::Tensor x, BE::Tensor out, cudaStream_t stream) {
    int n = x.numel();
    BE_DISPATCH_INTEGRAL(x.dtype(), scalar_t, {
        negate_kernel<scalar_t><<<(n + 255) / 256, 256, 0, stream>>>(
            x.data_ptr<const scalar_t>(), out.data_ptr<scalar_t>(), n);
    });
    BE_CHECK_KERNEL_LAUNCH();
}
"""

# A failed check on the device traps, and the process can no longer use the GPU, so this runs in a separate process.
DEVICE_CHECK = r'''
import sys
import jax, jax.numpy as jnp
import kernix
kernix.set_cache_dir(sys.argv[1])
kernix.load_cuda_inline("checked", r"""
#include <cuda_runtime.h>
#include "brainevent/common.h"
__global__ void copy_kernel(BE::Tensor x, BE::Tensor out) {
    BE_CHECK(x.data_ptr<const float>()[threadIdx.x] >= 0) << "negative element";
    out.data_ptr<float>()[threadIdx.x] = x.data_ptr<const float>()[threadIdx.x];
}
// @BE copy arg ret stream
void copy(const BE::Tensor x, BE::Tensor out, cudaStream_t stream) {
    copy_kernel<<<1, static_cast<unsigned>(x.numel()), 0, stream>>>(x, out);
    BE_CHECK_KERNEL_LAUNCH();
}
""")
x = jnp.asarray([1.0, 2.0], jnp.float32)
copy = jax.ffi.ffi_call("checked.copy", jax.ShapeDtypeStruct(x.shape, x.dtype))
assert copy(x).tolist() == [1.0, 2.0]
try:
    jax.block_until_ready(copy(-x))
except Exception as error:
    print("raised:", type(error).__name__, flush=True)
    import os
    os._exit(0)  # JAX's own shutdown would touch the GPU again
sys.exit("the failed check went unnoticed")
'''


def like(x):
    """Return the shape and dtype of an array, as ``ffi_call`` takes them."""
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64], ids=lambda d: d.__name__)
def test_floating_and_half_arithmetic(dtype):
    kernix.load_cuda_inline("gpu_axpy", AXPY)
    with jax.enable_x64(dtype is jnp.float64):
        x = jnp.arange(1000).astype(dtype) / dtype(8)
        y = jnp.ones(1000, dtype)
        call = jax.ffi.ffi_call("gpu_axpy.axpy", like(x))
        result = jax.jit(lambda x, y: call(x, y, alpha=np.float32(0.5)))(x, y)
        assert result.dtype == x.dtype
        np.testing.assert_allclose(
            np.asarray(result, np.float64), 0.5 * np.asarray(x, np.float64) + 1, rtol=float(jnp.finfo(dtype).eps)
        )


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers(dtype):
    kernix.load_cuda_inline("gpu_negate", NEGATE)
    with jax.enable_x64(True):
        x = jnp.arange(100).astype(dtype)
        np.testing.assert_array_equal(
            jax.jit(jax.ffi.ffi_call("gpu_negate.negate", like(x)))(x), np.negative(np.asarray(x))
        )


def test_a_dtype_outside_the_family_is_a_jax_exception():
    kernix.load_cuda_inline("gpu_negate", NEGATE)
    x = jnp.ones(4, jnp.float32)
    with pytest.raises(Exception, match="BE_DISPATCH_INTEGRAL: unsupported dtype float32"):
        jax.block_until_ready(jax.ffi.ffi_call("gpu_negate.negate", like(x))(x))


def test_a_failed_check_on_the_device_stops_the_kernel(private_daemon):
    done = subprocess.run(
        [sys.executable, "-c", DEVICE_CHECK, private_daemon],
        env=dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "raised: " in done.stdout
    assert "x.data_ptr<const float>()[threadIdx.x] >= 0: negative element" in done.stdout
