# SPDX-License-Identifier: Apache-2.0
"""Functions of a module under JAX's transformations: differentiated, and sharded over several devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernix

pytestmark = pytest.mark.usefixtures("on_cpu")

SOURCE = """
#include "brainevent/common.h"

// @BE power arg arg ret attr.scale:float32
void power(const BE::Tensor x, const BE::Tensor n, BE::Tensor y, float scale) {
    for (int64_t i = 0; i < x.numel(); ++i) {
        float product = scale;
        for (int k = 0; k < n.data_ptr<int32_t>()[i]; ++k) product *= x.data_ptr<float>()[i];
        y.data_ptr<float>()[i] = product;
    }
}

// dx = dy * n * y / x
// @BE power_backward arg arg arg arg ret
void power_backward(const BE::Tensor x, const BE::Tensor n, const BE::Tensor y, const BE::Tensor dy, BE::Tensor dx) {
    for (int64_t i = 0; i < x.numel(); ++i)
        dx.data_ptr<float>()[i] = dy.data_ptr<float>()[i] * n.data_ptr<int32_t>()[i] * y.data_ptr<float>()[i] /
                                  x.data_ptr<float>()[i];
}

// @BE multiply arg arg ret attr.scale:float32
void multiply(const BE::Tensor a, const BE::Tensor b, BE::Tensor y, float scale) {
    for (int64_t i = 0; i < a.numel(); ++i)
        y.data_ptr<float>()[i] = scale * a.data_ptr<float>()[i] * b.data_ptr<float>()[i];
}

// @BE multiply_backward arg arg arg ret ret attr.scale:float32
void multiply_backward(const BE::Tensor a, const BE::Tensor b, const BE::Tensor dy, BE::Tensor da, BE::Tensor db,
                       float scale) {
    for (int64_t i = 0; i < a.numel(); ++i) {
        da.data_ptr<float>()[i] = scale * dy.data_ptr<float>()[i] * b.data_ptr<float>()[i];
        db.data_ptr<float>()[i] = scale * dy.data_ptr<float>()[i] * a.data_ptr<float>()[i];
    }
}

// Its second result has no gradient.
// @BE sign arg ret ret
void sign(const BE::Tensor x, BE::Tensor y, BE::Tensor negative) {
    for (int64_t i = 0; i < x.numel(); ++i) {
        y.data_ptr<float>()[i] = 2 * x.data_ptr<float>()[i];
        negative.data_ptr<int32_t>()[i] = x.data_ptr<float>()[i] < 0;
    }
}

// @BE sign_backward arg arg ret
void sign_backward(const BE::Tensor, const BE::Tensor dy, BE::Tensor dx) {
    for (int64_t i = 0; i < dy.numel(); ++i) dx.data_ptr<float>()[i] = 2 * dy.data_ptr<float>()[i];
}

// @BE other arg ret attr.unknown:int32
void other(const BE::Tensor, BE::Tensor, int32_t) {}

// @BE line
void line(const BE::Tensor x, BE::Tensor y, float factor = 2, float shift = 1) {
    for (int64_t i = 0; i < x.numel(); ++i)
        y.data_ptr<float>()[i] = factor * x.data_ptr<const float>()[i] + shift;
}

// Its default is not that of `line`.
// @BE line_backward
void line_backward(const BE::Tensor, const BE::Tensor dy, BE::Tensor dx, float factor = 7, int only_here = 1) {
    for (int64_t i = 0; i < dy.numel(); ++i)
        dx.data_ptr<float>()[i] = only_here * factor * dy.data_ptr<const float>()[i];
}

