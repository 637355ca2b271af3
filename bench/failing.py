# SPDX-License-Identifier: Apache-2.0
"""Measure compiles that fail: kernix against one ``nvcc -c`` of the same text, as wall and processor time.

``python bench/failing.py [ROUNDS]`` with an installed kernix and nvcc; no GPU needed. Each mistake is made in a kernel
without ``#include``s, with fp16, with cooperative groups and with CUB: before kernixd knows these headers, and after
four kernels have included them. Prints medians of the rounds (3) as ratios to nvcc.
"""

import pathlib
import statistics
import sys
import tempfile
import time

from public_files import PROBE, Daemon, load, plain, salted

import kernix

HEADS = {
    "none": "",
    "fp16": "#include <cuda_fp16.h>\n",
    "cooperative groups": "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n",
    "CUB": "#include <cub/cub.cuh>\n",
}
MISTAKES = {
    "an unknown name": ("= x[", "= unknown + x["),
    "a missing ;": ("DEVICE_SALT;\n", "DEVICE_SALT\n"),
    "a missing }": ("DEVICE_SALT;\n}", "DEVICE_SALT;\n"),
    "a wrong type": ("= x[", '= "text" * x['),
}
SALTS = ("COMMENT_SALT", "DEVICE_SALT", "HOST_SALT")


def failing(text: str, folder: pathlib.Path, daemon: Daemon) -> tuple[float, float]:
    """Return wall and processor time of a load that fails, as ratios to nvcc's."""
    text = salted(text, *SALTS, salts={})
    before = daemon.processor_seconds()
    begin = time.perf_counter()
    try:
        load(text, [])
    except kernix.KernelCompilationError:
        wall = time.perf_counter() - begin
    else:
        raise SystemExit(f"this was to fail:\n{text}")
    used = daemon.processor_seconds() - before
    nvcc_wall, nvcc_used = plain(daemon.said(r"(/\S*/nvcc) "), text, [], folder, check=False)
    return wall / nvcc_wall, used / nvcc_used


def main() -> int:
    """Print a row for each mistake and head."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print("| #includes | mistake | new: wall | processor | known: wall | processor |\n|---|---" + "|---:" * 4 + "|")
    with tempfile.TemporaryDirectory(prefix="bench-failing-", ignore_cleanup_errors=True) as folder:
        for name, head in HEADS.items():
            values: dict[str, list[tuple[float, ...]]] = {mistake: [] for mistake in MISTAKES}
            for number in range(rounds):
                daemon = Daemon(f"{folder}/{name}-{number}", without="")
                texts = {mistake: head + PROBE.replace(*edit, 1) for mistake, edit in MISTAKES.items()}
                new = {mistake: failing(text, pathlib.Path(folder), daemon) for mistake, text in texts.items()}
                for _ in range(4):
                    load(salted(head + PROBE, *SALTS, salts={}), [])
                    daemon.processor_seconds()
                for mistake, text in texts.items():
                    values[mistake].append((*new[mistake], *failing(text, pathlib.Path(folder), daemon)))
                daemon.stop()
            for mistake, measured in values.items():
                medians = (statistics.median(column) for column in zip(*measured, strict=True))
                print(f"| {name} | {mistake} | " + " | ".join(f"{value:.2f}" for value in medians) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
