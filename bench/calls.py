# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of a call of a module's function against the same work by hand, in one run, and print a table.

    python bench/calls.py

Every round measures each row in turn, so that a machine that slows down slows all of them. A row's time is that of its
fastest round, which other processes disturbed least. The arrays are small, because the benchmark measures the path to
the kernel.
"""

import argparse
import os
import sys
import timeit
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

import kernix
from kernix import _core

SOURCE = """
#include "brainevent/common.h"

// @BE add arg arg ret
void add(const BE::Tensor a, const BE::Tensor b, BE::Tensor y) {
    for (int64_t i = 0; i < y.numel(); ++i)
        y.data_ptr<float>()[i] = a.data_ptr<const float>()[i] + b.data_ptr<const float>()[i];
}

// @BE scale arg ret attr.factor:float32
void scale(const BE::Tensor x, BE::Tensor y, float factor) {
    for (int64_t i = 0; i < y.numel(); ++i) y.data_ptr<float>()[i] = factor * x.data_ptr<const float>()[i];
}
"""

Row = tuple[str, str, Callable[[], Any]]  # name, name of the row to compare with, function to time


def rows() -> list[Row]:
    """Return the rows to measure."""
    module = kernix.load_cpp_inline("bench_calls", SOURCE)
    a = np.arange(16, dtype=np.float32)
    out = np.empty_like(a)
    x = jnp.asarray(a)
    spec = jax.ShapeDtypeStruct(x.shape, x.dtype)
    factor = np.float32(2)
    add, scale = (jax.ffi.ffi_call(f"bench_calls.{name}", spec) for name in ("add", "scale"))
    frame = [(array.ctypes.data, 11, array.shape) for array in (a, a, out)]
    address = _core.target_address("bench_calls.add", "cpu")
    jitted = jax.jit(lambda x: module.add(x, x))
    jitted_by_hand = jax.jit(lambda x: add(x, x))
    return [
        ("NumPy: the frame alone", "", lambda: _core.call_handler(address, frame[:2], frame[2:], {}, None, 0)),
        ("NumPy: np.add", "", lambda: np.add(a, a, out=out)),
        ("NumPy: add(a, a, out=out)", "NumPy: np.add", lambda: module.add(a, a, out=out)),
        ("NumPy: add(a, a)", "NumPy: np.add", lambda: module.add(a, a)),
        ("NumPy: scale(a, factor=2)", "NumPy: np.add", lambda: module.scale(a, factor=2)),
        ("JAX: a kept ffi_call", "", lambda: add(x, x)),
        ("JAX: add(x, x)", "JAX: a kept ffi_call", lambda: module.add(x, x)),
        ("JAX: add(x, x, out=spec)", "JAX: a kept ffi_call", lambda: module.add(x, x, out=spec)),
        ("JAX: a kept ffi_call, attribute", "", lambda: scale(x, factor=factor)),
        ("JAX: scale(x, factor=2)", "JAX: a kept ffi_call, attribute", lambda: module.scale(x, factor=2)),
        ("JAX: a jitted ffi_call", "", lambda: jitted_by_hand(x)),
        ("JAX: a jitted add(x, x)", "JAX: a jitted ffi_call", lambda: jitted(x)),
    ]


def microseconds(call: Callable[[], Any], number: int) -> float:
    """Return the time of one of `number` calls."""
    return timeit.timeit(call, number=number) / number * 1e6


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--number", type=int, default=100, help="calls of each row in a round")
    options = parser.parse_args()
    table = rows()
    times: dict[str, list[float]] = {name: [] for name, _, _ in table}
    for _, _, call in table:
        microseconds(call, 50)
    for _ in range(options.rounds):
        for name, _, call in table:
            times[name].append(microseconds(call, options.number))
    print("| call | µs | ratio | of |\n|---|---:|---:|---|")
    best = {name: min(measured) for name, measured in times.items()}
    for name, base, _ in table:
        ratio = f"{best[name] / best[base]:.2f}" if base else ""
        print(f"| {name} | {best[name]:.1f} | {ratio} | {base} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
