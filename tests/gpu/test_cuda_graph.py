# SPDX-License-Identifier: Apache-2.0
"""CUDA graph capture, proven by counting how often XLA calls the handler.

XLA reads its flags once per process, so each case runs in a separate process.
"""

import json
import os
import subprocess
import sys

SCRIPT = r'''
import ctypes, json, sys
import jax, jax.numpy as jnp, numpy as np
import kernix
store, allow_cuda_graph, replace = sys.argv[1], sys.argv[2] == "1", sys.argv[3] == "1"
kernix.set_cache_dir(store)
SOURCE = r"""
#include <cuda_runtime.h>
#include "brainevent/common.h"
static int host_calls = 0;
extern "C" __attribute__((visibility("default"))) int kernix_test_host_calls() { return host_calls; }
__global__ void step_kernel(const float* x, float* out, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) out[idx] = x[idx] + 1.0f;
}
// @BE step arg ret stream
void step(const BE::Tensor x, BE::Tensor out, cudaStream_t stream) {
    ++host_calls;
    int n = x.numel();
    step_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<const float>(), out.data_ptr<float>(), n);
    BE_CHECK_KERNEL_LAUNCH();
}
"""
def load(source, **more):
    return kernix.load_cuda_inline("graph", source, allow_cuda_graph=allow_cuda_graph, **more)
module = load(SOURCE)
STEPS, EXECUTIONS = 4, 20
@jax.jit
def steps(x):
    for _ in range(STEPS):
        x = jax.ffi.ffi_call("graph.step", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
    return x
x = jnp.zeros(1000, jnp.float32)
values = [float(np.asarray(steps(x))[0]) for _ in range(EXECUTIONS)]
calls = ctypes.CDLL(module.path).kernix_test_host_calls()
after, captured_again, warned = None, None, ""
if replace:
    import warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load(SOURCE.replace("+ 1.0f", "+ 10.0f"), replace=True)
    warned = " ".join(str(w.message) for w in caught)
    after = float(np.asarray(steps(x))[0])
    jax.clear_caches()
    captured_again = [float(np.asarray(steps(x))[0]) for _ in range(EXECUTIONS)]
print(json.dumps(dict(values=values, calls=calls, executions=EXECUTIONS, steps=STEPS, after=after,
                      captured_again=captured_again, warned=warned)))
'''


def run(store: str, allow_cuda_graph: bool, replace: bool = False) -> dict:
    """Run the script with graph capture enabled for graphs of one node, and return its observations."""
    environment = dict(os.environ, XLA_FLAGS="--xla_gpu_graph_min_graph_size=1", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, store, str(int(allow_cuda_graph)), str(int(replace))],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_captured_kernel_is_replayed_without_the_handler(private_daemon):
    seen = run(private_daemon, allow_cuda_graph=True)
    assert set(seen["values"]) == {float(seen["steps"])}
    assert seen["steps"] <= seen["calls"] < seen["executions"] * seen["steps"] / 2, seen


def test_kernel_that_declines_is_called_every_time(private_daemon):
    seen = run(private_daemon, allow_cuda_graph=False)
    assert set(seen["values"]) == {float(seen["steps"])}
    assert seen["calls"] == seen["executions"] * seen["steps"], seen


def test_a_captured_kernel_stays_until_it_is_captured_again_and_a_warning_says_so(private_daemon):
    seen = run(private_daemon, allow_cuda_graph=True, replace=True)
    assert "graph" in seen["warned"], seen
    assert "allow_cuda_graph=False" in seen["warned"], seen
    assert seen["after"] == seen["steps"], seen  # the graph replays the old code
    assert set(seen["captured_again"]) == {10.0 * seen["steps"]}, seen


def test_replacing_a_kernel_that_is_never_captured_is_live_at_once(private_daemon):
    seen = run(private_daemon, allow_cuda_graph=False, replace=True)
    assert seen["after"] == 10.0 * seen["steps"], seen
    assert not seen["warned"], seen
