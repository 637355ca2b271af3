# SPDX-License-Identifier: Apache-2.0
"""Measure many loads at once, and print rows of a Markdown table: medians, ratios, and the spread of the ratios.

* files: the CUDA files of brainevent 0.3.0, all at once, against brainevent itself in ``--reference-processes``.
* variants: values of a macro of one templated kernel, against plain calls of nvcc (``force_rebuild``).
* processes: processes that all load the same new kernels, against one that does; also how often kernixd compiles.

With 16 cores: ``python bench/many.py files --every 1 --reference-processes 16``. Exits with 1 if a ratio exceeds its
bar; bars are those of the default arguments, and of these.

Needs nvcc, but no GPU: ``python bench/many.py`` in the environment of ``bench/run.sh`` (``files`` needs brainevent).
"""

import argparse
import contextlib
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import kernix
from kernix import _environment

TEMPLATED = """
template <int SIZE>
__global__ void scale_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float tile[256 + SIZE % 7];
  tile[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = tile[threadIdx.x] * static_cast<float>(SIZE);
}
// @BE scale
void scale(BE::In<float> x, BE::Out<float> y, cudaStream_t stream) {
  scale_kernel<BENCH_SIZE><<<(x.size() + 255) / 256, 256, 0, stream>>>(x.data(), y.data(), x.size());
}
"""
ARCHITECTURE = "sm_90"
PROCESSES = 64
PROCESSES_BAR = 1.05
# A row's ratio must not exceed this.
BARS = {
    "every 6th file of brainevent at once (brainevent: one by one)": 0.24,
    "every file of brainevent at once (brainevent: 16 processes)": 0.55,
    "100 values of a macro at once": 0.4,
    f"seconds of compilers' processor time, {PROCESSES} processes": PROCESSES_BAR,
    f"compiles, {PROCESSES} processes": PROCESSES_BAR,
}
ROUNDS_HEAD = "ratio | range | bar |\n|---|---:|---:|---:|---:|---:|"
LOADS_HEAD = f"| many loads (seconds) | without kernixd's help | with it | {ROUNDS_HEAD}"
PROCESSES_HEAD = f"| the same kernels for many processes | for one process | for all | {ROUNDS_HEAD}"

# What is compared, of each row: without kernixd's help and with it, or for one process and for many.
Compared = dict[str, tuple[float, float]]


class Store:
    """A store with a kernixd of its own, for this process and for those that it starts."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def run_kernixctl(self, *words: str) -> str:
        """Return what a command of kernixctl prints."""
        command = [_environment.program("kernixctl"), "--store", self.folder, *words]
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout

    def compiles(self) -> int:
        """Return how many kernels were compiled."""
        lines = [line.split() for line in self.run_kernixctl("metrics").splitlines()]
        return sum(int(line[1]) for line in lines if line and line[0].startswith("kernix_nvcc_compiles_total"))

    def compiler_seconds(self) -> float:
        """Return the processor time of the processes that kernixd has run."""
        for folder in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if words[0].endswith(b"kernixd") and self.folder.encode() in words:
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
        raise SystemExit("bench: no kernixd runs")


@contextlib.contextmanager
def new_store() -> Iterator[Store]:
    """Make a store, and remove it and its daemon afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-many-", ignore_cleanup_errors=True) as folder:
        store = Store(folder)
        kernix.set_cache_dir(folder)
        # kernixd starts, identifies the compilers, and learns what the runtime header holds.
        for _ in range(3):
            kernix.load_cuda_inline("warm_up", TEMPLATED + f"// {uuid.uuid4()}\n", **options(uuid.uuid4().int % 997))
            time.sleep(3)
        try:
            yield store
        finally:
            store.run_kernixctl("shutdown")


def options(size: int) -> dict[str, Any]:
    """Return the parameters of a load of TEMPLATED."""
    flags = [f"-DBENCH_SIZE={size}"]
    return {"compute_capability": ARCHITECTURE, "extra_cuda_cflags": flags, "auto_register": False}


def load_with_reference(file: str) -> bool:
    """Load a file with brainevent in a cache of this process; return whether that worked."""
    import brainevent

    if not hasattr(load_with_reference, "cache"):
        load_with_reference.cache = tempfile.mkdtemp(prefix="bench-reference-")  # type: ignore[attr-defined]
        brainevent.set_cache_dir(load_with_reference.cache)  # type: ignore[attr-defined]
    try:
        brainevent.load_cuda_file(file, name=f"bench_{uuid.uuid4().hex}", compute_capability=ARCHITECTURE)
    except brainevent.KernelError:
        return False
    return True


def load_files(files: list[str]) -> int:
    """Load CUDA files at once; return how many could be loaded."""
    options: dict[str, Any] = {"compute_capability": ARCHITECTURE, "auto_register": False}
    try:
        return len(kernix.load_many(files, **options))
    except kernix.KernelBatchError as error:
        return sum(module is not None for module in error.modules)


