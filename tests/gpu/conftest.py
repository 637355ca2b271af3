# SPDX-License-Identifier: Apache-2.0
"""GPU tests: they run if JAX sees a CUDA GPU; otherwise they are skipped with the reason.

On a machine with a GPU and an installed kernix (for example from the wheel), run ``python -m pytest tests/gpu``.
"""

import pathlib
import shutil
import subprocess
import tempfile

import pytest


def _why_no_gpu() -> str:
    """Return the reason why GPU tests cannot run here, or an empty string."""
    if not any(pathlib.Path("/dev").glob("nvidia[0-9]*")) and not pathlib.Path("/dev/dxg").exists():
        return "no NVIDIA GPU on this machine (no /dev/nvidia0)"
    import jax

    try:
        jax.devices("gpu")
    except RuntimeError as error:
        return f"JAX sees no GPU: {error}"
    return ""


WHY_NO_GPU = _why_no_gpu()


def pytest_collection_modifyitems(items):
    """Skip every test of this folder where there is no GPU."""
    for item in items:
        if WHY_NO_GPU and pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=WHY_NO_GPU))


@pytest.fixture(scope="session", autouse=True)
def private_daemon():
    """Give the tests a separate store, and so a separate daemon."""
    if WHY_NO_GPU:
        yield None
        return
    import kernix
    from kernix import _environment

    store = tempfile.mkdtemp(prefix="kernix-gpu-")
    kernix.set_cache_dir(store)
    yield store
    subprocess.run([_environment.program("kernixctl"), "--store", store, "shutdown"], check=False)
    shutil.rmtree(store, ignore_errors=True)
