# SPDX-License-Identifier: Apache-2.0
"""Functions of a module called on GPU arrays of PyTorch, CuPy and JAX."""

import threading
import types

import jax.numpy as jnp
import numpy as np
import pytest

import kernix

SOURCE = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include "brainevent/common.h"

template <typename T>
__global__ void scale_kernel(const T* x, T* y, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = static_cast<T>(factor * static_cast<float>(x[i]));
}

template <typename T>
void launch(const BE::Tensor& x, BE::Tensor& y, float factor, cudaStream_t stream) {
    int n = x.numel();
    if (n > 0) scale_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<const T>(), y.data_ptr<T>(), factor, n);
    BE_CHECK_KERNEL_LAUNCH();
}

// @BE scale arg ret attr.factor:float32 stream
void scale(const BE::Tensor x, BE::Tensor y, float factor, cudaStream_t stream) {
    BE_CHECK(x.dtype() == y.dtype() && x.numel() == y.numel()) << "x and y differ";
    if (x.dtype() == BE::DType::Float16) return launch<__half>(x, y, factor, stream);
    if (x.dtype() == BE::DType::BFloat16) return launch<__nv_bfloat16>(x, y, factor, stream);
    BE_CHECK(x.dtype() == BE::DType::Float32) << "x must be floating";
    launch<float>(x, y, factor, stream);
}

__global__ void add_to(int* y, int number, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += number;
}

// Through scratch memory, which is written before it is read.
// @BE through_scratch arg ret scratch:arg0.nbytes() stream device_ordinal
void through_scratch(const BE::Tensor x, BE::Tensor y, BE::Scratch room, cudaStream_t stream, int device) {
    cudaMemcpyAsync(room.data(), x.data_ptr(), x.nbytes(), cudaMemcpyDeviceToDevice, stream);
    int n = x.numel();
    add_to<<<(n + 255) / 256, 256, 0, stream>>>(room.as<int>(), 1 + device, n);
    cudaMemcpyAsync(y.data_ptr(), room.data(), x.nbytes(), cudaMemcpyDeviceToDevice, stream);
    BE_CHECK_KERNEL_LAUNCH();
}

