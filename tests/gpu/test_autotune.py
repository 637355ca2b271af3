# SPDX-License-Identifier: Apache-2.0
"""Tuning on a GPU: CUDA's events as the clock, on arrays of JAX, PyTorch and CuPy."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernix
from kernix.tuning import driver

# Each thread works WORK times on its element.
WORK = """
// @BE twice
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    for (int k = 0; k < WORK; ++k) value = __fadd_rn(value, k % 2 ? 1.0f : -1.0f);
    y[i] = x[i] + value;
#if defined(WRONG) && WRONG
    if (i == 3) y[i] = 7;
#endif
}
"""
N = 1 << 20
X = np.arange(N, dtype=np.float32) % 1000
SLOW = 20_000


def tune(x, space, **options):
    """Tune WORK on an array of any library."""
    launch = {"grid": lambda s: N // s.get("block", 256), "block": lambda s: s.get("block", 256)}
    options = {"launch": launch, "attributes": {"n": N}, "check": 2 * X} | options
    return kernix.autotune(WORK, space, [x], **options)


def outcomes(result):
    return [row.outcome for row in result.table]


def test_the_fastest_wins_and_works_in_jit(private_daemon):
    x = jnp.asarray(X)
    before = set(kernix.list_registered_targets())
    result = tune(x, {"WORK": [SLOW, 2], "block": [128, 1024]}, name="gpu_fastest")
    assert result.best["WORK"] == 2
    assert set(outcomes(result)[:2]) <= {"slower", "cut short"}
    assert all(row.registers > 0 and row.spills == 0 for row in result.table)
    assert set(kernix.list_registered_targets()) == before, "timing registers nothing"
    np.testing.assert_array_equal(jax.jit(result.function)(x), 2 * X)
    again = tune(x, {"WORK": [SLOW, 2], "block": [128, 1024]}, name="gpu_fastest")
    assert again.from_memory
    assert again.best == result.best


def test_events_measure_what_the_gpu_does(private_daemon):
    """Twice the work takes about twice as long; the launch alone would take the same."""
    result = tune(jnp.asarray(X), {"WORK": [SLOW, 2 * SLOW]}, name="gpu_events")
    one, two = (row.seconds for row in result.table)
    assert one > 1e-4
    assert 1.6 < two / one < 2.4


def test_what_cannot_be_used(private_daemon):
    result = tune(jnp.asarray(X), {"WORK": [2], "WRONG": [1, 0], "block": [256, 2048]}, name="gpu_unusable")
    assert outcomes(result) == ["wrong", "does not fit", "best", "does not fit"]
    assert "has 7.0 at [3], not 6.0" in result.table[0].reason


def test_what_writes_nothing_is_wrong(private_daemon):
    source = """
// @BE f
__global__ void f(const float* x, float* y) { if (WRITES) y[threadIdx.x] = 2 * x[threadIdx.x]; }
"""
    x = jnp.arange(32, dtype=jnp.float32)
    result = kernix.autotune(
        source,
        {"WRITES": [1, 0]},
        [x],
        launch={"grid": 1, "block": 32},
        check=lambda y: np.testing.assert_array_equal(y, 2 * np.arange(32)),
        at_once=1,
        name="gpu_nothing",
    )
    assert outcomes(result) == ["best", "wrong"]


def test_host_functions_and_several_results(private_daemon):
    source = """
#include "brainevent/common.h"
__global__ void split(const float* x, float* low, int* count, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) low[i] = x[i] - 1;
    if (i == 0) *count = n;
}
// @BE parts
void parts(BE::In<float> x, BE::Out<float> low, BE::Out<int> count, cudaStream_t stream) {
    split<<<(x.size() + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(x.data(), low.data(), count.data(), x.size());
}
"""
    x = jnp.asarray(X)
    out = [jax.ShapeDtypeStruct((N,), "float32"), jax.ShapeDtypeStruct((1,), "int32")]
    result = kernix.autotune(
        source, {"BLOCK": [64, 256, 1024]}, [x], out=out, check=[X - 1, np.array([N])], name="gpu_parts"
    )
    low, count = jax.jit(result.function)(x)
    assert int(count[0]) == N
    np.testing.assert_array_equal(low, X - 1)


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_other_libraries(private_daemon, library):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    x = module.as_tensor(X, device="cuda") if library == "torch" else module.asarray(X)
    result = tune(x, {"WORK": [SLOW, 2]}, name=f"gpu_{library}")
    assert result.best == {"WORK": 2}
    assert type(result.function(x)) is type(x)


def test_numpy_arrays_go_to_the_gpu(private_daemon):
    assert tune(X, {"WORK": [2]}, name="gpu_numpy").best == {"WORK": 2}


CRASH = """
import json, sys
import jax.numpy as jnp
import kernix

kernix.set_cache_dir(sys.argv[1])
SOURCE = '''
// @BE f
__global__ void f(const float* x, float* y) { *(CRASH ? (float*)8 : y) = *x; }
'''
try:
    kernix.autotune(
        SOURCE, {"CRASH": [0, 1]}, [jnp.ones(1)], launch={"grid": 1, "block": 1}, at_once=1, name="gpu_crash"
    )
except kernix.KernelTuningError as error:
    print(json.dumps([str(error), [row.outcome for row in error.table]]), flush=True)
"""


def test_a_crash_names_the_variant_and_keeps_what_is_known(private_daemon):
    done = subprocess.run([sys.executable, "-c", CRASH, private_daemon], capture_output=True, text=True)
    message, found = json.loads(done.stdout.splitlines()[-1])
    assert "the variant CRASH=1 has crashed on the GPU" in message
    assert found == ["best", "failed"]


HANG = """
import json, os, sys
import jax.numpy as jnp
import kernix
from kernix.tuning import driver

driver._LONGEST_S = 2.0
kernix.set_cache_dir(sys.argv[1])
SOURCE = '''
// @BE f
__global__ void f(const float* x, volatile float* y) { do { y[0] = x[0]; } while (HANGS && x[0] == y[0]); }
'''
try:
    kernix.autotune(
        SOURCE, {"HANGS": [0, 1]}, [jnp.ones(1)], launch={"grid": 1, "block": 1}, at_once=1, name="gpu_hang"
    )
except kernix.KernelTuningError as error:
    print(json.dumps([str(error), [row.outcome for row in error.table]]), flush=True)
os._exit(0)
"""


def test_a_variant_that_never_ends_is_named(private_daemon):
    done = subprocess.run([sys.executable, "-c", HANG, private_daemon], capture_output=True, text=True, timeout=300)
    message, found = json.loads(done.stdout.splitlines()[-1])
    assert "the variant HANGS=1 has not ended within 2 s; this process cannot use the GPU any more" in message
    assert found == ["best", "failed"]


def test_description_of_the_gpu(private_daemon):
    described = driver.describe_gpu(0)
    assert described["gpu"] == jax.devices("gpu")[0].device_kind
    assert described["capability"] == str(jax.devices("gpu")[0].compute_capability)
    assert described["driver"]


def test_after_a_search_the_thread_has_its_context_again(private_daemon):
    """A later call of another library still works."""
    tune(jnp.asarray(X), {"WORK": [2]}, name="gpu_context")
    module = kernix.load_cuda_inline("gpu_context_after", WORK, defines={"WORK": 1})
    y = module.twice(jnp.asarray(X), n=N, grid=N // 256, block=256)
    np.testing.assert_array_equal(y, 2 * X - 1)
