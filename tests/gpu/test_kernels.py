# SPDX-License-Identifier: Apache-2.0
"""The kernels of the reference's own pages, run on a GPU."""

import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference_kernels import ADD_BY_REFERENCE, SCALE_BY, VECTOR_ADD

import kernix


def like(x):
    """Return the shape and dtype of an array, as ``ffi_call`` takes them."""
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


@pytest.fixture(name="pair", params=[(1,), (1000,), (33, 65)], ids=str)
def pair_fixture(request):
    """Two random arrays, of several shapes."""
    generator = np.random.default_rng(7)
    return tuple(jnp.asarray(generator.standard_normal(request.param), jnp.float32) for _ in range(2))


def test_vector_add(pair):
    kernix.load_cuda_inline("gpu_add", VECTOR_ADD)
    a, b = pair
    call = jax.ffi.ffi_call("gpu_add.vector_add", like(a))
    np.testing.assert_array_equal(call(a, b), np.asarray(a) + np.asarray(b))
    np.testing.assert_array_equal(jax.jit(call)(a, b), np.asarray(a) + np.asarray(b))


def test_launch_error_is_a_jax_exception():
    kernix.load_cuda_inline("gpu_too_wide", VECTOR_ADD.replace("256, 0,", "4096, 0,"))
    x = jnp.zeros((8,), jnp.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"invalid (?:configuration|argument)"):
        jax.block_until_ready(jax.ffi.ffi_call("gpu_too_wide.vector_add", like(x))(x, x))


def test_wrong_arity_is_a_jax_exception():
    kernix.load_cuda_inline("gpu_add", VECTOR_ADD)
    x = jnp.zeros((8,), jnp.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match="vector_add"):
        jax.block_until_ready(jax.ffi.ffi_call("gpu_add.vector_add", like(x))(x))


def test_exception_in_the_kernel_is_a_jax_exception():
    kernix.load_cuda_inline(
        "gpu_throws",
        VECTOR_ADD.replace(
            "int n = a.numel();",
            """int n = a.numel();
    BE_CHECK(n != 8) << "eight is refused";""",
        ),
    )
    x = jnp.zeros((8,), jnp.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match="eight is refused"):
        jax.block_until_ready(jax.ffi.ffi_call("gpu_throws.vector_add", like(x))(x, x))


def test_scale_by_attribute():
    kernix.load_cuda_inline("gpu_scale", SCALE_BY)
    x = jnp.arange(100, dtype=jnp.float32)
    call = jax.ffi.ffi_call("gpu_scale.scale_by", like(x))
    np.testing.assert_array_equal(call(x, scale_factor=np.float32(3.0)), 3 * np.asarray(x))
    np.testing.assert_array_equal(jax.jit(lambda v: call(v, scale_factor=0.5))(x), 0.5 * np.asarray(x))


def test_references_and_cuda_stream(pair):
    kernix.load_cuda_inline("gpu_reference", ADD_BY_REFERENCE)
    a, b = pair
    np.testing.assert_array_equal(
        jax.jit(jax.ffi.ffi_call("gpu_reference.add_by_reference", like(a)))(a, b), np.asarray(a) + np.asarray(b)
    )


@pytest.mark.parametrize("backend", ["started", "waiting"])
def test_a_name_that_somebody_else_registered_is_refused(backend):
    """Once its backend runs, JAX itself refuses a taken name; before that, it accepts any. One process for each."""
    script = pathlib.Path(__file__).parent / "taken_name.py"
    result = subprocess.run(
        [sys.executable, script, kernix.get_cache_dir(), backend],
        env=os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "JAX refused" in result.stdout
    assert "[2. 2. 2. 2.]" in result.stdout


def test_architecture_is_the_gpus_own():
    module = kernix.load_cuda_inline("gpu_add", VECTOR_ADD)
    major, minor = jax.devices("gpu")[0].compute_capability.split(".")

    def path(compute_capability):
        options = {"compute_capability": compute_capability, "auto_register": False}
        return kernix.load_cuda_inline("gpu_add", VECTOR_ADD, **options).path

    assert path("native") == module.path  # the same content: one artifact
    has_own_target = int(major) >= 9  # with instructions that the plain one lacks; what is written out stays as it is
    assert (path(f"{major}.{minor}") != module.path) == has_own_target


def test_live_replacement_inside_compiled_jit():
    kernix.load_cuda_inline("gpu_live", VECTOR_ADD, allow_cuda_graph=False)
    a = jnp.arange(64, dtype=jnp.float32)
    compiled = jax.jit(jax.ffi.ffi_call("gpu_live.vector_add", like(a)))
    np.testing.assert_array_equal(compiled(a, a), 2 * np.asarray(a))
    changed = VECTOR_ADD.replace("a[idx] + b[idx]", "a[idx] - b[idx]")
    with pytest.raises(kernix.KernelRegistrationError, match="replace=True"):
        kernix.load_cuda_inline("gpu_live", changed, allow_cuda_graph=False)
    np.testing.assert_array_equal(compiled(a, a), 2 * np.asarray(a))
    kernix.load_cuda_inline("gpu_live", changed, allow_cuda_graph=False, replace=True)
    np.testing.assert_array_equal(compiled(a, a), np.zeros(64))
