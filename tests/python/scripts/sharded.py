# SPDX-License-Identifier: Apache-2.0
"""Call a kernel on each shard of an array that lies on four devices, also differentiated."""

import jax
import jax.numpy as jnp
import numpy as np
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
    }""",
)
shard_map = getattr(jax, "shard_map", None) or jax.experimental.shard_map.shard_map
mesh = Mesh(np.array(jax.devices()), ("rows",))
x = jax.device_put(jnp.arange(24, dtype=jnp.float32).reshape(8, 3), NamedSharding(mesh, P("rows")))
rows = module.rows.with_vjp("rows_backward")
on_shards = jax.jit(shard_map(rows, mesh=mesh, in_specs=P("rows"), out_specs=P("rows")))
y = on_shards(x)
np.testing.assert_array_equal(y, 2 * np.asarray(x))
gradient = jax.grad(lambda x: jnp.sum(on_shards(x)))(x)
np.testing.assert_array_equal(gradient, np.full((8, 3), 2))
shapes = (
    {shard.data.shape for shard in y.addressable_shards},
    {shard.data.shape for shard in gradient.addressable_shards},
)
print(len(y.sharding.device_set), "devices, shards", *(shape for kind in shapes for shape in kind))
