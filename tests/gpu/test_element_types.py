# SPDX-License-Identifier: Apache-2.0
"""Element types of eight bits and less on the GPU: conversions on the device, and how packed types arrive."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import kernix

CONVERT = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
#include "brainevent/float8.h"
template <typename From, typename To>
__global__ void convert_kernel(const From* from, To* to, int64_t n) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i < n) to[i] = from[i];
}
template <typename From, typename To>
void Convert(const BE::Tensor& x, BE::Tensor& y, cudaStream_t stream) {
    const int64_t n = x.numel();
    convert_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<const From>(), y.data_ptr<To>(), n);
    BE_CHECK_KERNEL_LAUNCH();
}
// @BE to_float
void to_float(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
    if (x.dtype() == BE::DType::Float8E8M0FNU) return Convert<BE::float8_e8m0fnu_t, float>(x, y, stream);
    BE_DISPATCH_FLOAT8(x.dtype(), scalar_t, { Convert<scalar_t, float>(x, y, stream); });
}
// @BE from_float
void from_float(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
    BE_DISPATCH_FLOAT8(y.dtype(), scalar_t, { Convert<float, scalar_t>(x, y, stream); });
}
// @BE bytes
void bytes(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
    BE_CHECK(y.nbytes() == x.nbytes()) << x.dtype() << " has " << x.nbytes() << " bytes";
    BE_CUDA_CHECK(cudaMemcpyAsync(y.data(), x.data(), x.nbytes(), cudaMemcpyDeviceToDevice, stream));
}
"""

FLOAT8 = ["e4m3fn", "e5m2", "e4m3", "e3m4", "e4m3b11fnuz", "e4m3fnuz", "e5m2fnuz"]


@pytest.fixture(scope="module", autouse=True)
def module():
    """The kernels, compiled."""
    return kernix.load_cuda_inline("element_types", CONVERT)


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name))


def call(function, x, dtype, shape=None):
    result = jax.ShapeDtypeStruct(x.shape if shape is None else shape, dtype)
    return np.asarray(jax.ffi.ffi_call(f"element_types.{function}", result)(jnp.asarray(x)))


@pytest.mark.parametrize("name", ["e8m0fnu", *FLOAT8])
def test_every_number_becomes_its_float(name):
    x = np.arange(256, dtype=np.uint8).view(dtype_of(f"float8_{name}"))
    np.testing.assert_array_equal(call("to_float", x, np.float32), x.astype(np.float32))


@pytest.mark.parametrize("name", FLOAT8)
def test_floats_are_rounded_as_ml_dtypes_does(name):
    upper = np.arange(65536, dtype=np.uint32) << 16
    x = (upper[:, None] | np.array([0, 1, 0x7FFF, 0x8000, 0x8001], np.uint32)).reshape(-1).view(np.float32)
    with np.errstate(all="ignore"):
        expected = x.astype(dtype_of(f"float8_{name}"))
    got = call("from_float", x, expected.dtype)
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(("name", "bits"), [("int4", 4), ("uint4", 4), ("int2", 2), ("uint2", 2), ("float4_e2m1fn", 4)])
def test_packed_types_have_the_first_element_in_the_lowest_bits(name, bits):
    x = np.array([1, 0, 1, 1, 0, 0, 1, 0], np.float32).astype(dtype_of(name))
    values = (x.view(np.uint8) & (2**bits - 1)).reshape(-1, 8 // bits)
    expected = (values << np.arange(0, 8, bits)).sum(1).astype(np.uint8)
    np.testing.assert_array_equal(call("bytes", x, np.uint8, expected.shape), expected)
