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