// @BE other_order
void other_order(const BE::Tensor, const BE::Tensor, BE::Tensor, int only_here = 1, float factor = 2) {}
"""

A = jnp.array([1.0, -2.0, 3.0], jnp.float32)
B = jnp.array([4.0, 5.0, 6.0], jnp.float32)


@pytest.fixture(scope="module", name="module")
def module_fixture(place):
    return kernix.load_cpp_inline("transformations", SOURCE)


def test_gradient_of_every_argument(module):
    multiply = module.multiply.with_vjp("multiply_backward")
    loss = jax.jit(lambda a, b: jnp.sum(multiply(a, b, scale=3) ** 2))
    expected = jax.grad(lambda a, b: jnp.sum((3 * a * b) ** 2), argnums=(0, 1))(A, B)
    for got, wanted in zip(jax.grad(loss, argnums=(0, 1))(A, B), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_gradient_of_some_arguments_from_saved_results(module):
    power = module.power.with_vjp(module.power_backward, argnums=[0], save_results=True)
    n = jnp.array([2, 3, 1], jnp.int32)
    out = jax.ShapeDtypeStruct(A.shape, A.dtype)
    gradient = jax.grad(lambda x: jnp.sum(power(x, n, scale=0.5, out=out)))(A)
    np.testing.assert_allclose(gradient, 0.5 * n * A ** (n - 1), rtol=1e-6)


def test_a_result_without_a_gradient(module):
    sign = module.sign.with_vjp("sign_backward")
    out = (jax.ShapeDtypeStruct(A.shape, A.dtype), jax.ShapeDtypeStruct(A.shape, jnp.int32))
    (gradient, negative) = jax.grad(lambda x: (lambda y, n: (jnp.sum(y), n))(*sign(x, out=out)), has_aux=True)(A)
    np.testing.assert_array_equal(gradient, [2, 2, 2])
    np.testing.assert_array_equal(negative, [0, 1, 0])


def test_gradient_of_a_batch(module):
    multiply = module.multiply.with_vjp("multiply_backward")
    batch = jnp.stack([A, B])
    gradient = jax.vmap(jax.grad(lambda a: jnp.sum(multiply(a, B, scale=2, vmap_method="broadcast_all"))))(batch)
    np.testing.assert_array_equal(gradient, [2 * B, 2 * B])


def test_without_jax_it_is_the_forward_function(module):
    multiply = module.multiply.with_vjp("multiply_backward")
    y = multiply(np.asarray(A), np.asarray(B), scale=1)
    assert type(y) is np.ndarray
    np.testing.assert_array_equal(y, A * B)
    assert "with the backward function multiply_backward" in repr(multiply)


def test_backward_functions_that_do_not_fit(module):
    with pytest.raises(KeyError, match="no_such"):
        module.multiply.with_vjp("no_such")
    with pytest.raises(TypeError, match=r"power_backward.* returns 1 results; .* it must return 2"):
        module.multiply.with_vjp("power_backward")
    with pytest.raises(TypeError, match="has the attribute 'unknown', which .*sign.* does not have"):
        module.sign.with_vjp("other")


def test_attributes_of_both_cannot_be_left_out(module):
    line = module.line.with_vjp("line_backward")
    gradient = jax.grad(lambda x, **given: jnp.sum(line(x, **given)))
    np.testing.assert_array_equal(gradient(A, factor=3), [3, 3, 3])  # `shift` is the forward function's alone
    np.testing.assert_array_equal(line(np.asarray(A)), 2 * A + 1)
    for call in (gradient, line):
        with pytest.raises(
            TypeError,
            match=r"\.line\(\) needs the attribute factor: float32 .*line_backward\(\) has it, too.* Pass the",
        ):
            call(A)
    with pytest.raises(TypeError, match=r"other_order\(\): attribute 'factor' is given, so 'only_here'"):
        module.line.with_vjp("other_order")


def test_numbers_of_arguments(module):
    gradient = module.power.with_vjp("power_backward", argnums=-2, save_results=True)
    n = jnp.array([2, 3, 1], jnp.int32)
    expected = n * A ** (n - 1)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(gradient(x, n, scale=1, out=x)))(A), expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"argnums=\[7\] names an argument that .*power.* does not have"):
        module.power.with_vjp("power_backward", argnums=[7])
    with pytest.raises(ValueError, match=r"argnums=\[-3\] names an argument"):
        module.power.with_vjp("power_backward", argnums=-3)
    with pytest.raises(ValueError, match="twice"):
        module.multiply.with_vjp("multiply_backward", argnums=(0, -2))


def test_forward_mode_is_refused(module):
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jvp(lambda a: module.multiply.with_vjp("multiply_backward")(a, B, scale=1), (A,), (A,))


def test_shard_map_over_four_devices(run_python):
    flags = "--xla_force_host_platform_device_count=4"
    assert run_python("sharded.py", XLA_FLAGS=flags, JAX_PLATFORMS="cpu") == "4 devices, shards (2, 3) (2, 3)\n"
