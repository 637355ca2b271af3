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
    with pytest.raises(TypeError, match=r"other_order\(\): attribute 'factor' is given, so give 'only_here' before it"):
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


def test_each_rule_alone_asks_for_the_other(module, cubes):
    multiply = module.multiply.with_vjp("multiply_backward")
    with pytest.raises(TypeError, match=r"multiply\(\) has no tangents, which jax.jvp and .*\.with_jvp\("):
        jax.jvp(lambda a: multiply(a, B, scale=1), (A,), (A,))
    cube = of_kernel(cubes.cube.with_jvp("cube_along"))
    for gradient in (jax.grad(lambda x: cube(x).sum()), jax.jit(jax.grad(lambda x: cube(x).sum())), jax.jacrev(cube)):
        with pytest.raises(ValueError, match=r"cube\(\) has no backward function, which jax.grad .*\.with_vjp\("):
            gradient(V)


def test_shard_map_over_four_devices(run_python):
    flags = "--xla_force_host_platform_device_count=4"
    assert run_python("sharded.py", XLA_FLAGS=flags, JAX_PLATFORMS="cpu") == "4 devices, shards (2, 3) (2, 3)\n"


# --- Tangents, and second derivatives --------------------------------------------------------------------------------

# cube(x) = scale x^3 and its first and second derivatives, each as a kernel.
CUBE = """
#include "brainevent/common.h"
#define EACH for (int64_t i = 0; i < x.size(); ++i)
// @BE cube
void cube(BE::In<float> x, BE::Out<float> y, float scale) { EACH y[i] = scale * x[i] * x[i] * x[i]; }
// @BE cube_along
void cube_along(BE::In<float> x, BE::In<float> t, BE::Out<float> dy, float scale) {
    EACH dy[i] = 3 * scale * x[i] * x[i] * t[i];
}
// @BE cube_backward
void cube_backward(BE::In<float> x, BE::In<float> c, BE::Out<float> dx, float scale) {
    EACH dx[i] = 3 * scale * x[i] * x[i] * c[i];
}
// Of both, for they are alike.
// @BE second_along
void second_along(BE::In<float> x, BE::In<float> c, BE::In<float> tx, BE::In<float> tc, BE::Out<float> dy,
                  float scale) {
    EACH dy[i] = 6 * scale * x[i] * c[i] * tx[i] + 3 * scale * x[i] * x[i] * tc[i];
}
// @BE second_backward
void second_backward(BE::In<float> x, BE::In<float> c, BE::In<float> g, BE::Out<float> dx, BE::Out<float> dc,
                     float scale) {
    EACH { dx[i] = 6 * scale * x[i] * c[i] * g[i]; dc[i] = 3 * scale * x[i] * x[i] * g[i]; }
}
// A product, of which n is a number of times, and a count.
// @BE times
void times(BE::In<float> x, BE::In<int> n, BE::Out<float> y, BE::Out<int> m) {
    EACH { y[i] = n[i] * x[i]; m[i] = n[i]; }
}
// @BE times_along
void times_along(BE::In<float> x, BE::In<int> n, BE::In<float> y, BE::In<int>, BE::In<float> t, BE::Out<float> dy) {
    EACH dy[i] = y[i] / x[i] * t[i];
}
// @BE times_backward
void times_backward(BE::In<float> x, BE::In<int> n, BE::In<float> c, BE::Out<float> dx) { EACH dx[i] = n[i] * c[i]; }
"""
V = jnp.array([1.0, 2.0, -3.0], jnp.float32)


@pytest.fixture(scope="module", name="cubes")
def cubes_fixture(place):
    return kernix.load_cpp_inline("cubes", CUBE)


def of_jax(x):
    """The same as the kernel `cube`, which JAX can differentiate."""
    return 2 * x**3


def of_kernel(function):
    return lambda x: function(x, scale=2, vmap_method="broadcast_all")


def assert_equal(got, wanted):
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_tangents(cubes, wrap):
    cube = of_kernel(cubes.cube.with_jvp("cube_along"))
    for got, wanted in zip(
        wrap(lambda x, t: jax.jvp(cube, (x,), (t,)))(V, V), jax.jvp(of_jax, (V,), (V,)), strict=True
    ):
        assert_equal(got, wanted)
    assert_equal(wrap(jax.jacfwd(cube))(V), jax.jacfwd(of_jax)(V))
    assert_equal(wrap(cube)(V), of_jax(V))