def measure_files(every: int, processes: int) -> Compared:
    """Load brainevent's files at once, and with brainevent itself."""
    import brainevent

    root = pathlib.Path(brainevent.__file__).parent
    files = [str(file) for file in sorted(root.rglob("*.cu"))][::every]
    with new_store():
        begin = time.perf_counter()
        loaded = load_files(files)
        ours = time.perf_counter() - begin
    begin = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        reference = sum(pool.imap_unordered(load_with_reference, files, chunksize=1))
    theirs = time.perf_counter() - begin
    if reference != loaded:
        print(f"bench: brainevent loads {reference} of {len(files)} files, kernix {loaded}", file=sys.stderr)
    with_what = "one by one" if processes == 1 else f"{processes} processes"
    which = "every file" if every == 1 else f"every {every}th file"
    return {f"{which} of brainevent at once (brainevent: {with_what})": (theirs, ours)}


def measure_variants(count: int) -> Compared:
    """Load values of a macro at once, with shortcuts and without."""
    first = uuid.uuid4().int % 10**6
    seconds = []
    with new_store():
        for whole in (False, True):
            loads = [
                {"name": f"variant_{number}", "cuda_sources": TEMPLATED, **options(first + number)}
                for number in range(count)
            ]
            begin = time.perf_counter()
            kernix.load_many(loads, force_rebuild=whole)
            seconds.append(time.perf_counter() - begin)
    return {f"{count} values of a macro at once": (seconds[1], seconds[0])}


WORKER = """
import sys
import kernix
sys.path.insert(0, sys.argv[1])
import many
kernix.set_cache_dir(sys.argv[2])
sys.stdin.readline()
for size in range(int(sys.argv[3]), int(sys.argv[3]) + int(sys.argv[4])):
    kernix.load_cuda_inline(f"kernel_{size}", many.TEMPLATED, **many.options(size))
"""


def measure_processes(count: int, kernels: int) -> Compared:
    """Load the same kernels in many processes that start at once, and in one."""
    seconds, compiles = [], []
    for processes in (1, count):
        with new_store() as store:
            size = str(uuid.uuid4().int % 10**6)
            here = str(pathlib.Path(__file__).parent)
            command = [sys.executable, "-c", WORKER, here, store.folder, size, str(kernels)]
            workers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(processes)]
            time.sleep(2 + processes / 8)  # until they have imported what they need
            before = store.compiler_seconds(), store.compiles()
            for worker in workers:
                if worker.stdin is not None:
                    worker.stdin.close()
            codes = [worker.wait() for worker in workers]
            if any(codes):
                raise SystemExit("bench: a process failed")
            seconds.append(store.compiler_seconds() - before[0])
            compiles.append(store.compiles() - before[1])
    return {
        f"seconds of compilers' processor time, {count} processes": (seconds[0], seconds[1]),
        f"compiles, {count} processes": (compiles[0], compiles[1]),
    }


def print_rows(measure: Callable[[], Compared], rounds: int) -> list[str]:
    """Measure some times, print a row for each of the names, and return those above their bars."""
    measured = [measure() for _ in range(rounds)]
    missed = []
    for what in measured[0]:
        before, after = (statistics.median(column) for column in zip(*(one[what] for one in measured), strict=True))
        ratios = [one[what][1] / one[what][0] for one in measured]
        bar = BARS.get(what)
        if bar is not None and after > bar * before:
            missed.append(what)
        columns = f"{before:.3g} | {after:.3g} | {after / before:.2f} | {min(ratios):.2f} to {max(ratios):.2f}"
        print(f"| {what} | {columns} | {'' if bar is None else f'≤ {bar:.3g}'} |", flush=True)
    return missed


def main() -> int:
    """Print the rows that the command line asks for, and check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=["files", "variants", "processes", []], help="default: all")
    parser.add_argument("--every", type=int, default=6, help="take every n-th file (default: 6)")
    parser.add_argument("--reference-processes", type=int, default=1)
    parser.add_argument("--variants", type=int, default=100)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rows: dict[str, tuple[str, Callable[[], Compared]]] = {
        "files": (LOADS_HEAD, lambda: measure_files(arguments.every, arguments.reference_processes)),
        "variants": (LOADS_HEAD, lambda: measure_variants(arguments.variants)),
        "processes": (PROCESSES_HEAD, lambda: measure_processes(arguments.processes, 10)),
    }
    missed, last_head = [], ""
    for head, measure in (rows[name] for name in arguments.rows or rows):
        if head != last_head:
            print(f"\n{head}" if last_head else head)
        last_head = head
        missed += print_rows(measure, arguments.rounds)
    print(f"\nMedians of {arguments.rounds} rounds; {len(os.sched_getaffinity(0))} cores, ", end="")
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    if missed:
        print(f"bench: above the bar: {'; '.join(missed)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
