# SPDX-License-Identifier: Apache-2.0
"""Measure a program's start after its compiler has changed, with the program's history and without, as Markdown rows.

The program loads small kernels one after the other. Each start has a compiler of its own: a script around ``$CXX`` (or
g++) that is new. Both kinds of start take turns, so that a busy machine slows both. The last column compares a start
with history with the slowest kernel of a start without.

Exits with 1 if the ratio of the medians exceeds the bar, which is for two cores without other work. There, 0.54 is the
least for C++, since a load alone keeps 1.08 cores busy. A load of CUDA keeps almost two busy.
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

from kernix import _environment

BARS = {"cpp": 0.6, "cuda": 1.0}
CPP = """
#include "brainevent/common.h"
// @BE add
void add(BE::In<float> x, BE::Out<float> y) {{
    for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] + {number};
}}
"""
CUDA = """
#include "brainevent/common.h"
// @BE add
__global__ void add(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + {number};
}}
"""

#: Prints the seconds of all loads, and of the slowest one.
PROGRAM = """
import json, sys, time
import kernix
language, sources = json.load(open(sys.argv[1]))
options = {"compute_capability": "9.0"} if language == "cuda" else {}
load = getattr(kernix, f"load_{language}_inline")
times = [time.perf_counter()]
for number, source in enumerate(sources):
    load(f"small{number}", source, auto_register=False, **options)
    times.append(time.perf_counter())
print(json.dumps([times[-1] - times[0], max(b - a for a, b in zip(times, times[1:]))]))
"""


class Machine:
    """A folder with the program, its kernels, a store with a kernixd of its own, and a compiler."""

    def __init__(self, root: pathlib.Path, language: str, kernels: int) -> None:
        self._root = root
        self._compilers = 0
        self._program = [sys.executable, str(root / "program.py"), str(root / "kernels.json")]
        (root / "run").mkdir(mode=0o700)
        (root / "program.py").write_text(PROGRAM)
        text = CUDA if language == "cuda" else CPP
        sources = [text.format(number=number) for number in range(kernels)]
        (root / "kernels.json").write_text(json.dumps([language, sources]))
        self.environment = os.environ | {"KERNIX_CACHE_DIR": str(root / "store"), "XDG_RUNTIME_DIR": str(root / "run")}

    def start(self, history: bool) -> tuple[float, float]:
        """Return the seconds of a start after a change of the compiler, and of its slowest load."""
        self._compilers += 1
        compiler = self._root / "c++"
        real = shutil.which(os.environ.get("CXX", "g++"))
        compiler.with_suffix(".new").write_text(f'#!/bin/sh\n# version {self._compilers}\nexec {real} "$@"\n')
        compiler.with_suffix(".new").chmod(0o755)
        compiler.with_suffix(".new").replace(compiler)
        switches = {"CXX": str(compiler), "NVCC_CCBIN": str(compiler), "KERNIX_HISTORY": str(int(history))}
        done = subprocess.run(
            self._program, env=self.environment | switches, check=True, stdout=subprocess.PIPE, text=True
        )
        total, slowest = json.loads(done.stdout)
        return total, slowest

    def close(self) -> None:
        """End kernixd."""
        subprocess.run([_environment.program("kernixctl"), "shutdown"], env=self.environment, check=False)


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cuda", action="store_true", help="CUDA kernels instead of C++ ones")
    arguments = parser.parse_args()
    language = "cuda" if arguments.cuda else "cpp"
    bar = BARS[language]

    with tempfile.TemporaryDirectory(prefix="kernix-warmup-", dir="/tmp") as root:
        machine = Machine(pathlib.Path(root), language, arguments.kernels)
        machine.start(history=True)
        starts = [(machine.start(history=False), machine.start(history=True)) for _ in range(arguments.rounds)]
        machine.close()

    without, with_it = (statistics.median(start[kind][0] for start in starts) for kind in (0, 1))
    slowest = statistics.median(start[0][1] for start in starts)
    ratios = [b[0] / a[0] for a, b in starts]
    print(
        f"| {arguments.kernels} kernels in {language}, a new compiler | {without:.2f} | {with_it:.2f} "
        f"| {with_it / without:.3f} | {min(ratios):.3f} to {max(ratios):.3f} | {bar} | {with_it / slowest:.1f} |"
    )
    return int(with_it / without > bar)


if __name__ == "__main__":
    sys.exit(main())
