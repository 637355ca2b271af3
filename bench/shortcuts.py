# SPDX-License-Identifier: Apache-2.0
"""Measure what kernixd's shortcuts save: each load, and the same load by one call of the compiler (``force_rebuild``).

Prints a Markdown table of medians, ratios and the spread of the ratios; exits with 1 if a ratio exceeds its bar. Every
round measures both ways in turn, on a store and a kernixd of its own. Needs nvcc, but no GPU: ``python
bench/shortcuts.py`` with an installed kernix.

``--ablation`` switches each shortcut off by itself, in a kernixd of its own, and prints what each load then takes as
ratios to a kernixd with all shortcuts: wall time, and processor time with what kernixd learns afterwards.

``--enclosures`` measures the same loads with all shortcuts by two kernixds in turn, one of which encloses its tools as
well as the machine allows, and one that does not.
"""

import argparse
import concurrent.futures
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable

from public_files import Daemon

import kernix
from kernix import _environment

ONE = "sm_90"
FIVE = "sm_80,sm_86,sm_89,sm_90,sm_100"
VARIANTS = 16

SMALL = """
__global__ void add_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + DEVICE_SALT;
}
// @BE add
void add(BE::In<float> x, BE::Out<float> y, cudaStream_t stream) {
  static const char* const salt = "HOST_SALT";  // COMMENT_SALT
  if (salt[0] != '?') add_kernel<<<(x.size() + 255) / 256, 256, 0, stream>>>(x.data(), y.data(), x.size());
}
"""
TYPES = "#include <cooperative_groups.h>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n" + SMALL.replace(
    "x[i] + ", "__half2float(__float2half(x[i])) + __bfloat162float(__float2bfloat16(x[i])) + "
)
CUB = "#include <cub/block/block_reduce.cuh>\n" + SMALL.replace(
    "  if (i < n)",
    "  __shared__ typename cub::BlockReduce<float, 256>::TempStorage storage;\n"
    "  const float sum = cub::BlockReduce<float, 256>(storage).Sum(i < n ? x[i] : 0);\n  if (i < n)",
).replace("x[i] + DEVICE_SALT", "sum + DEVICE_SALT")


CPP = """
#include <algorithm>
#include <random>
#include <vector>
// @BE shuffle
void shuffle(BE::In<float> x, BE::Out<float> y) {
  std::vector<float> values(x.data(), x.data() + x.size());
  std::shuffle(values.begin(), values.end(), std::mt19937(CPP_SALT));
  std::copy(values.begin(), values.end(), y.data());
}
"""


