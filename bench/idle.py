# SPDX-License-Identifier: Apache-2.0
"""Measure what an idle kernixd takes after many builds: memory, threads, wake-ups.

Builds small kernels, every other one CUDA, with a kernixd and a store of their own, waits until kernixd is idle, and
prints a Markdown table. Exits with 1 if kernixd then has more memory than its bar. Needs nvcc, but no GPU: ``python
bench/idle.py`` with an installed kernix.
"""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator

import kernix
from kernix import _environment

CPP_SOURCE = """
constexpr char kSalt[] = "SALT";
// @BE add_one
void add_one(BE::In<float> x, BE::Out<float> y) {
  for (int64_t i = 0; i < x.size(); ++i) y.data()[i] = x.data()[i] + sizeof(kSalt);
}
"""
CUDA_SOURCE = """
constexpr char kSalt[] = "SALT";
__global__ void add_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + sizeof(kSalt);
}
// @BE add_one
void add_one(BE::In<float> x, BE::Out<float> y, cudaStream_t stream) {
  add_kernel<<<(x.size() + 255) / 256, 256, 0, stream>>>(x.data(), y.data(), x.size());
}
"""
BUILDS = 60
# kernixd closes the connection that this process keeps, learns from what it has built, and gives memory back.
SETTLING_SECONDS = 45
WATCH_SECONDS = 10
IDLE_BAR = 35  # MB resident


class Process:
    """A process, as /proc shows it."""

    def __init__(self, pid: int) -> None:
        self.folder = pathlib.Path(f"/proc/{pid}")

    def number(self, file: str, name: str) -> int:
        """Return the number of a line ``name: number`` of a file."""
        for line in (self.folder / file).read_text().splitlines():
            title, _, value = line.partition(":")
            if title == name:
                return int(value.split()[0])
        raise SystemExit(f"bench: {self.folder / file} has no {name}")

    def wake_ups(self) -> int:
        """Return how often its threads have waited for something."""
        threads = [folder.name for folder in (self.folder / "task").iterdir()]
        return sum(self.number(f"task/{thread}/status", "voluntary_ctxt_switches") for thread in threads)


def daemon_of(store: str) -> Process:
    """Return the kernixd of a store."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"kernixd") and store.encode() in words:
                return Process(int(folder.name))
    raise SystemExit(f"bench: no kernixd runs on {store}")


@contextlib.contextmanager
def new_store() -> Iterator[str]:
    """Make a store, and remove it and its daemon afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-idle-", ignore_cleanup_errors=True) as store:
        kernix.set_cache_dir(store)
        try:
            yield store
        finally:
            shutdown = [_environment.program("kernixctl"), "--store", store, "shutdown"]
            subprocess.run(shutdown, check=False, capture_output=True)


def build_kernels(count: int, at_once: int) -> None:
    """Load new kernels, `at_once` of them at a time."""
    for first in range(0, count, at_once):
        loads = []
        for number in range(first, min(first + at_once, count)):
            name, salt = f"idle_{number}", uuid.uuid4().hex
            if number % 2:
                source = CUDA_SOURCE.replace("SALT", salt)
                loads.append({"name": name, "cuda_sources": source, "compute_capability": "sm_90"})
            else:
                loads.append({"name": name, "cpp_sources": CPP_SOURCE.replace("SALT", salt)})
        kernix.load_many(loads, auto_register=False)


def print_row(what: str, process: Process, bar: str = "") -> float:
    """Print a row of the table; return how much memory is resident, in MB."""
    resident, own = (process.number("smaps_rollup", name) / 1024 for name in ("Rss", "Anonymous"))
    print(f"| {what} | {resident:.1f} MB | {bar} | {own:.1f} MB | {process.number('status', 'Threads')} |", flush=True)
    return resident


def main() -> int:
    """Print the table, and check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", type=int, default=BUILDS)
    parser.add_argument("--at-once", type=int, default=4, help="how many loads at a time")
    arguments = parser.parse_args()
    with new_store() as store:
        build_kernels(1, 1)
        process = daemon_of(store)
        print("| kernixd | resident | bar | of which not files | threads |\n|---|---:|---:|---:|---:|")
        print_row("after one build", process)
        build_kernels(arguments.builds, arguments.at_once)
        time.sleep(SETTLING_SECONDS)
        resident = print_row(f"idle after {arguments.builds} builds", process, f"≤ {IDLE_BAR} MB")
        before = process.wake_ups()
        time.sleep(WATCH_SECONDS)
        print(f"\n{(process.wake_ups() - before) / WATCH_SECONDS:.1f} wake-ups a second; ", end="")
        print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} at the end")
    if resident > IDLE_BAR:
        print(f"bench: above the bar: {resident:.1f} MB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
