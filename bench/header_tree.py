# SPDX-License-Identifier: Apache-2.0
"""Load a kernel on header trees of several sizes, and print a Markdown table of medians for each.

By default, the run creates trees of 1, 30 and 5,000 headers of 12 kB. Some branch of some conditional includes each
header; the compiler reads up to 20 of them. With ``--include DIR --source FILE``, there is one tree, a real one (for
example CUTLASS). ``--against DIR`` compares with another build's package, DIR/kernix: the builds take turns, one load
each, and each has a separate store. Rows:

* first build: neither the client nor the daemon knows the tree.
* build of another kernel on the same tree: a fresh process; the daemon has seen the tree.
* hit, tree never read: a fresh process whose client does not know the headers (its table is removed first).
* hit, fresh process: the same with the table.
* hit, same process: a repeated load in one process.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

LOAD = """
import json, pathlib, sys, time
import jax, kernix
jax.devices()
store, source, include, salt, repeats = sys.argv[1:]
kernix.set_cache_dir(store)
text = f"// salt: {salt}\\n" + pathlib.Path(source).read_text()
load = kernix.load_cuda_inline if source.endswith(".cu") else kernix.load_cpp_inline
options = {"compute_capability": "sm_90"} if source.endswith(".cu") else {}
def timed():
    start = time.perf_counter(), time.process_time()
    module = load("tree", text, extra_include_paths=[include], **options)
    return 1e3 * (time.perf_counter() - start[0]), 1e3 * (time.process_time() - start[1]), module.cache_hit
first = timed()
print(json.dumps([first, *[timed() for _ in range(int(repeats))]]))
"""

KERNEL = """
#include "tree/0.h"
// @BE twice arg ret
void twice(const BE::Tensor x, BE::Tensor y) {
    const float* in = static_cast<const float*>(x.data_ptr());
    float* out = static_cast<float*>(y.data_ptr());
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] * tree_0();
}
"""

FAN_OUT = 10
READ_BY_COMPILER = 20


def make_tree(folder: pathlib.Path, count: int, size: int) -> None:
    """Write `count` headers of about `size` bytes. Header i includes 10i+1 to 10i+10, most of them conditionally."""
    body = '// What a header of a library says of itself, in many words: "quoted" ones, too.\n' * (size // 90)
    for index in range(count):
        path = folder / "tree" / f"part{index % 50}" / f"{index}.h" if index else folder / "tree" / "0.h"
        path.parent.mkdir(parents=True, exist_ok=True)
        children = [child for child in range(FAN_OUT * index + 1, FAN_OUT * index + FAN_OUT + 1) if child < count]
        read = [f'#include "tree/part{c % 50}/{c}.h"\n' for c in children if c < READ_BY_COMPILER]
        rest = [f'#include "tree/part{c % 50}/{c}.h"\n' for c in children if c >= READ_BY_COMPILER]
        path.write_text(
            f"#pragma once\n{''.join(read)}#ifdef TREE_ALL\n{''.join(rest)}#endif\n{body}"
            f"inline float tree_{index}() {{ return 2.0f; }}\n"
        )


class Bench:
    """One build of kernix on one tree, with a separate store."""

    def __init__(self, package: pathlib.Path | None, store: pathlib.Path, include: pathlib.Path, source: pathlib.Path):
        self.store, self.include, self.source = store, include, source
        self.environment = os.environ | ({"PYTHONPATH": str(package)} if package else {})
        self.rows: dict[str, list[tuple[float, float]]] = {}

    def load(self, row: str, salt: str, hit: bool, repeats: int = 0) -> None:
        """Load in a fresh process. Record the first load and, with `repeats`, the later ones as "same process"."""
        command = [sys.executable, "-c", LOAD, str(self.store), str(self.source), str(self.include), salt, str(repeats)]
        done = subprocess.run(command, env=self.environment, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"bench: the load failed:\n{done.stdout}{done.stderr}")
        first, *again = json.loads(done.stdout.splitlines()[-1])
        if first[2] != hit:
            raise SystemExit(f"bench: {row}: expected a {'hit' if hit else 'build'}")
        self.rows.setdefault(row, []).append(first[:2])
        self.rows.setdefault("hit, same process", []).extend(entry[:2] for entry in again)

    def forget_tree(self) -> None:
        """Remove the clients' header table."""
        shutil.rmtree(self.store / "headers", ignore_errors=True)

    def median(self, row: str) -> tuple[float, float]:
        """Return wall and CPU time of a row in milliseconds."""
        wall, cpu = zip(*self.rows[row], strict=True)
        return statistics.median(wall), statistics.median(cpu)


def run(benches: list[Bench], rounds: int) -> None:
    """Measure everything; the builds take turns."""
    salt = uuid.uuid4().hex
    for bench in benches:
        bench.load("first build", salt, hit=False)
    for _ in range(rounds):
        other = uuid.uuid4().hex
        for bench in benches:
            bench.load("build of another kernel on the same tree", other, hit=False)
        for bench in benches:
            bench.forget_tree()
            bench.load("hit, tree never read", salt, hit=True)
        for bench in benches:
            bench.load("hit, fresh process", salt, hit=True, repeats=5)
        benches = benches[::-1]  # so that neither is always the first


def table(benches: list[Bench]) -> str:
    """Return the Markdown table: the times of the first build, those of the other, and their ratio."""
    lines = ["| | wall | CPU of the client |" + " other's wall | CPU | ratio of walls |" * (len(benches) - 1)]
    lines.append("|---|" + "---:|" * (5 * len(benches) - 3))
    for row in benches[0].rows:
        cells = [f"{value:.3g} ms" for bench in benches for value in bench.median(row)]
        if len(benches) > 1:
            cells.append(f"{benches[1].median(row)[0] / benches[0].median(row)[0]:.2f}")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def measure(name: str, include: pathlib.Path, source: pathlib.Path, arguments: argparse.Namespace) -> None:
    """Measure on one tree, and print the table."""
    from kernix import _environment

    stores = pathlib.Path(tempfile.mkdtemp(prefix="bench-store-"))
    packages = [None] + ([arguments.against] if arguments.against else [])
    benches = [Bench(package, stores / str(index), include, source) for index, package in enumerate(packages)]
    try:
        run(benches, arguments.rounds)
        print(f"\n{name}\n\n{table(benches)}", flush=True)
    finally:
        for bench in benches:
            command = [_environment.program("kernixctl"), "--store", str(bench.store), "shutdown"]
            subprocess.run(command, check=False, capture_output=True)
        shutil.rmtree(stores, ignore_errors=True)


def main() -> None:
    """Measure as the command line requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--headers", type=int, nargs="+", default=[1, 30, 5000], help="number of headers of each tree")
    parser.add_argument("--size", type=int, default=12_000, help="bytes of each header")
    parser.add_argument("--include", type=pathlib.Path, help="an existing tree, instead of the generated ones")
    parser.add_argument("--source", type=pathlib.Path, help="the kernel for that tree, .cu or .cpp")
    parser.add_argument("--against", type=pathlib.Path, help="a folder with another build's package")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-tree-"))
    source = arguments.source or folder / "kernel.cpp"
    try:
        if arguments.source is None:
            source.write_text(KERNEL)
        if arguments.include is not None:
            return measure(str(arguments.include), arguments.include, source, arguments)
        for count in arguments.headers:
            make_tree(folder / str(count), count, arguments.size)
        time.sleep(2.5)  # clients do not remember files that have just changed
        for count in arguments.headers:
            measure(f"{count} headers", folder / str(count), source, arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
