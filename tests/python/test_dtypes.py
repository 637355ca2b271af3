# SPDX-License-Identifier: Apache-2.0
"""Every element type: what a kernel sees of it, and conversions bit by bit as NumPy and ml_dtypes do them."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import kernix

pytestmark = pytest.mark.usefixtures("on_cpu")

FLOAT8 = ["e4m3fn", "e5m2", "e4m3", "e3m4", "e4m3b11fnuz", "e4m3fnuz", "e5m2fnuz"]
BYTES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16"]
BYTES += ["float32", "float64", "complex64", "complex128", "float8_e8m0fnu", *(f"float8_{name}" for name in FLOAT8)]
PACKED = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}

# What a tensor says of itself, then its bytes.
SEE = """
#include "brainevent/common.h"
// @BE see
void see(const BE::Tensor& x, BE::Tensor& dtype, BE::Tensor& numbers, BE::Tensor& bytes) {
    snprintf(dtype.data_ptr<char>(), 32, "%s", dtype_name(x.dtype()));
    int64_t* n = numbers.data_ptr<int64_t>();
    *n++ = x.ndim();
    *n++ = x.numel();
    *n++ = static_cast<int64_t>(x.nbytes());
    *n++ = static_cast<int64_t>(x.element_size());
    *n++ = dtype_bits(x.dtype());
    for (int i = 0; i < x.ndim(); ++i) *n++ = x.shape(i);
    for (int i = 0; i < x.ndim(); ++i) *n++ = x.stride(i);
    for (size_t i = 0; i < x.nbytes(); ++i) bytes.data_ptr<char>()[i] = x.data_ptr<const char>()[i];
}
// @BE copy
void copy(const BE::Tensor& x, BE::Tensor& y) {
    BE_CHECK(x.dtype() == y.dtype() && x.nbytes() == y.nbytes()) << x.dtype() << " is no " << y.dtype();
    for (size_t i = 0; i < x.nbytes(); ++i) y.data_ptr<char>()[i] = x.data_ptr<const char>()[i];
}
"""

CONVERT = """
#include "brainevent/common.h"
#include "brainevent/float8.h"
template <typename From, typename To>
void Convert(const BE::Tensor& x, BE::Tensor& y) {
    const From* from = x.data_ptr<const From>();
    To* to = y.data_ptr<To>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i];
}
// @BE to_float
void to_float(const BE::Tensor& x, BE::Tensor& y) {
    if (x.dtype() == BE::DType::Float8E8M0FNU) return Convert<BE::float8_e8m0fnu_t, float>(x, y);
    if (x.dtype() == BE::DType::Float16) return Convert<BE::float16_t, float>(x, y);
    if (x.dtype() == BE::DType::BFloat16) return Convert<BE::bfloat16_t, float>(x, y);
    BE_DISPATCH_FLOAT8(x.dtype(), T, { Convert<T, float>(x, y); });
}
// @BE from_float
void from_float(const BE::Tensor& x, BE::Tensor& y) {
    if (y.dtype() == BE::DType::Float16) return Convert<float, BE::float16_t>(x, y);
    if (y.dtype() == BE::DType::BFloat16) return Convert<float, BE::bfloat16_t>(x, y);
    BE_DISPATCH_FLOAT8(y.dtype(), T, { Convert<float, T>(x, y); });
}
// @BE everything
void everything(const BE::Tensor& x, BE::Tensor& size) {
    BE_DISPATCH_EVERYTHING(x.dtype(), T, { *size.data_ptr<int64_t>() = sizeof(T); });
}
// @BE double_it
void double_it(const BE::Tensor& x, BE::Tensor& y) {
    BE_DISPATCH_FLOAT8(x.dtype(), T, {
        T value = *x.data_ptr<T>();
        value += value;
        *y.data_ptr<T>() = value;
    });
}
// @BE conjugate
void conjugate(const BE::Tensor& x, BE::Tensor& y) {
    BE_DISPATCH_COMPLEX(x.dtype(), T, {
        const T value = *x.data_ptr<T>();
        *y.data_ptr<T>() = T{value.real, -value.imag};
    });
}
"""


@pytest.fixture(scope="module", autouse=True)
def modules(place):
    """Both sources, compiled."""
    kernix.load_cpp_inline("dtype_see", SEE)
    kernix.load_cpp_inline("dtype_convert", CONVERT)


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def call(target, x, shape, dtype):
    return jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(shape, dtype))(x)


def pattern(name, shape):
    """Return an array that holds every element type's own bits, in a pattern that repeats nowhere soon."""
    dtype = dtype_of(name)
    count = int(np.prod(shape))
    if name in PACKED:
        return (np.arange(count) % 7).astype(np.float32).astype(dtype).reshape(shape)
    if name == "bool":
        return (np.arange(count) % 3 == 0).reshape(shape)
    return (np.arange(count * dtype.itemsize) * 37 % 251).astype(np.uint8).view(dtype).reshape(shape)


