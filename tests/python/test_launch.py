# SPDX-License-Identifier: Apache-2.0
"""__global__ functions that are exported by themselves: what calls take, and every error that needs no GPU.

tests/gpu launches them.
"""

import ctypes
import inspect
import pathlib
import re
import sys

import jax
import jax.numpy as jnp
import kernels
import numpy as np
import pytest

import kernix
from kernix import _core
from kernix.calling.launch import LAUNCH

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
    launch = "grid, block, shared=0, cluster=None, cooperative=False"
    assert str(module.vector_add) == f"launched.vector_add(a: float32, b: float32, /, *, n: int32, {launch}, out=None)"
    parameters = inspect.signature(module.vector_add).parameters
    assert [name for name in parameters if name in LAUNCH] == ["grid", "block", "shared", "cluster", "cooperative"]


def test_an_array_may_be_named_like_a_part_of_the_launch(fresh_name):
    source = "// @BE f\n__global__ void f(const float* grid, float* shared) { *shared = *grid; }"
    module = kernix.load_cuda_inline(fresh_name, source, compute_capability="sm_90", auto_register=False)
    assert (
        str(module.f)
        == f"{fresh_name}.f(grid_: float32, /, *, grid, block, shared=0, cluster=None, cooperative=False, out=None)"
    )
    assert list(inspect.signature(module.f).parameters)[:3] == ["grid_", "grid", "block"]


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
    assert "cooperative = true" in lowered(lambda a, b: module.vector_add(a, b, cooperative=True, **GOOD))


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
    ({"cooperative": 2}, ValueError, r"attribute 'cooperative' is 2, which does not fit bool"),
    ({"cooperative": "yes"}, TypeError, r"attribute 'cooperative' is of type str"),
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


AS_ELSEWHERE = {
    "CuPy": lambda f: f((1,), (32,), (X, X, 5)),
    "CuPy, as many as arrays": lambda f: f((1,), (32,), n=5),
    "CUDA": lambda f: f(1, 32, X, X, n=5),
    "Numba": lambda f: f[1, 32](X, X, n=5),
}


@pytest.mark.parametrize("way", AS_ELSEWHERE)
def test_a_launch_as_in_another_library_says_how(module, way):
    example = re.escape("grid and block go by keyword, as in launched.vector_add(a, b, n=..., grid=..., block=...)")
    with pytest.raises(TypeError, match=rf"vector_add(\(\)|\[\.\.\.\]): {example}$"):
        AS_ELSEWHERE[way](module.vector_add)


def test_a_launch_by_other_names_says_which_there_are(module):
    names = "grid=, block=, shared=, cluster=, cooperative="
    with pytest.raises(TypeError, match=f"no attribute 'blocks': the launch takes {names}; its attributes: n: int32"):
        module.vector_add(X, X, n=5, blocks=1, threads=32)
    with pytest.raises(TypeError, match=r"no attribute 'y': y is a result: pass it as out=; its attributes: n: int32"):
        module.vector_add(X, X, y=X, n=5, **{name: GOOD[name] for name in ("grid", "block")})


def test_a_host_function_says_that_it_is_none():
    host = kernix.load_cpp_inline("launched_not", kernels.ADD_ONE)
    with pytest.raises(TypeError, match=r"add_one\[...\]: a host function launches kernels itself"):
        host.add_one[1, 32](X)
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


def handle(module, function="vector_add", arrays=(X, X), result=X, **attributes):
    """Call a handler as XLA does. The arrays, of float32, are never read."""
    frames = [(array.ctypes.data, 11, array.shape) for array in (*arrays, result)]
    values = {name: value for name, value in attributes.items() if value is not None}
    address = module._code.core.address(function)
    _core.call_handler(address, frames[:-1], frames[-1:], values, 0, None)


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
        ({"cooperative": ("int64", 2)}, r"cooperative is out of range"),
        ({"cooperative": ("string", "1")}, r"cooperative must be a scalar"),
        ({"more": ("int64", 1), "cooperative": ("bool", True)}, r"has no attribute 'more'"),
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
        handle(module, arrays=[X], **ATTRIBUTES)
    with pytest.raises(kernix.KernelCallError, match=r"argument 0 takes float16, got float32|\(x\) takes float16"):
        handle(module, "scale___half", [X], **ATTRIBUTES, factor=("float64", 1.0))