@pytest.mark.parametrize("order", ["vjp first", "jvp first"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_both_derivatives_and_second_ones(cubes, order, wrap):
    backward = cubes.cube_backward.with_jvp("second_along").with_vjp("second_backward")
    along = cubes.cube_along.with_vjp("second_backward").with_jvp("second_along")
    if order == "vjp first":
        both = cubes.cube.with_vjp(backward).with_jvp(along)
    else:
        both = cubes.cube.with_jvp(along).with_vjp(backward)
    cube = of_kernel(both)
    total, total_of_jax = (lambda x: cube(x).sum()), (lambda x: of_jax(x).sum())
    assert_equal(wrap(jax.grad(total))(V), jax.grad(total_of_jax)(V))
    assert_equal(wrap(jax.jacrev(cube))(V), jax.jacrev(of_jax)(V))
    assert_equal(wrap(jax.jacfwd(cube))(V), jax.jacfwd(of_jax)(V))
    assert_equal(wrap(jax.hessian(total))(V), jax.hessian(total_of_jax)(V))
    assert_equal(
        wrap(jax.grad(lambda x: jax.grad(total)(x)[1]))(V), jax.grad(lambda x: jax.grad(total_of_jax)(x)[1])(V)
    )
    assert_equal(wrap(jax.jacfwd(jax.jacfwd(cube)))(V), jax.jacfwd(jax.jacfwd(of_jax))(V))
    batch = jnp.stack([V, 2 * V])
    assert_equal(wrap(jax.vmap(jax.grad(total)))(batch), jax.vmap(jax.grad(total_of_jax))(batch))
    assert_equal(wrap(jax.vmap(jax.hessian(total)))(batch), jax.vmap(jax.hessian(total_of_jax))(batch))
    assert "with the backward function cube_backward and the tangents cube_along" in repr(both)
    assert_equal(both(np.asarray(V), scale=2), of_jax(V))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_reverse_over_reverse(cubes, wrap):
    cube = of_kernel(cubes.cube.with_vjp(cubes.cube_backward.with_vjp("second_backward")))
    for function in (
        lambda f: jax.grad(lambda x: (jax.grad(lambda x: f(x).sum())(x) * x).sum()),
        lambda f: jax.jacrev(jax.jacrev(f)),
        lambda f: jax.grad(lambda x: (jax.vjp(f, x)[1](x)[0] ** 2).sum()),
    ):
        assert_equal(wrap(function(cube))(V), function(of_jax)(V))
    once = of_kernel(cubes.cube.with_vjp("cube_backward"))
    with pytest.raises(ValueError, match=r"cubes.cube_backward\(\) cannot be differentiated"):
        wrap(jax.grad(lambda x: jax.grad(lambda x: once(x).sum())(x).sum()))(V)


def test_integers_have_no_tangents(cubes):
    out = (jax.ShapeDtypeStruct(V.shape, V.dtype), jax.ShapeDtypeStruct(V.shape, jnp.int32))
    n = jnp.array([2, 3, 4], jnp.int32)
    along = cubes.times.with_jvp("times_along", save_results=True)
    (y, _), (dy, dm) = jax.jvp(lambda x: along(x, n, out=out), (V,), (V,))
    assert_equal(y, n * V)
    assert_equal(dy, n * V)
    assert dm.dtype == jax.dtypes.float0
    both = along.with_vjp("times_backward", argnums=0)
    assert_equal(jax.grad(lambda x: both(x, n, out=out)[0].sum())(V), n)


@pytest.mark.parametrize(
    "derive", [jax.grad, lambda f: jax.grad(jax.jit(f)), lambda f: lambda x: jax.jvp(f, (x,), (x,))]
)
def test_a_kernel_without_derivatives_says_how_to_give_it_some(cubes, derive):
    with pytest.raises(ValueError, match=r"cubes.cube\(\) cannot be differentiated.*with_vjp.*with_jvp"):
        derive(lambda x: cubes.cube(x, scale=2).sum())(V)


def test_a_kernel_is_only_differentiated_where_something_depends_on_it(cubes):
    weights = cubes.cube(V, scale=2)
    assert_equal(jax.grad(lambda x: (x * cubes.cube(V, scale=2)).sum())(V), weights)
    assert_equal(jax.grad(jax.jit(lambda x: (x * cubes.cube(jax.lax.stop_gradient(x), scale=2)).sum()))(V), weights)


def test_tangents_that_do_not_fit(cubes):
    with pytest.raises(KeyError, match="no_such"):
        cubes.cube.with_jvp("no_such")
    with pytest.raises(TypeError, match=r"cube.with_jvp\(\) takes the name.*jax.custom_jvp"):
        cubes.cube.with_jvp(lambda x, t: t)
    with pytest.raises(TypeError, match="has the attribute 'scale', which .*times.* does not have"):
        cubes.times.with_jvp("cube_along")


# --- One name on two platforms ---------------------------------------------------------------------------------------


def test_an_op_for_cpu_and_gpu_is_traced_and_run_without_a_gpu(fresh_name):
    host = kernix.load_cpp_inline(fresh_name, CUBE)
    kernel = "// @BE f\n__global__ void f(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }"
    device = kernix.load_cuda_inline(f"{fresh_name}_gpu", kernel, compute_capability="sm_90")

    @jax.jit
    def op(x):
        return jax.lax.platform_dependent(
            x, cpu=lambda x: host.cube(x, scale=2), cuda=lambda x: device.f(x, grid=1, block=3)
        )

    assert_equal(op(V), of_jax(V))
    assert f"{fresh_name}_gpu.f" in op.trace(V).lower(lowering_platforms=("cuda",)).as_text()


def test_a_name_with_code_for_both_platforms(fresh_name):
    source = """
#include "brainevent/common.h"
__global__ void half_kernel(BE::In<float> x, BE::Out<float> y) { y[threadIdx.x] = x[threadIdx.x] / 2; }
// @BE half
void half(BE::In<float> x, BE::Out<float> y, cudaStream_t stream) { half_kernel<<<1, x.size(), 0, stream>>>(x, y); }
"""
    device = kernix.load_cuda_inline(fresh_name, source, compute_capability="sm_90")
    with pytest.raises(TypeError, match="is CUDA code, which runs on the GPU"):
        device.half(V)
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"{fresh_name}.half is CUDA code, which runs on a GPU"):
        jax.block_until_ready(jax.jit(device.half)(V))
    on_host = '#include "brainevent/common.h"\n// @BE half\n' + (
        "void half(BE::In<float> x, BE::Out<float> y) { for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] / 2; }"
    )
    host = kernix.load_cpp_inline(fresh_name, on_host)
    for function in (host.half, device.half):
        assert_equal(function(V), V / 2)
        assert_equal(jax.jit(function)(V), V / 2)
        assert fresh_name in jax.jit(function).trace(V).lower(lowering_platforms=("cuda",)).as_text()
