# SPDX-License-Identifier: Apache-2.0
"""Exponentially weighted moving averages of time series, on the CPU and on NVIDIA GPUs."""

from functools import cache
from pathlib import Path

import jax

import kernix

_HERE = Path(__file__).parent
_BUNDLE = Path(__file__).with_name("kernels.kernix")


def ewma(x: jax.Array, alpha: float) -> jax.Array:
    """Return the moving average of each row of `x`, a matrix of float32."""
    kernels = _for_gpu() if jax.default_backend() == "gpu" else _for_cpu()
    y: jax.Array = kernels.ewma(x, alpha=alpha)
    return y


def load_all() -> None:
    """Load every kernel: the build of the wheel calls this."""
    _for_cpu()
    _for_gpu()


@cache
def _for_cpu() -> kernix.CompiledModule:
    return kernix.load_cpp_file(_HERE / "ewma.cpp", name="ewma_cpu", bundle=_BUNDLE)


@cache
def _for_gpu() -> kernix.CompiledModule:
    return kernix.load_cuda_file(_HERE / "ewma.cu", name="ewma_gpu", bundle=_BUNDLE)
