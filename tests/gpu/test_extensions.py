# SPDX-License-Identifier: Apache-2.0
"""Features of the kernel language beyond the reference, on a GPU: XLA's memory, the device, variadic arguments."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernix

KERNELS = r"""
#include "brainevent/common.h"

struct Taps { float values[8]; int count; };

__global__ void convolve_kernel(const float* x, float* y, Taps taps, int64_t n) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i >= n) return;
    y[i] = 0;
    for (int k = 0; k < taps.count; ++k) y[i] += taps.values[k] * x[(i + k) % n];
}

__global__ void add_kernel(const float* x, float* y, int64_t n) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i < n) y[i] += x[i];
}

__global__ void reverse_kernel(const float* x, float* y, int64_t n) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i < n) y[i] = x[n - 1 - i];
}

static unsigned blocks(int64_t n) { return static_cast<unsigned>((n + 255) / 256); }

// @BE convolve
void convolve(const BE::Tensor x, BE::Tensor y, BE::Span<const float> taps, std::string_view mode, cudaStream_t s) {
    BE_CHECK(mode == "wrap") << mode;
    BE_CHECK(taps.size() <= 8);
    Taps copy = {{}, static_cast<int>(taps.size())};
    for (size_t i = 0; i < taps.size(); ++i) copy.values[i] = taps[i];
    convolve_kernel<<<blocks(x.numel()), 256, 0, s>>>(x.data_ptr<float>(), y.data_ptr<float>(), copy, x.numel());
    BE_CHECK_KERNEL_LAUNCH();
}

// @BE total
void total(BE::Span<const BE::Tensor> xs, BE::Tensor y, cudaStream_t s) {
    BE_CUDA_CHECK(cudaMemsetAsync(y.data(), 0, y.nbytes(), s));
    for (const BE::Tensor& x : xs) {
        add_kernel<<<blocks(y.numel()), 256, 0, s>>>(x.data_ptr<float>(), y.data_ptr<float>(), y.numel());
    }
    BE_CHECK_KERNEL_LAUNCH();
}

// Three times there and back, each time through the scratch memory.
// @BE reversed arg ret scratch:arg0.nbytes() stream
void reversed(const BE::Tensor x, BE::Tensor y, BE::Scratch copy, cudaStream_t s) {
    const int64_t n = x.numel();
    cudaPointerAttributes where = {};
    BE_CUDA_CHECK(cudaPointerGetAttributes(&where, copy.data()));
    BE_CHECK(where.type == cudaMemoryTypeDevice);
    reverse_kernel<<<blocks(n), 256, 0, s>>>(x.data_ptr<float>(), copy.as<float>(), n);
    reverse_kernel<<<blocks(n), 256, 0, s>>>(copy.as<float>(), y.data_ptr<float>(), n);
    reverse_kernel<<<blocks(n), 256, 0, s>>>(y.data_ptr<float>(), copy.as<float>(), n);
    BE_CUDA_CHECK(cudaMemcpyAsync(y.data(), copy.data(), y.nbytes(), cudaMemcpyDeviceToDevice, s));
    BE_CHECK_KERNEL_LAUNCH();
}

// @BE enormous ret scratch:1ll<<40 stream
void enormous(BE::Tensor, BE::Scratch, cudaStream_t) {}

// @BE device ret device_ordinal stream
void device(BE::Tensor out, int ordinal, cudaStream_t s) {
    int current = -1;
    BE_CUDA_CHECK(cudaGetDevice(&current));
    BE_CHECK(current == ordinal) << current << " " << ordinal;
    BE_CUDA_CHECK(cudaMemsetAsync(out.data(), ordinal + 1, out.nbytes(), s));
}

// @BE step arg.token ret.token ret stream
void step(BE::Tensor out, cudaStream_t s) {
    static int counter = 0;
    ++counter;
    BE_CUDA_CHECK(cudaMemcpyAsync(out.data(), &counter, sizeof(counter), cudaMemcpyHostToDevice, s));
}
"""


@pytest.fixture(name="module", autouse=True, scope="module")
def module_fixture():
    """The kernels above, registered as ``gpu_ext.<function>``."""
    return kernix.load_cuda_inline("gpu_ext", KERNELS)


def call(function, x, **attributes):
    """Return a call of ``gpu_ext.<function>`` with a result like `x`."""
    return lambda *xs: jax.ffi.ffi_call(f"gpu_ext.{function}", jax.ShapeDtypeStruct(x.shape, x.dtype))(
        *xs, **attributes
    )


def test_strings_and_arrays():
    x = jnp.arange(1000, dtype=jnp.float32)
    taps = np.array([1, 0, -2], np.float32)
    expected = np.asarray(x) - 2 * np.roll(np.asarray(x), -2)
    np.testing.assert_array_equal(jax.jit(call("convolve", x, taps=taps, mode="wrap"))(x), expected)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"convolve: attribute 'taps' \(float32\[\]\) is an array of"):
        jax.block_until_ready(call("convolve", x, taps=taps.astype(int), mode="wrap")(x))


@pytest.mark.parametrize("count", [0, 1, 20])
def test_any_number_of_arguments(count):
    xs = [jnp.full(300, i, jnp.float32) for i in range(count)]
    np.testing.assert_array_equal(call("total", jnp.zeros(300, jnp.float32))(*xs), np.full(300, sum(range(count))))


@pytest.mark.parametrize("size", [1, 1000, 3_000_000])
def test_scratch_is_device_memory_of_this_call(size):
    """Calls follow each other without a wait, and each gets its own result: memory is freed in stream order."""
    x = jnp.arange(size, dtype=jnp.float32)
    reverse = call("reversed", x)
    np.testing.assert_array_equal(reverse(x), np.asarray(x)[::-1])

    def body(_, value):
        return reverse(reverse(value) + 1)

    many = jax.jit(lambda value: jax.lax.fori_loop(0, 50, body, value))
    expected = np.asarray(x)
    for _ in range(50):
        expected = (expected[::-1] + np.float32(1))[::-1]
    np.testing.assert_array_equal(many(x), expected)


def test_scratch_that_there_is_not():
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"(?i)RESOURCE_EXHAUSTED|out of memory"):
        jax.block_until_ready(call("enormous", jnp.zeros(1, jnp.float32))())


def test_device_ordinal():
    for each in jax.local_devices():
        with jax.default_device(each):
            out = call("device", jnp.zeros(4, jnp.uint8))()
        assert out.tolist() == [each.local_hardware_id + 1] * 4


def test_tokens_put_calls_in_order():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        token_type = getattr(jax.ffi, "abstract_token", None) or jax.core.abstract_token  # the latter before 0.11
    results = (token_type, jax.ShapeDtypeStruct((), jnp.int32))
    step = jax.ffi.ffi_call("gpu_ext.step", results, has_side_effect=True)

    @jax.jit
    def three():
        token, first = step(jax.lax.create_token())
        token, second = step(token)
        _, third = step(token)
        return first, second, third

    first, second, third = (int(value) for value in three())
    assert (second - first, third - second) == (1, 1)
