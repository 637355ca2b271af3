# SPDX-License-Identifier: Apache-2.0
"""Typed parameters, BE::In and BE::Out: every call is checked, by JAX or without."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernix

pytestmark = pytest.mark.usefixtures("on_cpu")

KERNELS = """
#include "brainevent/common.h"
// @BE add
void add(BE::In<float> x, BE::In<float, 2> w, BE::Out<float> y) {
    for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i] + w(i, 0);
}
// @BE twice
void twice(BE::In<float> x, BE::Out<float> y) {
    for (int64_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
}
// @BE count
void count(BE::In<BE::bfloat16_t> x, BE::Out<int32_t, 0> y) { y() = x.size(); }
// @BE last
void last(BE::In<float> a, BE::Span<const BE::Tensor> xs, BE::In<int8_t> z, BE::Out<float> y) { y[0] = a[0] + z[0]; }
"""

X = np.arange(3, dtype=np.float32)
W = np.ones((3, 2), np.float32)
OUT = jax.ShapeDtypeStruct((3,), np.float32)


@pytest.fixture(scope="module", name="module", autouse=True)
def module_fixture(place):
    """The kernels above, registered as ``typed.<function>``."""
    return kernix.load_cpp_inline("typed", KERNELS)


def test_specs_are_shown(module):
    assert module.arg_spec("add") == ["arg:float32", "arg:float32[2]", "ret:float32"]
    assert module.arg_spec("count") == ["arg:bfloat16", "ret:int32[0]"]


def test_right_arrays_pass(module):
    np.testing.assert_array_equal(module.add(X, W, out=np.empty_like(X)), [1, 2, 3])
    np.testing.assert_array_equal(module.add(jnp.asarray(X), W, out=OUT), [1, 2, 3])
    np.testing.assert_array_equal(jax.jit(lambda x: module.add(x, W, out=OUT))(X), [1, 2, 3])
    assert module.count(jnp.ones((2, 3), jnp.bfloat16), out=jax.ShapeDtypeStruct((), np.int32)) == 6
    np.testing.assert_array_equal(module.last(X[:1], W, X, np.int8([4]), out=np.empty(1, np.float32)), [4])


WRONG = [
    ((X.astype(np.int32), W), r"argument 0 \(x\) takes float32, got int32$"),
    ((X, X), r"argument 1 \(w\) takes float32\[2\] \(2 dimensions\), got float32\[3\]$"),
    ((X, W.astype(np.int8)), r"argument 1 \(w\) takes float32\[2\] \(2 dimensions\), got int8\[3,2\]$"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_arguments_are_named_without_jax(module, arguments, message):
    with pytest.raises(TypeError, match=r"^typed.add\(\): " + message):
        module.add(*arguments, out=np.empty_like(X))


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_arguments_are_named_while_jax_traces(module, arguments, message):
    with pytest.raises(TypeError, match=r"(?m)^typed.add\(\): " + message):
        jax.make_jaxpr(lambda *xs: module.add(*xs, out=OUT))(*arguments)


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_the_handler_checks_what_ffi_call_passes(arguments, message):
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"INVALID_ARGUMENT: typed\.add: " + message.removesuffix("$")):
        jax.block_until_ready(jax.ffi.ffi_call("typed.add", OUT)(*arguments))


def test_the_default_type_of_numpy_is_refused_without_jax(module):
    with pytest.raises(TypeError, match=r"^typed.twice\(\): argument 0 \(x\) takes float32, got float64$"):
        module.twice(np.ones(3))
    np.testing.assert_array_equal(module.add(jnp.asarray(X), np.ones((3, 2)), out=OUT), [1, 2, 3])  # JAX's float32


def test_results_are_checked(module):
    with pytest.raises(TypeError, match=r"result 0 \(y\) takes float32, got float64$"):
        module.twice(X, out=np.empty(3))
    with pytest.raises(TypeError, match=r"result 0 \(y\) takes float32, got int32$"):
        module.twice(jnp.asarray(X), out=jax.ShapeDtypeStruct((3,), np.int32))
    with pytest.raises(
        TypeError, match=r"takes int32\[0\] .*, got bfloat16\[1\], as the argument: describe it with out="
    ):
        module.count(jnp.ones(1, jnp.bfloat16))


def test_places_after_the_rest_are_counted_from_the_end(module):
    with pytest.raises(TypeError, match=r"argument 3 \(z\) takes int8, got float32$"):
        module.last(X, W, X, X, out=X.copy())
    with pytest.raises(TypeError, match=r"argument 1 \(z\) takes int8, got float32$"):
        module.last(X, X, out=X.copy())


def test_a_batch_is_no_other_rank(module):
    batch = jnp.stack([X, X + 1])
    mapped = jax.vmap(lambda x: module.add(x, W, out=OUT, vmap_method="sequential"))(batch)
    np.testing.assert_array_equal(mapped, [[1, 2, 3], [2, 3, 4]])


WRONG_INDICES = """#include "brainevent/common.h"
// @BE f
void f(BE::In<float, 2> x, BE::Out<float> y) {
    y[0] = x(0);
}
"""


def test_a_wrong_number_of_indices_is_an_error_of_the_line_that_has_it(fresh_name):
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cpp_inline(fresh_name, WRONG_INDICES)
    assert caught.value.message == (
        f"compile failed: {fresh_name}:4:13: error: no match for call to '(BE::In<float, 2>) (int)'. "
        "It takes as many indices as it has dimensions: 2"
    )
    assert "candidate expects 2 arguments, 1 provided" in caught.value.compiler_output


def test_a_wrong_number_of_indices_in_device_code(fresh_name):
    source = WRONG_INDICES.replace("void f", "__global__ void f")
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cuda_inline(fresh_name, source, compute_capability="sm_90")
    assert caught.value.message.startswith(f"compile failed: {fresh_name}(4): error: ")
    assert caught.value.message.endswith(". It takes as many indices as it has dimensions: 2")


@pytest.mark.parametrize("indices", ["", "0, 1, 2"])
def test_a_wrong_number_of_indices_of_an_array_of_any_rank_fails_the_call(indices, fresh_name):
    source = WRONG_INDICES.replace("BE::In<float, 2>", "BE::In<float>").replace("x(0)", f"x({indices})")
    module = kernix.load_cpp_inline(fresh_name, source)
    with pytest.raises(kernix.KernelCallError, match="indices do not match the dimensions: 2"):
        module.f(W, out=np.empty(1, np.float32))


def test_inputs_are_read_only(fresh_name):
    source = '#include "brainevent/common.h"\n// @BE f\nvoid f(BE::In<float> x, BE::Out<float> y) { x[0] = 1; }'
    with pytest.raises(kernix.KernelCompilationError, match="read-only"):
        kernix.load_cpp_inline(fresh_name, source)


# --- 64-bit types, which JAX narrows unless x64 is enabled ------------------------------------------------------------

WIDE = """#include "brainevent/common.h"
// @BE count
void count(BE::Out<int64_t> y) { for (int64_t& value : y) value = 7000000000; }
// @BE twice
void twice(BE::In<double> x, BE::Out<double> y) { for (int64_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i]; }
// @BE widen
void widen(BE::In<float> x, BE::Out<double> y) { for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i]; }
// @BE bits
void bits(BE::In<float> x, BE::Out<uint64_t, 1> y) { for (uint64_t& value : y) value = 1ull << 40; }
// @BE next
void next(BE::In<uint64_t> x, BE::Out<uint64_t> y) { for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i] + 1; }
"""


@pytest.fixture(scope="module", name="wide")
def wide_fixture(place):
    return kernix.load_cpp_inline("wide", WIDE)


def spec64(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, np.dtype(dtype))


def test_results_of_64_bits_are_delivered_without_x64(wide):
    x = jnp.arange(3, dtype=jnp.float32)
    y = wide.count(out=spec64("int64", 2))
    assert (y.dtype, y.tolist()) == (np.int64, [7000000000] * 2)
    y = jax.jit(lambda x: wide.widen(x, out=spec64("float64", 3)))(x)
    assert (y.dtype, y.tolist()) == (np.float64, [0, 1, 2])
    y = jax.vmap(lambda x: wide.bits(x, out=spec64("uint64", 1), vmap_method="sequential"))(x)
    assert (y.dtype, y.tolist()) == (np.uint64, [[1 << 40]] * 3)


SINGLE, WORDS = np.arange(3.0), np.arange(3, dtype=np.uint64)
NARROWED = {
    "an argument under jit": lambda m: jax.jit(m.twice)(SINGLE),
    "an argument under vmap": lambda m: jax.vmap(lambda x: m.next(x, vmap_method="sequential"))(WORDS),
    "an argument under grad": lambda m: jax.grad(lambda x: m.twice(x).sum())(jnp.asarray(SINGLE)),
    "an argument of NumPy": lambda m: m.twice(SINGLE, out=spec64("float64", 3)),
    "a result that JAX has made": lambda m: m.widen(jnp.zeros(3), out=jnp.zeros(3, float)),
    "ffi_call": lambda m: jax.ffi.ffi_call("wide.twice", spec64("float64", 3))(SINGLE),
    "ffi_call under jit": lambda m: jax.jit(jax.ffi.ffi_call("wide.next", spec64("uint64", 3)))(WORDS),
}


@pytest.mark.parametrize("way", NARROWED)
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_an_error_for_what_jax_has_narrowed_names_x64(wide, way):
    with pytest.raises((TypeError, jax.errors.JaxRuntimeError), match=r"takes \w+64, got \w+32.*jax_enable_x64"):
        jax.block_until_ready(NARROWED[way](wide))


def test_other_errors_do_not_name_x64(wide):
    with pytest.raises(TypeError, match=r"takes float64, got int32$"):
        wide.twice(jnp.arange(3))
    with pytest.raises(TypeError, match=r"takes float64, got float32$"):
        wide.twice(X)  # without JAX
    with pytest.raises(TypeError, match="as the argument: describe it with out=$"):
        wide.widen(jnp.asarray(X))


# --- jax.vmap and a fixed number of dimensions ------------------------------------------------------------------------


ADDS_AN_AXIS = """#include "brainevent/common.h"
// @BE first
void first(BE::In<float, 1> x, BE::Out<float, 1> y) { y[0] = x[0]; }
// @BE outer
void outer(BE::In<float> x, BE::Out<float, 2> y) {}
// @BE scalar
void scalar(BE::In<float, 0> x, BE::Out<float, 0> y) { y() = x(); }
"""


@pytest.mark.parametrize(
    ("function", "method", "shape", "out"),
    [
        ("first", "broadcast_all", (3, 2), (2,)),
        ("first", "expand_dims", (3, 2), (2,)),
        ("first", "legacy_vectorized", (3, 2), (2,)),
        ("outer", "broadcast_all", (3, 2), (2, 2)),
        ("scalar", "expand_dims", (3,), ()),
    ],
)
@pytest.mark.parametrize("wrap", [jax.vmap, lambda f: jax.jit(jax.vmap(f))], ids=["vmap", "jit of vmap"])
def test_a_vmap_method_that_adds_a_dimension_is_named(place, function, method, shape, out, wrap):
    module = kernix.load_cpp_inline("adds_an_axis", ADDS_AN_AXIS)
    call = wrap(lambda x: module[function](x, out=jax.ShapeDtypeStruct(out, np.float32), vmap_method=method))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r'vmap_method="sequential"') as caught:
        jax.block_until_ready(call(jnp.ones(shape, jnp.float32)))
    assert "clear_caches" not in str(caught.value)