def packed_bytes(x, bits):
    """Return what XLA makes of an array that NumPy keeps in a byte each: the first element is in the lowest bits."""
    values = x.reshape(-1).view(np.uint8) & (2**bits - 1)
    values = np.pad(values, (0, -len(values) % (8 // bits))).reshape(-1, 8 // bits).astype(np.uint32)
    return (values << np.arange(0, 8, bits)).sum(1).astype(np.uint8)


def see(x):
    """Return name, numbers and bytes as a kernel sees them."""
    x = jnp.asarray(x)
    numbers = jax.ShapeDtypeStruct((5 + 2 * x.ndim,), np.int64)
    size = max(1, x.size * 16)
    results = (jax.ShapeDtypeStruct((32,), np.uint8), numbers, jax.ShapeDtypeStruct((size,), np.uint8))
    name, numbers, data = jax.ffi.ffi_call("dtype_see.see", results)(x)
    return np.asarray(name).tobytes().split(b"\0")[0].decode(), np.asarray(numbers).tolist(), np.asarray(data)


SHAPES = [(), (0,), (5,), (2, 3), (3, 0, 2), (1, 2, 1, 3, 1, 1, 2, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [*BYTES, *PACKED])
def test_a_kernel_sees_the_array(name, shape):
    with jax.enable_x64(True):
        x = pattern(name, shape)
        seen_name, numbers, data = see(x)
        bits = PACKED.get(name, 8 * x.dtype.itemsize)
        nbytes = -(-x.size * bits // 8)
        strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        assert seen_name == name
        assert numbers == [len(shape), x.size, nbytes, bits // 8, bits, *shape, *strides]
        expected = packed_bytes(x, bits) if name in PACKED else np.frombuffer(x.tobytes(), np.uint8)
        data = data[:nbytes].copy()
        if unused := nbytes * 8 - x.size * bits:  # XLA leaves anything there
            data[-1] &= 0xFF >> unused
        np.testing.assert_array_equal(data, expected)
        copied = np.asarray(call("dtype_see.copy", jnp.asarray(x), shape, x.dtype))
        assert copied.dtype == x.dtype
        assert copied.tobytes() == x.tobytes()


def test_nine_dimensions_are_refused():
    with pytest.raises(jax.errors.JaxRuntimeError, match="argument 0 has 9 dimensions; BE::Tensor holds at most 8"):
        call("dtype_see.copy", np.zeros((1,) * 9, np.float32), (1,) * 9, np.float32).block_until_ready()


@pytest.mark.parametrize("name", ["int1", "uint1"])
def test_one_bit_integers_do_not_get_past_jax(name):
    """XLA's CPU runtime makes bool of them, and refuses the array: nothing that a handler could mend."""
    with pytest.raises(Exception, match="expected parameter 0"):
        call("dtype_see.copy", jnp.asarray(np.zeros(8, dtype_of(name))), (8,), dtype_of(name)).block_until_ready()


def test_another_layout_is_nothing_that_a_kernel_can_notice():
    """XLA transposes the data, and passes shape and type as if it had not: row-major strides would be wrong."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    function = jax.ffi.ffi_call("dtype_see.copy", jax.ShapeDtypeStruct(x.shape, x.dtype), input_layouts=[(0, 1)])
    np.testing.assert_array_equal(function(x), x)  # JAX names axes from major to minor: this is row-major
    function = jax.ffi.ffi_call("dtype_see.copy", jax.ShapeDtypeStruct(x.shape, x.dtype), input_layouts=[(1, 0)])
    np.testing.assert_array_equal(np.asarray(function(x)).reshape(-1), x.T.reshape(-1))


def floats():
    """Return every pattern of a float's upper half with lower halves at and about ties; NaN, infinities, all signs."""
    upper = np.arange(65536, dtype=np.uint32) << 16
    lower = np.array([0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (upper[:, None] | lower).reshape(-1).view(np.float32)


def assert_same_floats(got, expected):
    """The same numbers, signed zeros told apart; NaN is NaN whatever its bits."""
    assert got.dtype == expected.dtype
    is_nan = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), is_nan)
    as_bits = f"u{got.dtype.itemsize}"
    np.testing.assert_array_equal(got.view(as_bits)[~is_nan], expected.view(as_bits)[~is_nan])


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e8m0fnu", *(f"float8_{name}" for name in FLOAT8)])
def test_every_number_becomes_its_float(name):
    dtype = dtype_of(name)
    x = np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)
    got = np.asarray(call("dtype_convert.to_float", jnp.asarray(x), x.shape, np.float32))
    assert_same_floats(got, x.astype(np.float32))


@pytest.mark.parametrize("name", ["float16", "bfloat16", *(f"float8_{name}" for name in FLOAT8)])
def test_floats_are_rounded_as_ml_dtypes_does(name):
    x = floats()
    got = np.asarray(call("dtype_convert.from_float", x, x.shape, dtype_of(name)))
    with np.errstate(all="ignore"):
        assert_same_floats(got, x.astype(dtype_of(name)))


@pytest.mark.parametrize("name", BYTES)
def test_everything_that_has_a_c_type_is_dispatched(name):
    with jax.enable_x64(True):
        assert call("dtype_convert.everything", jnp.asarray(pattern(name, ())), (), np.int64) == dtype_of(name).itemsize


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_type_has_no_c_type(name):
    with pytest.raises(jax.errors.JaxRuntimeError, match=f"BE_DISPATCH_EVERYTHING: unsupported dtype {name}"):
        call("dtype_convert.everything", jnp.asarray(pattern(name, ())), (), np.int32).block_until_ready()


@pytest.mark.parametrize("name", [f"float8_{name}" for name in FLOAT8])
def test_float8_computes_as_float(name):
    dtype = dtype_of(name)
    assert call("dtype_convert.double_it", jnp.asarray(np.array(1.5, dtype)), (), dtype) == np.array(3.0, dtype)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_numbers(name):
    with jax.enable_x64(True):
        x = np.array(1.5 - 2.5j, name)
        assert call("dtype_convert.conjugate", x, (), x.dtype) == x.conj()
