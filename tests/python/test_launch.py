# SPDX-License-Identifier: Apache-2.0
"""__global__ functions that are exported by themselves: what calls take, and every error that needs no GPU.

tests/gpu launches them.
"""

import inspect
import pathlib

import jax
import jax.numpy as jnp
import kernels
import numpy as np
import pytest

import kernix
from kernix import _core

X = np.ones(5, np.float32)
GOOD = {"n": 5, "grid": 1, "block": 256}


@pytest.fixture(scope="module", name="module", autouse=True)
def module_fixture(place):
    """The functions of tests/gpu/launched_kernels.py, registered as ``launched.<function>``."""
    return kernix.load_cuda_inline("launched", kernels.LAUNCHED, compute_capability="sm_90")


def test_signatures_become_tokens(module):
    assert {name: module.arg_spec(name) for name in module} == {
        "vector_add": ["arg:float32", "arg:float32", "ret:float32", "attr.n:int32"],
        "scale___half": ["arg:float16", "ret:float16", "attr.factor:float64", "attr.n:uint64"],
        "scale___nv_bfloat16": ["arg:bfloat16", "ret:bfloat16", "attr.factor:float64", "attr.n:uint64"],
        "reverse": ["arg:int32", "ret:int32", "attr.negate:bool", "attr.first:int64"],
        "places": ["ret:int32"],
    }
    functions = module._code.core.functions
    assert all(function.is_global and function.traits & 1 for function in functions)
    shown = "launched.vector_add(a: float32, b: float32, /, *, n: int32, grid, block, shared=0, cluster=None, out=None)"
    assert str(module.vector_add) == shown
    parameters = inspect.signature(module.vector_add).parameters
    assert [name for name in parameters if name in ("grid", "block", "shared", "cluster")] == [
        "grid",
        "block",
        "shared",
        "cluster",
    ]


def test_an_array_may_be_named_like_a_part_of_the_launch(fresh_name):
    source = "// @BE f\n__global__ void f(const float* grid, float* shared) { *shared = *grid; }"
    module = kernix.load_cuda_inline(fresh_name, source, compute_capability="sm_90", auto_register=False)
    assert str(module.f) == f"{fresh_name}.f(arg0: float32, /, *, grid, block, shared=0, cluster=None, out=None)"
    assert list(inspect.signature(module.f).parameters)[:3] == ["arg0", "grid", "block"]


def test_tokens_say_order_and_kind(fresh_name):
    """A pointer without const may be an input, and one to a vector type has the tokens' element type."""
    source = "__global__ void f(float4* x, float* y, unsigned short bits, int n) { y[n] = x[0].x + bits; }"
    tokens = ["arg:float32", "ret:float32", "attr.h:float16", "attr.count:int32"]
    module = kernix.load_cuda_inline(fresh_name, source, {"f": tokens}, compute_capability="sm_90", auto_register=False)
    assert module.arg_spec("f") == tokens
    assert module._code.info("f").is_global


def lowered(call):
    """Return the program that JAX makes of a call for a GPU."""
    return jax.jit(call).trace(X, X).lower(lowering_platforms=("cuda",)).as_text()


def test_jit_passes_the_launch_as_attributes(module):
    text = lowered(lambda a, b: module.vector_add(a, b, n=5, grid=(2, 3), block=np.int32(64), shared=128, cluster=[2]))
    for attribute in (
        "grid = array<i64: 2, 3, 1>",
        "block = array<i64: 64, 1, 1>",
        "cluster = array<i64: 2, 1, 1>",
        "shared = 128 : i64",
        "n = 5 : i32",
    ):
        assert attribute in text.replace("dense<[", "array<i64: ").replace("]> : tensor<3xi64>", ">"), text
    assert "shared" not in lowered(lambda a, b: module.vector_add(a, b, **GOOD))


