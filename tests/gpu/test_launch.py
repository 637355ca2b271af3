# SPDX-License-Identifier: Apache-2.0
"""__global__ functions launched by kernix: under jit, in a CUDA graph, on arrays of PyTorch and CuPy."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from launched_kernels import LAUNCHED

import kernix

X = np.arange(1000, dtype=np.float32)
SPEC = jax.ShapeDtypeStruct(X.shape, X.dtype)


@pytest.fixture(scope="module", name="module")
def module_fixture(private_daemon):
    return kernix.load_cuda_inline("launched", LAUNCHED)


def how(n, block=256):
    """Return the attributes of a launch of a thread for each of `n` elements."""
    return {"n": n, "grid": (n + block - 1) // block, "block": block}


def numbers(count):
    """Return the int32 numbers from 0 on."""
    return np.arange(count, dtype=np.int32)


# --- JAX -------------------------------------------------------------------------------------------------------------


def test_three_functions_under_jit(module):
    @jax.jit
    def both(x, whole):
        added = module.vector_add(x, x, out=SPEC, **how(1000))
        halves = module["scale___half"](added.astype(jnp.float16), factor=0.5, **how(1000))
        brains = module["scale___nv_bfloat16"](added.astype(jnp.bfloat16), factor=2, **how(1000, 1024))
        return added, halves, brains, module.reverse(whole, negate=True, first=1, grid=4, block=8, shared=32)

    added, halves, brains, reversed_ = both(X, numbers(32))
    np.testing.assert_array_equal(added, 2 * X)
    np.testing.assert_array_equal(halves, X.astype(np.float16))
    np.testing.assert_array_equal(brains, (2 * jnp.asarray(2 * X, jnp.bfloat16)))
    np.testing.assert_array_equal(reversed_, 1 - numbers(32).reshape(4, 8)[:, ::-1].reshape(-1))


def test_ffi_call(module):
    call = jax.ffi.ffi_call(module.vector_add.target, SPEC)
    np.testing.assert_array_equal(call(X, X, n=np.int32(1000), grid=np.int64(4), block=np.int64(256)), 2 * X)
    arrays = {"grid": np.array([4, 1]), "block": np.array([256, 1, 1], np.int32), "shared": np.int64(0)}
    np.testing.assert_array_equal(jax.jit(lambda x: call(x, x, n=np.int32(1000), **arrays))(X), 2 * X)


def test_grids_of_three_dimensions(module):
    y = module.places(grid=(3, 2, 4), block=(2, 3, 4), out=jax.ShapeDtypeStruct((4, 2, 3, 4), np.int32))
    z, line, x = np.mgrid[:4, :2, :3]
    np.testing.assert_array_equal(y, np.stack([x, line, z, np.ones_like(x)], axis=-1))


def test_much_shared_memory(module):
    count = 1024
    x = jnp.asarray(numbers(count))
    y = module.reverse(x, negate=False, first=0, grid=1, block=count, shared=64 * 1024)
    np.testing.assert_array_equal(y, numbers(count)[::-1])
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"reverse: shared is 1048576; .* a block on this device has"):
        jax.block_until_ready(module.reverse(jnp.zeros(8, int), negate=False, first=0, grid=1, block=8, shared=2**20))


def test_clusters(module):
    def call(cluster):
        out = jax.ShapeDtypeStruct((4, 4), np.int32)
        return np.asarray(module.places(grid=4, block=32, cluster=cluster, out=out))

    major = int(jax.devices("gpu")[0].compute_capability.split(".")[0])
    if major < 9:
        with pytest.raises(jax.errors.JaxRuntimeError, match="they need compute capability 9.0"):
            call(2)
        return
    assert call(2)[:, 3].tolist() == [2] * 4
    assert call(None)[:, 3].tolist() == [1] * 4


def test_a_launch_that_cuda_refuses_says_how(module, private_daemon):
    source = "// @BE f\n__global__ void __launch_bounds__(32) f(int* y) { y[threadIdx.x] = 1; }"
    small = kernix.load_cuda_inline("launched_small", source)
    out = jax.ShapeDtypeStruct((64,), np.int32)
    assert np.asarray(small.f(grid=1, block=32, out=out))[:32].tolist() == [1] * 32
    message = r"f: the launch, with grid \(1, 1, 1\), block \(64, 1, 1\), shared 0, failed: cudaError"
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        jax.block_until_ready(small.f(grid=1, block=64, out=out))
    np.testing.assert_array_equal(module.vector_add(X, X, out=SPEC, **how(1000)), 2 * X)  # the error is forgotten


def test_cooperative_launches(private_daemon):
    source = """
    #include <cooperative_groups.h>
    // Each block adds what the block before it in the ring has written.
    // @BE ring
    __global__ void ring(const int* x, int* y, int* sums) {
        y[blockIdx.x] = 2 * x[blockIdx.x];
        cooperative_groups::this_grid().sync();
        sums[blockIdx.x] = y[blockIdx.x] + y[(blockIdx.x + 1) % gridDim.x];
    }
    """
    module = kernix.load_cuda_inline("launched_together", source)
    out = [jax.ShapeDtypeStruct((64,), np.int32)] * 2

    @jax.jit
    def call(x):
        return module.ring(x, grid=64, block=1, cooperative=True, out=out)

    np.testing.assert_array_equal(call(numbers(64))[1], 2 * (numbers(64) + np.roll(numbers(64), -1)))
    with pytest.raises(
        jax.errors.JaxRuntimeError, match=r"block \(1, 1, 1\), shared 0, cooperative, failed: cudaError"
    ):
        jax.block_until_ready(module.ring(jnp.asarray(numbers(64)), grid=10**6, block=1, cooperative=True, out=out))


def test_structs_and_vectors_by_value(private_daemon):
    source = """
    struct Affine { float scale; int shift; double more[3]; };
    // @BE affine
    __global__ void affine(const float* x, float* y, Affine a, float3 b, uint4 c) {
        y[threadIdx.x] = a.scale * x[threadIdx.x] + a.shift + a.more[2] + b.x + 10 * b.z + c.w;
    }
    """
    module = kernix.load_cuda_inline("launched_by_value", source)
    affine = np.dtype([("scale", np.float32), ("shift", np.int32), ("more", np.float64, 3)], align=True)
    value = np.array((2, 3, (0, 0, 4)), affine)[()]
    x = jnp.arange(5, dtype=jnp.float32)

    def call(x):
        return module.affine(x, a=value, b=(1, 2, 3), c=(0, 0, 0, 100), grid=1, block=5)

    np.testing.assert_array_equal(call(x), 2 * np.arange(5) + 138)
    np.testing.assert_array_equal(jax.jit(call)(x), 2 * np.arange(5) + 138)


def test_structs_of_halves_by_value(private_daemon):
    """A half2 has a copy constructor of its own; its bytes are its value."""
    source = """
    #include <cuda_fp16.h>
    struct Pair { half2 of; float more; };
    // @BE halves
    __global__ void halves(const float* x, float* y, half2 a, Pair b) {
        y[threadIdx.x] = x[threadIdx.x] + __low2float(a) + 10 * __high2float(b.of) + b.more;
    }
    """
    module = kernix.load_cuda_inline("launched_halves", source)
    pair = np.dtype([("of", np.float16, 2), ("more", np.float32)], align=True)
    b = np.array(((3, 4), 100), pair)[()]
    y = module.halves(jnp.arange(5, dtype=jnp.float32), a=(1, 2), b=b, grid=1, block=5)
    np.testing.assert_array_equal(y, np.arange(5) + 1 + 40 + 100)


def test_structs_with_a_destructor_by_value(private_daemon):
    """Their bytes are passed: nothing of the struct runs on the host."""
    source = """
    struct Guard {
        float scale;
        int* freed;
        Guard(const Guard& other) : scale(-1), freed(other.freed) {}
        ~Guard() { *freed = 0; }
    };
    // @BE guarded
    __global__ void guarded(const float* x, float* y, Guard g, int n) { y[threadIdx.x] = g.scale * x[threadIdx.x] + n; }
    """
    module = kernix.load_cuda_inline("launched_guard", source)
    guard = np.array((2.5, 0), np.dtype([("scale", np.float32), ("freed", np.int64)], align=True))[()]
    x = jnp.arange(5, dtype=jnp.float32)
    np.testing.assert_array_equal(module.guarded(x, g=guard, n=1, grid=1, block=5), 2.5 * np.arange(5) + 1)


# --- Other libraries -------------------------------------------------------------------------------------------------


def test_torch_arrays(module):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    x = torch.tensor(X, device="cuda")
    y = torch.empty_like(x)
    assert module.vector_add(x, x, out=y, **how(1000)) is y
    np.testing.assert_array_equal(y.cpu(), 2 * X)
    halves = module["scale___half"](x.half(), factor=2, **how(1000))
    np.testing.assert_array_equal(halves.float().cpu(), (2 * X).astype(np.float16))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module.vector_add(x, y, out=y, **how(1000))
    for _ in range(3):
        graph.replay()
    np.testing.assert_array_equal(y.cpu(), 5 * X)


def test_cupy_arrays(module):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    x = cupy.asarray(X)
    np.testing.assert_array_equal(cupy.asnumpy(module.vector_add(x, x, **how(1000))), 2 * X)
    whole = cupy.asarray(numbers(32))
    y = module.reverse(whole, negate=False, first=0, grid=4, block=8, shared=32)
    np.testing.assert_array_equal(cupy.asnumpy(y), numbers(32).reshape(4, 8)[:, ::-1].reshape(-1))


# --- CUDA graphs -----------------------------------------------------------------------------------------------------

# Counts the calls of the handlers, by functions in Python that stand before them.
GRAPH = r"""
import ctypes, json, sys
import jax, jax.numpy as jnp, numpy as np
import kernix
sys.path.insert(0, sys.argv[2])
from launched_kernels import LAUNCHED
kernix.set_cache_dir(sys.argv[1])
module = kernix.load_cuda_inline("launched", LAUNCHED, auto_register=False)
calls, kept = [], []
SPEC = jax.ShapeDtypeStruct