@pytest.mark.skipif(bool(list(pathlib.Path("/dev").glob("nvidia[0-9]*"))), reason="this machine has a GPU")
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, r"the launch, with grid \(1, 1, 1\), block \(256, 1, 1\), shared 0, failed: cudaError\w+: "),
        ({"shared": ("int64", 65536)}, r"asking for the shared memory, with .* shared 65536, failed: cudaError\w+: "),
        ({"cooperative": ("bool", True)}, r"the launch, with .*, shared 0, cooperative, failed: cudaError\w+: "),
        ({"cluster": ("int64", 1)}, r"asking for clusters, with .*, cluster \(1, 1, 1\), failed: cudaError\w+: "),
    ],
    ids=["launch", "shared", "cooperative", "cluster"],
)
def test_what_cuda_refuses_names_the_function_and_the_launch(module, more, message):
    """Here, CUDA refuses everything: there is no GPU."""
    with pytest.raises(kernix.KernelCallError, match="^vector_add: " + message):
        handle(module, **ATTRIBUTES, **more)


# --- Sources that are refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("enum S { one };\n// @BE f\n__global__ void f(S s, float* y) {}", r"'f' is 'S s'.*a pointer to the el"),
        (
            "// @BE f\n__global__ void f(lldiv_t s, float* y) {}",
            r"'f' is 'lldiv_t s'.*attr.<name>:uint8\[\]",
        ),
        ("struct S { int i; };\n// @BE f\n__global__ void f(S& s, float* y) {}", r"'f' is 'S& s'"),
        ("// @BE f\n__global__ void f(float* y, float3& s) {}", r"takes its parameters by value"),
        ("// @BE f\n__global__ void f(float* y, int cooperative) {}", r"'cooperative' has the name of a launch"),
        (
            "#include <cuda_fp16.h>\n// @BE f\n__global__ void f(float* y, __half a) {}",
            r"'__half a'.*take a float, and convert it",
        ),
        ("// @BE f\n__global__ void f(float* y, cudaStream_t s) {}", r"on the stream of the call.*leave the parameter"),
        ("// @BE f\n__global__ void f(float* y, int grid) {}", r"'grid' has the name of a launch attribute"),
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


# --- Structs and vectors by value ------------------------------------------------------------------------------------

BY_VALUE = """
struct Pair { float scale; int shift; };
struct alignas(16) Big { double values[4]; char tail; };
union Either { int i; float f; };
// @BE pair
__global__ void pair(const float* x, float* y, Pair p) { y[0] = p.scale * x[0] + p.shift; }
// @BE both
__global__ void both(float* y, const Big big, Either either, int n) { y[0] = big.values[n] + either.f; }
// @BE vectors
__global__ void vectors(float* y, float3 a, int2 b, uchar4 c, double2 d, dim3 e) { y[0] = a.x + b.y + c.z + d.y + e.x; }
// @BE token arg:float32 ret:float32 attr.bytes:uint8[]
__global__ void token(const float* x, float* y, Pair p) { y[0] = p.scale; }
"""
PAIR = np.dtype([("scale", np.float32), ("shift", np.int32)])


class PairOfC(ctypes.Structure):
    """The struct Pair."""

    _fields_ = (("scale", ctypes.c_float), ("shift", ctypes.c_int))


class ForeignOfC(ctypes.BigEndianStructure):
    """The struct Pair of another machine."""

    _fields_ = PairOfC._fields_


class PackedOfC(ctypes.BigEndianStructure):
    """A struct of another machine that has no format of Python's buffers."""

    _pack_ = 1
    _fields_ = (("n", ctypes.c_int64),)