// @BE stream_of arg ret stream
void stream_of(const BE::Tensor x, BE::Tensor y, cudaStream_t stream) {
    int64_t handle = reinterpret_cast<int64_t>(stream);
    cudaMemcpyAsync(y.data_ptr(), &handle, sizeof(handle), cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
}
"""

CPP_SOURCE = """
#include "brainevent/common.h"
// @BE doubled arg ret
void doubled(const BE::Tensor x, BE::Tensor y) {
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = 2 * x.data_ptr<float>()[i];
}
"""

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module", name="module")
def module_fixture(private_daemon):
    return kernix.load_cuda_inline("gpu_arrays", SOURCE)


@pytest.fixture(scope="module", name="on_host")
def on_host_fixture(private_daemon):
    return kernix.load_cpp_inline("gpu_arrays_on_host", CPP_SOURCE)


@pytest.fixture(name="torch")
def torch_fixture():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return torch


@pytest.fixture(name="cupy")
def cupy_fixture():
    return pytest.importorskip("cupy", reason="CuPy is not installed")


# --- JAX -------------------------------------------------------------------------------------------------------------


def test_jax_arrays(module):
    y = module.scale(jnp.asarray(X), factor=3)
    np.testing.assert_array_equal(y, 3 * X)
    half = module.scale(jnp.asarray(X, jnp.bfloat16), factor=0.5)
    assert half.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(half, np.float32), X / 2)


# --- PyTorch ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_torch_arrays(module, torch, dtype):
    x = torch.tensor(X, device="cuda", dtype=getattr(torch, dtype))
    y = module.scale(x, factor=2)
    assert (type(y), y.dtype, y.device) == (torch.Tensor, x.dtype, x.device)
    np.testing.assert_array_equal(y.float().cpu(), 2 * X)
    z = torch.empty_like(x)
    assert module.scale(x, factor=4, out=z) is z
    np.testing.assert_array_equal(z.float().cpu(), 4 * X)
    assert module.scale(z, factor=0.25, out=z) is z
    np.testing.assert_array_equal(z.float().cpu(), X)


def test_torch_views_that_negate(module, torch):
    """On a GPU, the caller must make a copy, as for arrays with gaps."""
    x = torch.tensor([1 + 2j], device="cuda").conj().imag
    with pytest.raises(ValueError, match=r"argument 0 is a view that .* negates; pass its .resolve_conj\("):
        module.scale(x, factor=2)
    assert module.scale(x.resolve_neg(), factor=2).tolist() == [-4]
    with pytest.raises(ValueError, match="result 0 is a view that conjugates or negates its values"):
        module.scale(x.resolve_neg(), factor=2, out=x)


def test_torch_spec(module, torch):
    x = torch.tensor(X, device="cuda")
    for dtype in (torch.int64, np.int64, np.dtype("int64")):
        y = module.stream_of(x, out=types.SimpleNamespace(shape=(1,), dtype=dtype))
        assert (y.dtype, tuple(y.shape)) == (torch.int64, (1,))


def test_torch_current_stream(module, torch):
    x = torch.tensor(X, device="cuda")
    handle = torch.empty(1, dtype=torch.int64, device="cuda")
    assert module.stream_of(x, out=handle).item() == 0
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        module.stream_of(x, out=handle)
    assert handle.item() == side.cuda_stream
    other = torch.cuda.Stream()
    for stream in (other, other.cuda_stream):
        module.stream_of(x, out=handle, stream=stream)
        assert handle.item() == other.cuda_stream


def test_torch_work_on_the_current_stream_comes_first(module, torch):
    """The argument is written late on the current stream. The call is made on another stream, which must wait."""
    x = torch.zeros(1 << 20, device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    torch.cuda._sleep(200_000_000)
    x.fill_(2)
    y = module.scale(x, factor=3, stream=side)
    side.synchronize()
    assert float(y.min()) == float(y.max()) == 6


def test_torch_results_belong_to_their_stream(module, torch):
    """Memory that an earlier kernel of the current stream still uses is not given to a call on another stream."""
    side = torch.cuda.Stream()
    x = torch.full((1 << 20,), 5.0, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(200_000_000)
    late = torch.empty(1 << 20, device="cuda").fill_(7)  # written only after the sleep
    del late
    with torch.cuda.stream(side):
        y = module.scale(x, factor=1)
    torch.cuda.synchronize()
    assert float(y.min()) == float(y.max()) == 5


def test_scratch_memory_and_device(module, torch, cupy):
    for x in (jnp.arange(1000, dtype=jnp.int32), torch.arange(1000, dtype=torch.int32, device="cuda")):
        results = [module.through_scratch(x) for _ in range(20)]
        assert all([int(value) for value in y[::333]] == [1, 334, 667, 1000] for y in results)
    y = module.through_scratch(cupy.arange(4, dtype=np.int32), stream=cupy.cuda.Stream(non_blocking=True))
    cupy.cuda.Device().synchronize()
    assert y.tolist() == [1, 2, 3, 4]


def test_torch_mistakes(module, torch):
    x = torch.tensor(X, device="cuda")
    with pytest.raises(ValueError, match=r"argument 0 is not contiguous in row-major .* pass its \.contiguous"):
        module.scale(x.T, factor=1)
    with pytest.raises(TypeError, match="argument 0 is in host memory, but the function runs on a GPU"):
        module.scale(torch.tensor(X), factor=1)
    with pytest.raises(TypeError, match="argument 0 requires a gradient"):
        module.scale(x.requires_grad_(), factor=1)
    x = x.detach()
    with pytest.raises(TypeError, match=r"scale\(\): result 0: PyTorch has no element type float8_e3m4"):
        module.scale(x, factor=1, out=types.SimpleNamespace(shape=(3,), dtype="float8_e3m4"))
    with pytest.raises(kernix.KernelCallError, match="x must be floating"):
        module.scale(torch.zeros(3, dtype=torch.int32, device="cuda"), factor=1)


def test_torch_on_the_host(on_host, torch):
    x = torch.tensor(X)
    for argument in (x, x.T, x[:, ::2], torch.tensor(4.0), torch.zeros(0, 3)):
        y = on_host.doubled(argument)
        assert (type(y), y.device.type) == (torch.Tensor, "cpu")
        np.testing.assert_array_equal(y, 2 * argument)
    y = np.empty_like(X)
    assert on_host.doubled(x, out=y) is y
    np.testing.assert_array_equal(y, 2 * X)
    with pytest.raises(TypeError, match="argument 0 is in memory of another device .DLPack type 2., but .* the CPU"):
        on_host.doubled(x.cuda())
    np.testing.assert_array_equal(on_host.doubled(x.pin_memory()), 2 * X)


# --- DLPack alone ----------------------------------------------------------------------------------------------------


class Foreign:
    """An array of a library that kernix does not know. It has DLPack, but no current device or stream."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)


def test_arrays_of_an_unknown_library(module, torch):
    x = torch.tensor(X, device="cuda")
    y = Foreign(torch.empty_like(x))
    assert module.scale(Foreign(x), factor=2, out=y) is y
    torch.cuda.synchronize()
    np.testing.assert_array_equal(y.tensor.cpu(), 2 * X)
    handle = torch.full((1,), -1, dtype=torch.int64, device="cuda")
    side = torch.cuda.Stream()
    module.stream_of(Foreign(x), out=Foreign(handle))
    assert handle.item() == 0
    module.stream_of(Foreign(x), out=Foreign(handle), stream=side)
    assert handle.item() == side.cuda_stream


def test_arrays_of_an_unknown_library_in_a_thread_that_has_not_used_cuda(module, torch):
    x = torch.arange(4, dtype=torch.int32, device="cuda")
    y = torch.zeros_like(x)
    torch.cuda.synchronize()
    thread = threading.Thread(target=lambda: module.through_scratch(Foreign(x), out=Foreign(y)))
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert y.tolist() == [1, 2, 3, 4]


def test_pinned_memory_is_every_devices(module, torch):
    x = torch.tensor(X).pin_memory()
    y = torch.empty(2, 3, device="cuda")
    assert module.scale(x, factor=2, out=y) is y
    torch.cuda.synchronize()
    np.testing.assert_array_equal(y.cpu(), 2 * X)


def test_pinned_memory_leaves_the_stream_to_the_arrays_of_the_gpu(module, torch):
    x = torch.tensor(X).pin_memory()
    handle = torch.empty(1, dtype=torch.int64, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        module.stream_of(x, out=handle)
    torch.cuda.synchronize()
    assert handle.item() == side.cuda_stream


# --- CuPy ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_cupy_arrays(module, cupy, dtype):
    x = cupy.asarray(X.astype(dtype))
    y = module.scale(x, factor=2)
    assert (type(y), y.dtype, y.device) == (cupy.ndarray, x.dtype, x.device)
    np.testing.assert_array_equal(cupy.asnumpy(y), 2 * X)
    z = cupy.empty_like(x)
    assert module.scale(x, factor=4, out=z) is z
    np.testing.assert_array_equal(cupy.asnumpy(z), 4 * X)
    with pytest.raises(ValueError, match="argument 0 is not contiguous in row-major"):
        module.scale(x.T, factor=1)


def test_cupy_streams(module, cupy):
    x = cupy.asarray(X)
    handle = cupy.empty(1, np.int64)
    side, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    with side:
        module.stream_of(x, out=handle)
    assert int(handle[0]) == side.ptr
    module.stream_of(x, out=handle, stream=other)
    assert int(handle[0]) == other.ptr


def test_one_call_with_arrays_of_two_libraries(module, cupy, torch):
    y = torch.empty(2, 3, device="cuda")
    assert module.scale(cupy.asarray(X), factor=2, out=y) is y
    torch.cuda.synchronize()
    np.testing.assert_array_equal(y.cpu(), 2 * X)
