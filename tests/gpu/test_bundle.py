# SPDX-License-Identifier: Apache-2.0
"""A package with a bundle, on a GPU and without nvcc."""

import os
import subprocess
import sys

import pytest
from reference_kernels import VECTOR_ADD

PACKAGE = f"""
from pathlib import Path

import kernix

def load():
    return kernix.load_cuda_inline("shipped_add", {VECTOR_ADD!r}, bundle=Path(__file__).with_name("kernels.kernix"))
"""

USE = """
import jax, jax.numpy as jnp, shipped
module = shipped.load()
x = jnp.arange(3, dtype=jnp.float32)
print(jax.jit(module.vector_add)(x, x).tolist(), jax.devices()[0].platform)
"""


@pytest.fixture(name="package")
def package_fixture(tmp_path, private_daemon):
    """A folder with the package, whose bundle is for several architectures."""
    (tmp_path / "shipped.py").write_text(PACKAGE)
    make = [sys.executable, "-m", "kernix", "bundle", "shipped:load", "--arch", "8.0,9.0", "-o", "kernels.kernix"]
    subprocess.run(make, cwd=tmp_path, check=True, env=os.environ | {"KERNIX_CACHE_DIR": private_daemon})
    return tmp_path


def run(package, **variables):
    """Use the package with an empty cache, where PATH has no compiler and there is no kernixd."""
    nothing = {"PATH": "/nonexistent/bin", "KERNIXD": "/nonexistent/kernixd"}
    nothing |= {"KERNIX_CACHE_DIR": str(package / "cache")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KERNIX_")}
    return subprocess.run(
        [sys.executable, "-c", USE], cwd=package, env=kept | nothing | variables, capture_output=True, text=True
    )


def test_a_kernel_from_a_bundle_needs_no_compiler(package):
    done = run(package)
    assert done.stdout == "[0.0, 2.0, 4.0] gpu\n", done.stderr


def test_without_the_bundle_there_is_no_kernel(package):
    """So that the other test shows what it says."""
    done = run(package, KERNIX_BUNDLES="none")
    assert done.returncode != 0
    assert "/nonexistent/" in done.stderr