@pytest.fixture(scope="module", name="by_value")
def by_value_fixture(place):
    return kernix.load_cuda_inline("by_value", BY_VALUE, compute_capability="sm_90")


def test_structs_and_vectors_are_array_attributes(by_value):
    assert {name: by_value.arg_spec(name) for name in by_value} == {
        "pair": ["arg:float32", "ret:float32", "attr.p:uint8[]"],
        "both": ["ret:float32", "attr.big:uint8[]", "attr.either:uint8[]", "attr.n:int32"],
        "vectors": [
            "ret:float32",
            "attr.a:float32[]",
            "attr.b:int32[]",
            "attr.c:uint8[]",
            "attr.d:float64[]",
            "attr.e:uint32[]",
        ],
        "token": ["arg:float32", "ret:float32", "attr.bytes:uint8[]"],
    }


@pytest.mark.parametrize(
    "value",
    [
        np.array((2.5, 3), PAIR)[()],
        np.array((2.5, 3), PAIR),
        PairOfC(2.5, 3),
        np.array((2.5, 3), PAIR).tobytes(),
        bytearray(np.array((2.5, 3), PAIR).tobytes()),
        list(np.array((2.5, 3), PAIR).tobytes()),
    ],
    ids=["scalar of NumPy", "array of NumPy", "ctypes", "bytes", "bytearray", "list"],
)
def test_a_struct_is_passed_by_its_bytes(by_value, value):
    x = jax.ShapeDtypeStruct((5,), np.float32)
    call = jax.jit(lambda x: by_value.pair(x, p=value, grid=1, block=1))
    text = call.trace(x).lower(lowering_platforms=("cuda",)).as_text()
    assert re.search(r"p = (dense<\[|array<i8: |dense<\")", text), text
    if sys.byteorder == "little":
        assert "0, 0, 32, 64, 3, 0, 0, 0" in text or "0x0000204003000000" in text, text


@pytest.mark.parametrize(
    ("function", "attributes", "message"),
    [
        ("pair", {"p": ("uint8[]", [0] * 7)}, r"attribute 'p' has 7 bytes; the C\+\+ parameter has 8"),
        ("pair", {"p": ("uint8[]", [])}, r"attribute 'p' has 0 bytes; the C\+\+ parameter has 8"),
        ("vectors", {"a": ("float32[]", [1.0, 2.0])}, r"attribute 'a' has 8 bytes; the C\+\+ parameter has 12"),
        ("vectors", {"a": ("float64[]", [1.0])}, r"attribute 'a' \(float32\[\]\) is an array of float64"),
        ("both", {"big": ("uint8[]", [0] * 40)}, r"attribute 'big' has 40 bytes; the C\+\+ parameter has 48"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_the_handler_checks_the_size_of_a_struct(by_value, function, attributes, message):
    good = {
        "pair": {"p": ("uint8[]", [0] * 8)},
        "vectors": {
            "a": ("float32[]", [1.0] * 3),
            "b": ("int32[]", [1] * 2),
            "c": ("uint8[]", [1] * 4),
            "d": ("float64[]", [1.0] * 2),
            "e": ("uint32[]", [1] * 3),
        },
        "both": {"big": ("uint8[]", [0] * 48), "either": ("uint8[]", [0] * 4), "n": ("int32", 1)},
    }[function]
    launch = {name: value for name, value in ATTRIBUTES.items() if name != "n"}
    with pytest.raises(kernix.KernelCallError, match=message):
        handle(by_value, function, [X] * (function == "pair"), **(good | attributes | launch))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (2.5, TypeError, "attribute 'p' is of type float"),
        ([300], ValueError, "at element 0 is 300"),
        (None, TypeError, "None"),
        (np.array((1,), [("n", ">i8")]), ValueError, r"attribute 'p' has a foreign byte order \(dtype .*>i8"),
        (np.array((1,), [("n", ">i8")])[()], ValueError, "foreign byte order"),
        (np.array(((1,),), [("n", [("m", ">i8")])]), ValueError, "foreign byte order"),
        (np.array(([1, 2],), [("n", ">i4", 2)]), ValueError, "foreign byte order"),
        (memoryview(np.array([1], ">i8")), ValueError, "foreign byte order"),
        (ForeignOfC(1, 2), ValueError, "foreign byte order"),
        (PackedOfC(1), ValueError, "foreign byte order"),
        (np.array((None,), [("n", object)]), TypeError, "fields that are Python objects"),
    ],
    ids=lambda value: str(value).partition(" at 0x")[0],
)
def test_what_is_no_struct_is_refused(by_value, value, error, message):
    with pytest.raises(error, match=message):
        by_value.pair(jnp.zeros(5), p=value, grid=1, block=1)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "struct S { virtual void g() {} int i; };\n// @BE f\n__global__ void f(float* y, S s) { }",
            r"bytes\(3\): .*'s' takes the bytes of a struct, union or vector without virtual functions",
        ),
        (
            "struct S { using element_type = int; static const int extent = 1; int* p; };\n// @BE f\n"
            "__global__ void f(float* y, S s) { }",
            "'s' takes the bytes of a struct, union or vector",
        ),
        (
            "// @BE f ret:float32 attr.s:float32[]\n__global__ void f(float* y, float s) { }",
            "takes 'float s' as parameter 2",
        ),
        (
            '#include "brainevent/common.h"\n// @BE f ret:float32 attr.s:float32[]\n'
            "__global__ void f(float* y, BE::Span<const float> s) { }",
            "'s' takes the bytes of a struct, union or vector",
        ),
    ],
    ids=["virtual function", "view", "number", "span"],
)
def test_what_bytes_cannot_make_does_not_compile(source, message):
    with pytest.raises(kernix.KernelError, match=message):
        kernix.load_cuda_inline("bytes", source, compute_capability="sm_90", auto_register=False)


