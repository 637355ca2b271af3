# SPDX-License-Identifier: Apache-2.0
"""Measure a load from a bundle against a hit, each in a fresh process, and print rows of a Markdown table.

The two take turns, so that a busy machine slows both. Exits with 1 if the ratio of a language's medians exceeds the
bar.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import sysconfig
import tempfile

from kernix import _environment

BAR = 1.2

SOURCES = {
    "cpp": """
#include "brainevent/common.h"
// @BE add_one
void add_one(BE::In<float> x, BE::Out<float> y) {
    for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] + 1;
}
""",
    "cu": """
#include "brainevent/common.h"
// @BE add_one
__global__ void add_one(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1;
}
""",
}

#: Loads a file in its own process, and prints the milliseconds of the load alone.
LOAD = """
import json, sys, time
import kernix
load = kernix.load_cuda_file if sys.argv[1].endswith("cu") else kernix.load_cpp_file
options = {"compute_capability": "9.0"} if sys.argv[1].endswith("cu") else {}
begin = time.perf_counter()
module = load(sys.argv[1], bundle=sys.argv[2:], policy="cached", auto_register=False, **options)
print(json.dumps([1e3 * (time.perf_counter() - begin), module.path]))
"""


def load_once(path: pathlib.Path, bundles: list[pathlib.Path], environment: dict[str, str]) -> tuple[float, str]:
    """Return the milliseconds of a load in a fresh process, and where the artifact is."""
    command = [sys.executable, "-c", LOAD, str(path), *map(str, bundles)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    milliseconds, artifact = json.loads(done.stdout)
    return milliseconds, artifact


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=41)
    rounds = parser.parse_args().rounds
    worst = 0.0
    print("| load | hit | from a bundle | ratio |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="kx-", dir="/tmp") as name:
        root = pathlib.Path(name)
        environment = os.environ | {"KERNIX_CACHE_DIR": str(root / "store"), "XDG_RUNTIME_DIR": name}
        ctl = str(_environment.program("kernixctl"))
        for suffix, text in SOURCES.items():
            path = root / f"add_one.{suffix}"
            path.write_text(text)
            bundle = root / f"{suffix}.bundle"
            make = [ctl, "bundle", "make", str(path), "--arch", "9.0", "-o", str(bundle)]
            make += ["--site-packages", sysconfig.get_path("purelib")]
            subprocess.run(make, env=environment, check=True, capture_output=True)
            times: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(rounds):
                for bundled in times:
                    milliseconds, artifact = load_once(path, [bundle] if bundled else [], environment)
                    assert artifact.startswith(str(bundle if bundled else root / "store")), artifact
                    times[bundled].append(milliseconds)
            hit, from_bundle = (statistics.median(times[bundled]) for bundled in (False, True))
            worst = max(worst, from_bundle / hit)
            print(f"| {suffix} | {hit:.2f} ms | {from_bundle:.2f} ms | {from_bundle / hit:.2f} |")
        subprocess.run([ctl, "shutdown"], env=environment, check=False, capture_output=True)
    return int(worst > BAR)


if __name__ == "__main__":
    sys.exit(main())
