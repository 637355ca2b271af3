# SPDX-License-Identifier: Apache-2.0
"""A real notebook: JAX calls the function of a cell on the GPU."""

import pytest

CELLS = {
    "start": "%load_ext kernix\nimport jax, jax.numpy as jnp",
    "kernel": """%%cuda
#include "brainevent/common.h"
__global__ void add_kernel(const float* x, float* y, float a, int64_t n) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i < n) y[i] = x[i] + a;
}
// @BE add
void add(BE::In<float> x, BE::Out<float> y, float a, cudaStream_t stream) {
    add_kernel<<<(x.size() + 255) / 256, 256, 0, stream>>>(x.data(), y.data(), a, x.size());
    BE_CHECK_KERNEL_LAUNCH();
}""",
    "call": "y = add(jnp.arange(1000.0), a=1)\ny.devices().pop().platform, float(y.sum())",
    "jit": "float(jax.jit(lambda x: add(x, a=2).sum())(jnp.arange(1000.0)))",
    "wrong": "add(jnp.arange(1000), a=1)",
}


def test_a_cell_of_cuda_is_called_by_jax(private_daemon, tmp_path):
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    from notebooks import run_cells

    # The kernel shares the GPU with this process.
    environment = {"KERNIX_CACHE_DIR": private_daemon, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    cells = run_cells(CELLS, tmp_path, **environment)
    assert [cells[name].error for name in ("start", "kernel", "call", "jit")] == [None] * 4
    assert cells["call"].kept == ["('gpu', 500500.0)"]
    assert cells["jit"].kept == ["501500.0"]
    assert cells["wrong"].error.splitlines()[-1] == "TypeError: cell.add(): argument 0 (x) takes float32, got int32"