# What nvcc passes by value, though C++ would not copy its bytes.
MEMBERS = {
    "destructor": "~S() { *p = 0; }",
    "destructor for both sides": "__host__ __device__ ~S() {}",
    "constructor and copy": "explicit S(int) {} S(const S& other) : i(other.i) {}",
    "no copy": "S() = default; S(const S&) = delete;",
    "only a move": "S(S&&) = default;",
    "overloaded address": "S* operator&() const = delete;",
}


@pytest.mark.parametrize("members", MEMBERS)
def test_a_struct_that_nvcc_takes_by_value_is_an_attribute(members, fresh_name):
    source = (
        f"struct S {{ int i; int* p; {MEMBERS[members]} }};\n// @BE f\n"
        "__global__ void f(const float* x, float* y, S s, int n) { y[0] = s.i + n + x[0]; }"
    )
    module = kernix.load_cuda_inline(fresh_name, source, compute_capability="sm_90", auto_register=False)
    assert module.arg_spec("f") == ["arg:float32", "ret:float32", "attr.s:uint8[]", "attr.n:int32"]


# --- Descriptors for TMA ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="mapped")
def mapped_fixture(place):
    return kernix.load_cuda_inline("mapped", kernels.MAPPED, compute_capability="sm_90a")


def test_a_descriptor_is_an_array_of_the_call(mapped):
    assert mapped.arg_spec("copy") == [
        "arg.tensormap:float32[kSide,kSide]",
        "ret.tensormap:float32[kSide,8]",
        "attr.row:int32",
        "attr.column:int32",
    ]
    assert mapped.arg_spec("gather") == ["arg.tensormap:float32[8,32]:swizzle_128B", "ret:float32[2]", "stream"]
    assert str(mapped.gather) == "mapped.gather(map: float32[2], /, *, out=None)"
    with pytest.raises(TypeError, match=r"argument 0 \(x\) takes float32\[2\] \(2 dimensions\), got float64\[16,32\]"):
        mapped.copy(np.zeros((16, 32)), row=0, column=0, grid=1, block=32)


