# SPDX-License-Identifier: Apache-2.0
"""Call a kernel on each shard of an array that lies on four devices, also differentiated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import kernix

module = kernix.load_cpp_inline(
    "sharded",
    """
    #include "brainevent/common.h"
    // Every element becomes the number of rows that the kernel sees, times its own value.
    // @BE rows arg ret
    void rows(const BE::Tensor x, BE::Tensor y) {
        for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = x.size(0) * x.data_ptr<float>()[i];
    }
    // @BE rows_backward arg arg ret
    void rows_backward(const BE::Tensor x, const BE::Tensor dy, BE::Tensor dx) {
        for (int64_t i = 0; i < x.numel(); ++i) dx.data_ptr<float>()[i] = x.size(0) * dy.data_ptr<float>()[i];
    }
    // @BE multiply arg arg ret
    void multiply(const BE::Tensor a, const BE::Tensor b, BE::Tensor y) {
        for (int64_t i = 0; i < y.numel(); ++i)
            y.data_ptr<float>()[i] = a.data_ptr<float>()[i] * b.data_ptr<float>()[i];
    }
    // @BE multiply_backward arg arg arg ret ret
    void multiply_backward(const BE::Tensor a, const BE::Tensor b, const BE::Tensor dy, BE::Tensor da, BE::Tensor db) {
        multiply(b, dy, da);
        multiply(a, dy, db);
    }""",
)
if hasattr(jax, "shard_map"):
    shard_map = jax.shard_map
    unchecked = {}
else:  # JAX 0.5, which does not know what the tangents' own primitive replicates
    from jax.experimental.shard_map import shard_map

    unchecked = {"check_rep": False}
mesh = Mesh(np.array(jax.devices()), ("rows",))
x = jax.device_put(jnp.arange(24, dtype=jnp.float32).reshape(8, 3), NamedSharding(mesh, P("rows")))
rows = module.rows.with_vjp("rows_backward")
on_shards = jax.jit(shard_map(rows, mesh=mesh, in_specs=P("rows"), out_specs=P("rows")))
y = on_shards(x)
np.testing.assert_array_equal(y, 2 * np.asarray(x))
gradient = jax.grad(lambda x: jnp.sum(on_shards(x)))(x)
np.testing.assert_array_equal(gradient, np.full((8, 3), 2))
tangents = module.rows.with_jvp("rows_backward")
along = shard_map(tangents, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"), **unchecked)
np.testing.assert_array_equal(jax.jvp(along, (x,), (x,))[1], 2 * np.asarray(x))

# A replicated argument beside a sharded one: the result is sharded, and the replicated one's gradient is summed.
multiply = module.multiply.with_vjp("multiply_backward")
weights = jnp.arange(1, 7, dtype=jnp.float32).reshape(2, 3)


def product(function, **options):
    """Return a function that multiplies each shard of x by the whole w."""
    return shard_map(lambda w, x: function(w, x, **options), mesh=mesh, in_specs=(P(), P("rows")), out_specs=P("rows"))


expected = jax.grad(lambda w, x: jnp.sum(product(jnp.multiply)(w, x)), argnums=(0, 1))(weights, x)
for out in (None, x[:2], jax.ShapeDtypeStruct((2, 3), jnp.float32)):
    both = product(multiply, out=out)
    np.testing.assert_array_equal(both(weights, x), product(jnp.multiply)(weights, x))
    got = jax.grad(lambda w, x, both=both: jnp.sum(both(w, x)), argnums=(0, 1))(weights, x)
    for one, wanted in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, wanted)
if hasattr(jax, "typeof"):  # JAX refuses to take what a kernel made of shards for replicated
    wrong = shard_map(module.multiply, mesh=mesh, in_specs=(P(), P("rows")), out_specs=P())
    with pytest.raises(ValueError, match="out_specs"):
        wrong(weights, x)
shapes = (
    {shard.data.shape for shard in y.addressable_shards},
    {shard.data.shape for shard in gradient.addressable_shards},
)
print(len(y.sharding.device_set), "devices, shards", *(shape for kind in shapes for shape in kind))