BAD = [
    ({"grid": 0}, ValueError, r"grid is 0; it must be 1 to 2147483647: arrays without elements need no launch"),
    ({"grid": (1, 65536)}, ValueError, r"grid is \(1, 65536, 1\); its y must be 1 to 65535"),
    ({"grid": 2**31}, ValueError, r"grid is 2147483648; it must be 1 to 2147483647"),
    ({"grid": (4, -1, 1)}, ValueError, r"grid is \(4, -1, 1\); its y must be 1 to 65535"),
    ({"grid": (1, 1, 1, 1)}, ValueError, r"grid has 4 sizes; it takes 1 to 3"),
    ({"grid": ()}, ValueError, r"grid has 0 sizes; it takes 1 to 3"),
    ({"grid": 1.5}, TypeError, r"grid is 1.5; it must be an integer or a tuple of up to 3$"),
    ({"grid": (1, [2])}, TypeError, r"grid is of type list; it must be an integer or a tuple of up to 3$"),
    ({"grid": "4"}, TypeError, r"grid is of type str; it must be an integer or a tuple of up to 3$"),
    ({"grid": 2**64}, ValueError, r"grid is 18446744073709551616, which does not fit"),
    ({"block": 1025}, ValueError, r"block is 1025; it must be 1 to 1024"),
    ({"block": (1, 1, 65)}, ValueError, r"block is \(1, 1, 65\); its z must be 1 to 64"),
    ({"block": (32, 64)}, ValueError, r"block is \(32, 64, 1\), 2048 threads; a block has at most 1024"),
    ({"block": None}, TypeError, r"is a __global__ function: it needs block=, an integer or a tuple"),
    ({"grid": None, "block": None}, TypeError, r"it needs grid= and block=, an integer"),
    ({"shared": -1}, ValueError, r"shared is -1; it must be 0 to 2147483647 bytes"),
    ({"shared": (1, 2)}, TypeError, r"attribute 'shared' is of type tuple"),
    ({"grid": 3, "cluster": 2}, ValueError, r"grid is \(3, 1, 1\), which clusters of \(2, 1, 1\) do not divide"),
    ({"cluster": 0}, ValueError, r"cluster is 0; it must be 1 to"),
    ({"n": None}, TypeError, r"attribute 'n' is None"),
    ({"n": 2**31}, ValueError, r"attribute 'n' is 2147483648, which does not fit int32"),
    ({"m": 1}, TypeError, r"has no attribute 'm'"),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD, ids=lambda value: str(value)[:24])
@pytest.mark.parametrize("like", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_bad_launches_are_errors_before_the_call(module, like, change, kind, message):
    with pytest.raises(kind, match=r"^launched\.vector_add\(\)[:]? .*" + message):
        module.vector_add(like(X), like(X), **(GOOD | change))


def test_wrong_arrays_and_traced_grids(module):
    with pytest.raises(TypeError, match=r"argument 0 \(a\) takes float32, got int32"):
        module.vector_add(jnp.arange(5), jnp.arange(5), **GOOD)
    with pytest.raises(TypeError, match=r"grid is traced by JAX"):
        jax.jit(lambda x, grid: module.vector_add(x, x, n=5, grid=grid, block=1))(X, 1)


def test_a_host_function_says_that_it_is_none():
    host = kernix.load_cpp_inline("launched_not", kernels.ADD_ONE)
    with pytest.raises(TypeError, match=r"launched_not.add_one\(\) takes no grid=: it is a host function"):
        host.add_one(X, grid=1, block=1)


def test_backward_functions(module):
    host = kernix.load_cpp_inline("launched_not", kernels.ADD_ONE)
    with pytest.raises(TypeError, match="is a __global__ function, which needs a grid and a block"):
        host.add_one.with_vjp(module.places)
    source = """
// @BE twice
__global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
// @BE twice_back
__global__ void twice_back(const float* x, const float* g, float* y) { y[threadIdx.x] = 2 * g[threadIdx.x]; }
"""
    pair = kernix.load_cuda_inline("launched_pair", source, compute_capability="sm_90")
    differentiable = pair.twice.with_vjp("twice_back")
    gradient = jax.jit(jax.grad(lambda x: differentiable(x, grid=1, block=5).sum()))
    text = gradient.trace(X).lower(lowering_platforms=("cuda",)).as_text()
    (call,) = (line for line in text.splitlines() if "launched_pair.twice_back" in line)
    assert "block = " in call


# --- The handler -----------------------------------------------------------------------------------------------------


def handle(module, function="vector_add", arrays=2, **attributes):
    """Call a handler as XLA does. The arrays are never read."""
    array = (X.ctypes.data, 11, (5,))
    values = {name: value for name, value in attributes.items() if value is not None}
    address = module._code.core.address(function)
    _core.call_handler(address, [array] * arrays, [array], values, 0, None)


ATTRIBUTES = {"n": ("int32", 5), "grid": ("int64", 1), "block": ("int64[]", [256])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": None}, r"needs the attribute 'grid': an integer, or an array of 1 to 3 integers"),
        ({"block": None}, r"needs the attribute 'block'"),
        ({"grid": ("int64", 0)}, r"grid is \(0, 1, 1\); its x must be 1 to 2147483647"),
        ({"grid": ("int32[]", [1, 65536])}, r"grid is \(1, 65536, 1\); its y must be 1 to 65535"),
        ({"grid": ("int64[]", [1, 1, -5])}, r"grid is \(1, 1, -5\); its z must be 1 to 65535"),
        ({"grid": ("uint64", 2**64 - 1)}, r"grid must be|grid is out of range"),
        ({"grid": ("int64[]", [1, 1, 1, 1])}, r"grid has 4 sizes; it takes 1 to 3"),
        ({"grid": ("float32", 1.0)}, r"grid must be an integer, or an array of integers"),
        ({"grid": ("string", "1")}, r"grid must be an integer, or an array of integers"),
        ({"block": ("uint8[]", [32, 64])}, r"block is \(32, 64, 1\), 2048 threads; a block has at most 1024"),
        ({"block": ("int64", 1025)}, r"block is \(1025, 1, 1\); its x must be 1 to 1024"),
        ({"cluster": ("int64[]", [2])}, r"grid is \(1, 1, 1\), which clusters of \(2, 1, 1\) do not divide"),
        ({"shared": ("int64", -1)}, r"shared is -1; it must be 0 to 2147483647 bytes"),
        ({"shared": ("int64[]", [1, 2])}, r"shared must be an integer"),
        ({"n": None}, r"attribute 'n' \(int32\) is missing"),
        ({"more": ("int64", 1)}, r"has no attribute 'more'"),
        ({"more": ("int64", 1), "shared": ("int64", 0)}, r"has no attribute 'more'"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_the_handler_checks_what_ffi_call_passes(module, change, message):
    with pytest.raises(kernix.KernelCallError, match=r"^vector_add: " + message):
        handle(module, **(ATTRIBUTES | change))


def test_the_handler_checks_the_arrays(module):
    with pytest.raises(kernix.KernelCallError, match=r"vector_add: expected 2 arguments, got 1"):
        handle(module, arrays=1, **ATTRIBUTES)
    with pytest.raises(kernix.KernelCallError, match=r"argument 0 takes float16, got float32|\(x\) takes float16"):
        handle(module, "scale___half", 1, **ATTRIBUTES, factor=("float64", 1.0))


@pytest.mark.skipif(bool(list(pathlib.Path("/dev").glob("nvidia[0-9]*"))), reason="this machine has a GPU")
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, r"the launch, with grid \(1, 1, 1\), block \(256, 1, 1\), shared 0, failed: cudaError\w+: "),
        ({"shared": ("int64", 65536)}, r"asking for the shared memory, with .* shared 65536, failed: cudaError\w+: "),
        ({"cluster": ("int64", 1)}, r"asking for clusters, with .*, cluster \(1, 1, 1\), failed: cudaError\w+: "),
    ],
    ids=["launch", "shared", "cluster"],
)
def test_what_cuda_refuses_names_the_function_and_the_launch(module, more, message):
    """Here, CUDA refuses everything: there is no GPU."""
    with pytest.raises(kernix.KernelCallError, match="^vector_add: " + message):
        handle(module, **ATTRIBUTES, **more)