MAP = "#include <cuda.h>\n// @BE f{}\n__global__ void f(const __grid_constant__ CUtensorMap x, float* y) {{ }}"


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (
            "",
            "Request",
            r"a CUtensorMap needs a box: write out the tokens, with arg\.tensormap:<element type>\[<box>\]",
        ),
        (" arg:float32 ret:float32", "Request", r"takes 'const __grid_constant__ CUtensorMap x' as parameter 1, but"),
        (" arg ret:float32", "Request", r"a CUtensorMap needs a box"),
        (
            " arg.tensormap:float32[4] arg.tensormap:float32[4] ret",
            "Request",
            r"has 2 parameters, but its arg_spec",
        ),
        (" arg.tensormap:float32[4] ret.tensormap:float32[4]", "Request", r"takes 'float\* y' as parameter 2, but"),
        (" arg.tensormap:float32 ret:float32", "Request", r"needs an element type and the sizes of its box"),
        (" arg.tensormap:float[8] ret:float32", "Request", r"has the element type 'float'"),
        (" arg.tensormap:float32[] ret:float32", "Request", r"a size of the box is ''"),
        (" arg.tensormap:float32[8,-8] ret:float32", "Request", r"a size of the box is '-8'"),
        (" arg.tensormap:float32[1,1,1,1,1,4] ret:float32", "Request", r"has 6 sizes; TMA has at most 5 dimensions"),
        (" arg.tensormap:float32[8]:128B ret:float32", "Request", r"':128B' follows the box; only :swizzle_32B"),
        (
            " arg.tensormap:float32[8,6] ret:float32",
            "Compilation",
            r"a row of a box for TMA must be a multiple of 16",
        ),
        (" arg.tensormap:float32[257,8] ret:float32", "Request", r"is '257'; it must be a whole number of 1 to 256"),
        (" arg.tensormap:float32[8,16]:swizzle_32B ret:float32", "Compilation", r"must fit into its swizzle"),
        (" arg.tensormap:complex64[8,8] ret:float32", "Compilation", r"TMA has no such element type"),
        (" arg.tensormap:float32[8,kNot] ret:float32", "Compilation", r'"?kNot"? is undefined'),
    ],
    ids=lambda value: value[:50],
)
@pytest.mark.usefixtures("daemon_and_cache_as_they_were")
def test_boxes_that_cannot_be(fresh_name, tokens, error, message):
    with pytest.raises(getattr(kernix, f"Kernel{error}Error"), match=message):
        kernix.load_cuda_inline(fresh_name, MAP.format(tokens), compute_capability="sm_90", auto_register=False)


def test_a_descriptor_needs_cuda(fresh_name):
    source = (
        '#include "brainevent/common.h"\nstruct CUtensorMap {};\n'
        "// @BE f arg.tensormap:float32[8] ret:float32\nvoid f(CUtensorMap x, BE::Tensor y) {}"
    )
    with pytest.raises(kernix.KernelRequestError, match=rf"'f' \({fresh_name}:4\) takes a CUtensorMap, but the source"):
        kernix.load_cpp_inline(fresh_name, source)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (np.zeros((16, 31), np.float32), r"the CUtensorMap x: a row of the array has 124 bytes; TMA needs a multiple"),
        (np.zeros((0, 32), np.float32), r"the CUtensorMap x: the array has no elements"),
        (np.zeros(33, np.float32)[1:].reshape(4, 8), r"the array begins at an address that is no multiple of 16"),
    ],
    ids=["rows", "empty", "address"],
)
def test_the_handler_says_why_there_is_no_descriptor(mapped, arrays, message):
    launch = {"grid": ("int64", 1), "block": ("int64", 32), "row": ("int32", 0), "column": ("int32", 0)}
    with pytest.raises(RuntimeError, match=message):
        handle(mapped, "copy", [arrays], result=np.zeros((8, 8), np.float32), **launch)
