# SPDX-License-Identifier: Apache-2.0
"""Measure what kernix.autotune costs beyond its compilations, and print rows of a Markdown table.

* search: all variants of a templated kernel, compiled, checked and timed, against kernix.load_many of the same loads.
* again: a later call in another process, which takes the winner from memory, beyond a load of the winner.

Exits with 1 if a median exceeds its bar. C++; with ``--cuda``, CUDA on this machine's GPU.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np

import kernix
from kernix import _environment

SEARCH_BAR = 1.3
AGAIN_BAR_MS = 5.0

CPP = r"""
#include "brainevent/common.h"
template <int UNROLL, int TILE>
float total(const float* x, int64_t n) {
    float parts[UNROLL] = {};
    for (int64_t begin = 0; begin < n; begin += TILE)
        for (int64_t i = begin; i + UNROLL <= begin + TILE && i + UNROLL <= n; i += UNROLL)
            for (int k = 0; k < UNROLL; ++k) parts[k] += x[i + k];
    float sum = SALT - SALT;
    for (float part : parts) sum += part;
    return sum;
}
// @BE reduce
void reduce(BE::In<float> x, BE::Out<float> y) { y[0] = total<UNROLL_BY, TILE_OF>(x.data(), x.size()); }
"""
CUDA = r"""
#include "brainevent/common.h"
template <int UNROLL, int TILE>
__global__ void total(const float* x, float* y, int n) {
    __shared__ float tile[TILE];
    float sum = SALT - SALT;
    for (int i = threadIdx.x * UNROLL; i < n; i += blockDim.x * UNROLL)
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) sum += i + k < n ? x[i + k] : 0;
    for (int i = threadIdx.x; i < TILE; i += blockDim.x) tile[i] = 0;
    __syncthreads();
    atomicAdd(&tile[threadIdx.x % TILE], sum);
    __syncthreads();
    if (threadIdx.x > 0) return;
    sum = 0;
    for (float each : tile) sum += each;
    y[0] = sum;
}
// @BE reduce
void reduce(BE::In<float> x, BE::Out<float> y, cudaStream_t stream) {
    total<UNROLL_BY, TILE_OF><<<1, 256, 0, stream>>>(x.data(), y.data(), x.size());
}
"""
SPACE = {"UNROLL_BY": [1, 2, 4, 8, 16], "TILE_OF": [64 * number for number in range(1, 21)]}
COUNT = 1 << 14
CHILDREN = 9

# A process that tunes, or loads the winner and takes its function, as its first work.
CHILD = """
import json, sys, time
import numpy
import kernix
sys.path.insert(0, sys.argv[1])
import autotune
kernix.set_cache_dir(sys.argv[2])
source = autotune.CUDA if sys.argv[3] == "1" else autotune.CPP
load = json.loads(sys.argv[5])
x = autotune.argument(source)
begin = time.perf_counter()
if not load:
    assert autotune.tune(source, int(sys.argv[4]), x).from_memory
else:
    language = kernix.load_cuda_inline if "cuda_sources" in load else kernix.load_cpp_inline
    language(**load)["reduce"]
print(time.perf_counter() - begin)
"""


@contextlib.contextmanager
def new_store(source: str) -> Iterator[None]:
    """Make a store whose kernixd has started and knows the compiler, and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-autotune-", ignore_cleanup_errors=True) as folder:
        kernix.set_cache_dir(os.path.join(folder, "store"))
        for _ in range(3):
            kernix.load_many([{**load, "name": "warm_up"} for load in loads_of(source, salt())[:1]])
        time.sleep(3)  # until kernixd has learnt what it learns beside the first loads
        try:
            yield
        finally:
            command = [_environment.program("kernixctl"), "--store", kernix.get_cache_dir(), "shutdown"]
            subprocess.run(command, check=False, capture_output=True)


def salt() -> int:
    """Return a number that makes kernels new."""
    return uuid.uuid4().int % 10**6


def loads_of(source: str, number: int) -> list[dict[str, Any]]:
    """Return the loads of all variants."""
    what = "cuda_sources" if source is CUDA else "cpp_sources"
    product = itertools.product(*SPACE.values())
    return [
        {
            "name": "reduce",
            what: source,
            "auto_register": False,
            "defines": {"SALT": number, **dict(zip(SPACE, values, strict=True))},
        }
        for values in product
    ]


def measure(source: str) -> tuple[float, float, float]:
    """Return the seconds of load_many, of a search, and of the second call beyond the load of the winner."""
    with new_store(source):
        begin = time.perf_counter()
        kernix.load_many(loads_of(source, salt()))
        loading = time.perf_counter() - begin

        number = salt()
        x = argument(source)
        begin = time.perf_counter()
        found = tune(source, number, x)
        searching = time.perf_counter() - begin
        usable = sum(row.seconds is not None for row in found.table)
        if usable != len(found.table):
            raise SystemExit(f"bench: only {usable} of {len(found.table)} variants were timed:\n{found}")
        best = dict(found.best or {})
        load = next(load for load in loads_of(source, number) if load["defines"] == {"SALT": number, **best})
        again, alone = (in_fresh_processes(source, number, what) for what in ({}, load))
        return loading, searching, again - alone


def argument(source: str) -> Any:
    """Return the array that is reduced, where the kernel needs it."""
    x = np.ones(COUNT, np.float32)
    if source is not CUDA:
        return x
    import jax

    return jax.device_put(x).block_until_ready()


def tune(source: str, number: int, x: Any) -> kernix.TuningResult:
    """Tune the kernel."""
    out, check = np.empty(1, np.float32), np.array([COUNT])
    return kernix.autotune(source, SPACE, [x], out=out, check=check, name="reduce", defines={"SALT": number})


def in_fresh_processes(source: str, number: int, load: dict[str, Any]) -> float:
    """Return the fewest seconds of a load or, without one, of a tuning, as the first work of a process."""
    command = [sys.executable, "-c", CHILD, str(pathlib.Path(__file__).parent), kernix.get_cache_dir()]
    words = [str(int(source is CUDA)), str(number), json.dumps(load)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds = []
    for _ in range(CHILDREN):
        run = subprocess.run([*command, *words], env=environment, check=True, capture_output=True, text=True)
        seconds.append(float(run.stdout))
    return min(seconds)  # the difference of two is asked for, so what else the machine does must not count


def main() -> int:
    """Print the rows, and check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rounds = [measure(CUDA if arguments.cuda else CPP) for _ in range(arguments.rounds)]
    loading, searching, again = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratios = [one[1] / one[0] for one in rounds]
    ratio = statistics.median(ratios)
    print("| 100 variants | load_many | autotune | ratio | range | bar |\n|---|---:|---:|---:|---:|---:|")
    print(
        f"| seconds | {loading:.2f} | {searching:.2f} | {ratio:.2f} | {min(ratios):.2f} to {max(ratios):.2f} "
        f"| ≤ {SEARCH_BAR} |"
    )
    print(
        f"\nA call in a later process: {again * 1e3:.2f} ms beyond the load of the winner (bar: {AGAIN_BAR_MS:.0f} ms)"
    )
    print(f"Medians of {arguments.rounds} rounds; {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    return int(ratio > SEARCH_BAR or again * 1e3 > AGAIN_BAR_MS)


if __name__ == "__main__":
    sys.exit(main())