# --- Sources that are refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("struct S { int i; };\n// @BE f\n__global__ void f(S s, float* y) {}", r"'f' is 'S s'.*a pointer to the el"),
        ("// @BE f\n__global__ void f(const float4* x, float* y) {}", r"'const float4\* x'.*Write out the tokens"),
        ("// @BE f\n__global__ void f(float* y, __half a) {}", r"'__half a'.*take a float, and convert it"),
        ("// @BE f\n__global__ void f(float* y, cudaStream_t s) {}", r"on the stream of the call.*leave the parameter"),
        ("// @BE f\n__global__ void f(float* y, int grid) {}", r"'grid' has the name of a number that says how to"),
        ("// @BE f\n__global__ void f(const float* y) {}", r"no 'ret'.*a pointer that is not const"),
        ("// @BE f ret stream\n__global__ void f(float* y, int64_t s) {}", r"'stream' is not for a __global__ fun"),
        ("// @BE f\ntemplate <class T> __global__ void f(T* y) {}", r"is a template: name the instance"),
        ("// @BE f\n__global__ void f(float* y) {}\n__global__ void f(int* y) {}", r"is overloaded"),
    ],
    ids=lambda value: value[:40],
)
@pytest.mark.usefixtures("daemon_and_cache_as_they_were")
def test_signatures_that_cannot_be_launched(fresh_name, source, message):
    with pytest.raises(kernix.KernelRequestError, match=rf"(?s){fresh_name}:\d+.*{message}"):
        kernix.load_cuda_inline(fresh_name, source, compute_capability="sm_90", auto_register=False)


@pytest.mark.usefixtures("daemon_and_cache_as_they_were")
def test_a_kernel_needs_cuda(fresh_name):
    message = rf"'f' \({fresh_name}:2\) is a __global__ function, but the source is C\+\+: load it"
    with pytest.raises(kernix.KernelRequestError, match=message):
        kernix.load_cpp_inline(fresh_name, "// @BE f\n__global__ void f(float* y) {}")
