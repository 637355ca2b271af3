# SPDX-License-Identifier: Apache-2.0
"""Kernels on a GPU other than the first, called with and without JAX, and on two GPUs at once."""

import threading

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import kernix

SOURCE = """
#include <cuda_runtime.h>
#include "brainevent/common.h"

__global__ void add_kernel(const int* x, int* y, int number, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + number;
}

// x + 10 * (the device that the call says) + (the device that CUDA launches on), by way of scratch memory.
// @BE where arg ret scratch:arg0.nbytes() stream device_ordinal
void where(const BE::Tensor x, BE::Tensor y, BE::Scratch room, cudaStream_t stream, int device) {
    int current = -1;
    BE_CHECK(cudaGetDevice(&current) == cudaSuccess) << "no current device";
    cudaMemcpyAsync(room.data(), x.data_ptr(), x.nbytes(), cudaMemcpyDeviceToDevice, stream);
    int n = x.numel();
    add_kernel<<<(n + 255) / 256, 256, 0, stream>>>(room.as<int>(), y.data_ptr<int>(), 10 * device + current, n);
    BE_CHECK_KERNEL_LAUNCH();
}
"""

X = np.arange(1000, dtype=np.int32)


@pytest.fixture(scope="module", name="gpus")
def gpus_fixture():
    gpus = jax.devices("gpu")
    if len(gpus) < 2:
        pytest.skip(f"needs two GPUs; JAX sees {len(gpus)}")
    return gpus[:2]


@pytest.fixture(scope="module", name="module")
def module_fixture(gpus, private_daemon):
    return kernix.load_cuda_inline("two_gpus", SOURCE)


@pytest.fixture(name="torch")
def torch_fixture(gpus):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return torch


class Foreign:
    """An array of a library that kernix does not know. It has DLPack, but no current device or stream."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        import torch

        with torch.cuda.device(self.tensor.device):  # PyTorch requires this
            return self.tensor.__dlpack__(**options)


def test_jax_on_each_gpu(module, gpus):
    for number, gpu in enumerate(gpus):
        for function in (module.where, jax.jit(module.where)):
            y = function(jax.device_put(X, gpu))
            assert y.devices() == {gpu}
            np.testing.assert_array_equal(y, X + 11 * number)


def test_shard_map_over_both(module, gpus):
    mesh = Mesh(np.array(gpus), ("rows",))
    x = jax.device_put(X, NamedSharding(mesh, P("rows")))
    y = jax.jit(jax.shard_map(module.where, mesh=mesh, in_specs=P("rows"), out_specs=P("rows")))(x)
    assert len(y.sharding.device_set) == 2
    np.testing.assert_array_equal(y, X + np.repeat([0, 11], X.size // 2))


def test_torch_on_each_gpu(module, torch):
    before = torch.cuda.current_device()  # a call by JAX may have made the second one current
    for number in (1, 0):
        x = torch.tensor(X, device=f"cuda:{number}")
        y = module.where(x)
        assert y.device == x.device
        np.testing.assert_array_equal(y.cpu(), X + 11 * number)
        assert torch.cuda.current_device() == before


def test_cupy_on_each_gpu(module, gpus):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    before = cupy.cuda.Device().id
    for number in (1, 0):
        with cupy.cuda.Device(number):
            x = cupy.asarray(X)
        y = module.where(x)
        assert y.device == x.device
        np.testing.assert_array_equal(cupy.asnumpy(y), X + 11 * number)
        assert cupy.cuda.Device().id == before


def call_on_foreign_arrays(module, torch, number):
    """Return the kernel's result for X, through arrays on GPU `number` that provide only DLPack."""
    x = torch.tensor(X, device=f"cuda:{number}")
    y = torch.zeros_like(x)
    torch.cuda.synchronize(number)
    module.where(Foreign(x), out=Foreign(y))
    torch.cuda.synchronize(number)
    return y.cpu().numpy()


@pytest.mark.parametrize("number", [1, 0])
def test_unknown_libraries_on_each_gpu(module, torch, number):
    before = torch.cuda.current_device()
    np.testing.assert_array_equal(call_on_foreign_arrays(module, torch, number), X + 11 * number)
    assert torch.cuda.current_device() == before


def test_the_current_gpu_of_the_caller_stays(module, torch):
    with torch.cuda.device(1):
        np.testing.assert_array_equal(call_on_foreign_arrays(module, torch, 0), X)
        assert torch.cuda.current_device() == 1
        assert torch.zeros(1, device="cuda").device.index == 1


def test_a_thread_that_has_not_used_cuda(module, torch):
    x = torch.tensor(X, device="cuda:1")
    y = torch.zeros_like(x)
    torch.cuda.synchronize(1)
    thread = threading.Thread(target=lambda: module.where(Foreign(x), out=Foreign(y)))
    thread.start()
    thread.join()
    torch.cuda.synchronize(1)
    np.testing.assert_array_equal(y.cpu(), X + 11)


def test_arrays_on_two_gpus_are_refused(module, torch):
    x, y = (torch.tensor(X, device=f"cuda:{number}") for number in (0, 1))
    with pytest.raises(ValueError, match=r"where\(\): its arrays are on several devices: 0, 1"):
        module.where(x, out=y)