class Kernel:
    """A source with its salts: which of them are new says what an edit concerns."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.salts = {"DEVICE_SALT": "1.5f", "HOST_SALT": "x", "COMMENT_SALT": "x"}

    def edit(self, *which: str) -> "Kernel":
        """Renew some salts."""
        for salt in which:
            number = uuid.uuid4().int % 10**8
            self.salts[salt] = f"{number}.f" if salt == "DEVICE_SALT" else f"s{number}"
        return self

    def load(self, *, whole: bool, arch: str = ONE, flags: tuple[str, ...] = ()) -> float:
        """Load it, and return the milliseconds that it took."""
        text = self.source
        for salt, value in self.salts.items():
            text = text.replace(salt, value)
        begin = time.perf_counter()
        kernix.load_cuda_inline(
            "bench_shortcuts",
            text,
            compute_capability=arch,
            extra_cuda_cflags=list(flags),
            force_rebuild=whole,
            auto_register=False,
        )
        return (time.perf_counter() - begin) * 1e3


def new_cpp(whole: bool) -> float:
    """Measure a C++ kernel."""
    text = CPP.replace("CPP_SALT", str(uuid.uuid4().int % 10**8))
    begin = time.perf_counter()
    kernix.load_cpp_inline("bench_shortcuts", text, force_rebuild=whole, auto_register=False)
    return (time.perf_counter() - begin) * 1e3


def new(source: str, arch: str = ONE) -> Callable[[bool], float]:
    """Return a measurement of a kernel that is new in all its code."""
    return lambda whole: Kernel(source).edit("DEVICE_SALT", "HOST_SALT").load(whole=whole, arch=arch)


def edited(salt: str) -> Callable[[bool], float]:
    """Return a measurement of an edit of one part of a kernel that was built before."""

    def measure(whole: bool) -> float:
        kernel = Kernel(SMALL).edit("DEVICE_SALT", "HOST_SALT")
        kernel.load(whole=False)
        return kernel.edit(salt).load(whole=whole)

    return measure


def one_more(whole: bool) -> float:
    """Measure one architecture more than a kernel was built for before."""
    kernel = Kernel(SMALL).edit("DEVICE_SALT", "HOST_SALT")
    kernel.load(whole=False, arch="sm_80,sm_90")
    return kernel.load(whole=whole, arch="sm_80,sm_89,sm_90")


def variants(whole: bool) -> float:
    """Measure many values of a macro, all at once."""
    first = uuid.uuid4().int % 10**8
    kernels = [Kernel(SMALL.replace("DEVICE_SALT", "BENCH_VALUE")) for _ in range(VARIANTS)]
    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(VARIANTS) as pool:
        loads = [
            pool.submit(kernel.load, whole=whole, flags=(f"-DBENCH_VALUE={first + number}",))
            for number, kernel in enumerate(kernels)
        ]
        for load in loads:
            load.result()
    return (time.perf_counter() - begin) * 1e3


ROWS: dict[str, Callable[[bool], float]] = {
    "a small kernel": new(SMALL),
    "for five architectures": new(SMALL, FIVE),
    "with fp16, bf16 and cooperative groups": new(TYPES),
    "with CUB's block reduce": new(CUB),
    "C++ with <vector>, <random> and <algorithm>": new_cpp,
    "an edit of a comment": edited("COMMENT_SALT"),
    "an edit of host code": edited("HOST_SALT"),
    "one architecture more than two": one_more,
    f"{VARIANTS} values of a macro, all at once": variants,
}


SHORTCUTS = (
    "phases",
    "stand_ins",
    "preambles",
    "compiled_preambles",
    "step_results",
    "host_bodies",
    "link_stubs",
)
BARS = {"with fp16, bf16 and cooperative groups": 0.6, "with CUB's block reduce": 0.6}


def measure_all(rounds: int) -> list[str]:
    """Print the table; return the rows whose ratio is above its bar."""
    for measure in ROWS.values():  # kernixd learns from these what the runtime header holds
        for pause in (4, 3, 4):
            measure(False)
            time.sleep(pause)
    missed = []
    print("| | one call of the compiler | with shortcuts | ratio | range | bar |")
    print("|---|---:|---:|---:|---:|---:|")
    for row, measure in ROWS.items():
        times = [(measure(True), measure(False)) for _ in range(rounds)]
        whole, short = (statistics.median(column) for column in zip(*times, strict=True))
        ratios = [b / a for a, b in times]
        bar = BARS.get(row)
        if bar is not None and short > bar * whole:
            missed.append(row)
        columns = f"{whole:.0f} ms | {short:.0f} ms | {short / whole:.2f} | {min(ratios):.2f} to {max(ratios):.2f}"
        print(f"| {row} | {columns} | {'' if bar is None else f'≤ {bar:.2g}'} |", flush=True)
    load = os.getloadavg()[0]
    print(f"\nMedians of {rounds} rounds; {len(os.sched_getaffinity(0))} cores, load {load:.1f} at the end")
    return missed


def ablation(rounds: int, folder: str) -> None:
    """Print the table of single shortcuts that are off. Each has a store in the folder."""
    daemons = {name: Daemon(os.path.join(folder, name or "all"), without=name) for name in ("", *SHORTCUTS)}
    try:
        for daemon in daemons.values():
            daemon.use()
            for measure in list(ROWS.values()) * 3:  # kernixd learns from these, as above
                measure(False)
            daemon.processor_seconds()
        print("| without | " + " | ".join(ROWS) + " |\n|---" + "|---:" * len(ROWS) + "|")
        times: dict[str, dict[str, list[tuple[float, float]]]] = {name: {row: [] for row in ROWS} for name in daemons}
        for _ in range(rounds):
            for row, measure in ROWS.items():
                for name, daemon in daemons.items():
                    daemon.use()
                    before = daemon.processor_seconds()
                    wall = measure(False)
                    times[name][row].append((wall, daemon.processor_seconds() - before))
        for name in SHORTCUTS:
            cells = []
            for row in ROWS:
                pairs = list(zip(times[name][row], times[""][row], strict=True))
                wall, processor = (statistics.median(own[kind] / each[kind] for own, each in pairs) for kind in (0, 1))
                cells.append(f"{wall:.2f} / {processor:.2f}")
            print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)
        print(f"\nMedians of {rounds} rounds, wall time / processor time; load {os.getloadavg()[0]:.1f} at the end")
    finally:
        for daemon in daemons.values():
            daemon.stop()


def enclosures(rounds: int, folder: str) -> None:
    """Print the table of what enclosures cost each load."""
    daemons = [Daemon(os.path.join(folder, sandbox), without="", sandbox=sandbox) for sandbox in ("none", "best")]
    try:
        for daemon in daemons:
            daemon.use()
            for measure in list(ROWS.values()) * 3:  # kernixd learns from these, as above
                measure(False)
            daemon.processor_seconds()
        print("| | not enclosed | enclosed | ratio |\n|---|---:|---:|---:|")
        for row, measure in ROWS.items():
            times: list[list[float]] = [[], []]
            for _ in range(rounds):
                for daemon, own in zip(daemons, times, strict=True):
                    daemon.use()
                    own.append(measure(False))
            bare, kept = map(statistics.median, times)
            print(f"| {row} | {bare:.0f} ms | {kept:.0f} ms | {kept / bare:.2f} |", flush=True)
        print(f"\nMedians of {rounds} rounds; load {os.getloadavg()[0]:.1f} at the end")
    finally:
        for daemon in daemons:
            daemon.stop()


def main() -> int:
    """Measure with a kernixd of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--enclosures", action="store_true")
    arguments = parser.parse_args()
    if arguments.ablation or arguments.enclosures:
        with tempfile.TemporaryDirectory(prefix="bench-shortcuts-", ignore_cleanup_errors=True) as folder:
            (ablation if arguments.ablation else enclosures)(arguments.rounds, folder)
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-shortcuts-", ignore_cleanup_errors=True) as store:
        kernix.set_cache_dir(store)
        try:
            missed = measure_all(arguments.rounds)
        finally:
            shutdown = [_environment.program("kernixctl"), "--store", store, "shutdown"]
            subprocess.run(shutdown, check=False, capture_output=True)
    if missed:
        print(f"bench: above the bar: {'; '.join(missed)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