def counted(name):
    handler = module.get_handler(name)
    def call(frame):
        calls.append(name)
        return handler(frame)
    kept.append(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(call))
    jax.ffi.register_ffi_target(f"counted.{name}", jax.ffi.pycapsule(kept[-1]), platform="CUDA")
    return lambda *xs, **attrs: jax.ffi.ffi_call(f"counted.{name}", SPEC(xs[0].shape, xs[0].dtype))(*xs, **attrs)

add, scale, reverse = map(counted, ("vector_add", "scale___half", "reverse"))
LAUNCH = dict(n=np.int64(1000), grid=np.array([4]), block=np.int64(256))
REVERSE = dict(negate=False, first=np.int64(1), grid=np.int64(4), block=np.int64(8), shared=np.int64(32))

@jax.jit
def steps(x, whole):
    for _ in range(3):
        x = add(x, x, **LAUNCH)
        whole = reverse(whole, **REVERSE)
    return x, scale(x.astype(jnp.float16), factor=0.5, **LAUNCH), whole

x, whole = jnp.ones(1000, jnp.float32), jnp.zeros(32, jnp.int32)
values = [[float(np.asarray(y)[0]) for y in steps(x, whole)] for _ in range(20)]
print(json.dumps(dict(values=values, calls=len(calls))))
"""


def test_three_functions_in_a_captured_graph(private_daemon):
    environment = dict(os.environ, XLA_FLAGS="--xla_gpu_graph_min_graph_size=1", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    done = subprocess.run(
        [sys.executable, "-c", GRAPH, private_daemon, os.path.dirname(__file__)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["values"] == [[8.0, 4.0, 3.0]] * 20
    assert seen["calls"] < 20 * 7 / 2, "the graph was not replayed"
