# SPDX-License-Identifier: Apache-2.0
"""What a user of Hopper expects to compile and run without a word about it: wgmma, TMA, kernels that launch kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hopper_kernels import LAUNCHES, MAPPED, TILE, WGMMA

import kernix


def capability():
    """Return the compute capability of the first GPU, (9, 0) for Hopper."""
    return tuple(int(part) for part in jax.devices("gpu")[0].compute_capability.split("."))


@pytest.fixture(name="hopper")
def hopper_fixture():
    """Skip a test on any other GPU."""
    if capability() != (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0; this one has {capability()}")


@pytest.mark.usefixtures("hopper")
def test_wgmma_without_a_word():
    module = kernix.load_cuda_inline("wgmma", WGMMA)
    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((64, 16), (16, 8)))
    y = module.multiply(jnp.asarray(a), jnp.asarray(b), out=jax.ShapeDtypeStruct((64, 8), jnp.float32))
    np.testing.assert_array_equal(y, a.astype(np.float32) @ b.astype(np.float32))
    # A named architecture is what it says, and another build.
    with pytest.raises(kernix.KernelCompilationError, match=r"wgmma|sm_90"):
        kernix.load_cuda_inline("wgmma", WGMMA, compute_capability="sm_90", auto_register=False)
    assert kernix.load_cuda_inline("wgmma", WGMMA, compute_capability="native").cache_hit


def test_a_descriptor_for_tma_by_the_driver():
    if capability() < (9, 0):
        pytest.skip(f"TMA came with 9.0; this GPU has {capability()}")
    module = kernix.load_cuda_inline("tma", TILE)
    x = jnp.arange(16 * 32, dtype=jnp.float32).reshape(16, 32)
    y = module.tile(x, out=jax.ShapeDtypeStruct((8, 8), jnp.float32))
    np.testing.assert_array_equal(y, x[8:16, 16:24])


def test_descriptors_that_kernix_makes():
    if capability() < (9, 0):
        pytest.skip(f"TMA came with 9.0; this GPU has {capability()}")
    module = kernix.load_cuda_inline("mapped", MAPPED)
    x = jnp.arange(16 * 32, dtype=jnp.float32).reshape(16, 32)
    tile = jax.ShapeDtypeStruct((8, 8), jnp.float32)

    @jax.jit
    def corners(x):
        where = {"first": (8, 16), "last": (12, 28)}
        return {name: module.copy(x, out=tile, row=r, column=c, grid=1, block=32) for name, (r, c) in where.items()}

    tiles = corners(x)
    np.testing.assert_array_equal(tiles["first"], x[8:16, 16:24])
    np.testing.assert_array_equal(tiles["last"], np.pad(x, ((0, 8), (0, 8)))[12:20, 28:36])
    # Another array of another shape has another descriptor, in one compiled module.
    other = -jnp.ones((8, 64), jnp.float32)
    np.testing.assert_array_equal(module.copy(other, out=tile, row=0, column=56, grid=1, block=32), other[:, :8])
    y = module.gather(x, out=jax.ShapeDtypeStruct((8, 32), jnp.float32))
    np.testing.assert_array_equal(y, x[:8])


@pytest.mark.parametrize(
    ("shape", "message"),
    [((16, 31), r"the CUtensorMap x: a row of the array has 124 bytes"), ((0, 32), r"the array has no elements")],
)
def test_arrays_that_no_descriptor_describes(shape, message):
    module = kernix.load_cuda_inline("mapped", MAPPED)
    tile = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match=message):
        module.copy(jnp.zeros(shape, jnp.float32), out=tile, row=0, column=0, grid=1, block=32).block_until_ready()


def test_a_kernel_that_launches_a_kernel():
    module = kernix.load_cuda_inline("launches", LAUNCHES, extra_cuda_cflags=["-rdc=true"])
    y = module.run(out=jax.ShapeDtypeStruct((32,), jnp.float32))
    np.testing.assert_array_equal(y, np.arange(32, dtype=np.float32))
