# SPDX-License-Identifier: Apache-2.0
"""Compare kernix with brainevent 0.3.0 in one run, and print a Markdown table of medians and ratios.

Exits with 1 if something exceeds its bar.

Every round measures each system in turn, so that a machine that slows down slows both. Rows:

* cold: the kernel has never been compiled; a fresh process; the daemon is already running. CUDA is for one
  architecture, or for five.
* warm, fresh process: another process has compiled the kernel.
* warm, same process: a repeated load in one process.
* import: the package, in a process that has started JAX; and with its load function, which kernix imports when it is
  first named. No load below counts either.
* first load of all: like cold, but on a new store, and no kernixd is running; it starts and sees its compilers for the
  first time.
* first load after a restart: like cold, but kernixd has ended meanwhile, and starts again on its store.

The lines below the table compare these two with a cold load of kernix.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from importlib.metadata import version

from kernix import _environment

HERE = pathlib.Path(__file__).parent
SYSTEMS = ("brainevent", "kernix")
LANGUAGES = {"cpp": "C++", "cuda": "CUDA"}
FIVE = "sm_80,sm_86,sm_89,sm_90,sm_100"
FIVE_ARCHITECTURES = "cold, CUDA, five architectures"
IMPORT = "import"
IMPORT_OF_FUNCTION = "import with a load function"
FIRST_OF_ALL = "first load of all, C++"
AFTER_RESTART = "first load after a restart, C++"
BARS = {
    "cold, C++": 0.075,
    "cold, CUDA": 0.06,
    FIVE_ARCHITECTURES: 0.06,
    "warm, fresh process, C++": 0.30,
    "warm, fresh process, CUDA": 0.25,
    "warm, same process, C++": 0.05,
    "warm, same process, CUDA": 0.05,
}
FIRST_LOAD_BAR = 2.2  # times a cold load of kernix
IMPORT_BAR = 10  # milliseconds


@dataclasses.dataclass
class Times:
    """The measurements of one process, in milliseconds, as ``one_load.py`` describes them."""

    imported: float
    with_function: float
    first: float
    again: float


def one_load(system: str, language: str, store: str, salt: str, *options: str) -> Times:
    """Run ``one_load.py`` in a fresh process and return its measurements."""
    command = [sys.executable, str(HERE / "one_load.py"), system, language, store, salt, *options]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    measured = json.loads(done.stdout.splitlines()[-1])
    return Times(measured["import_ms"], measured["function_ms"], measured["first_ms"], measured["repeat_ms"])


def one_new_kernel(system: str, language: str, store: str, *options: str) -> float:
    """Return how many milliseconds the load of a new kernel takes in a fresh process."""
    return one_load(system, language, store, uuid.uuid4().hex, *options).first


class Rows:
    """All measured times: ``times[row][system]``."""

    def __init__(self) -> None:
        self.times: dict[str, dict[str, list[float]]] = {}

    def note(self, row: str, system: str, milliseconds: float) -> None:
        """Add one time."""
        self.times.setdefault(row, {}).setdefault(system, []).append(milliseconds)

    def medians(self, row: str) -> tuple[float, float]:
        """Return the reference's median and kernix's."""
        reference, ours = (statistics.median(self.times[row][system]) for system in SYSTEMS)
        return reference, ours

    def spread(self, row: str) -> tuple[float, float]:
        """Return the lowest and the highest ratio of a round."""
        reference, ours = (self.times[row][system] for system in SYSTEMS)
        ratios = [kernix / other for kernix, other in zip(ours, reference, strict=True)]
        return min(ratios), max(ratios)

    def missed(self) -> list[str]:
        """Return the rows that are above their bars."""
        bars = {row: bar * self.medians(row)[0] for row, bar in BARS.items()}
        bars |= {FIRST_OF_ALL: FIRST_LOAD_BAR * self.medians("cold, C++")[1], IMPORT: IMPORT_BAR}
        return [row for row, bar in bars.items() if self.medians(row)[1] > bar]


def measure_round(rows: Rows, stores: dict[str, str], repeats: int) -> None:
    """Load one new kernel of each language with each system: cold, then warm. Then one for five architectures: cold."""
    for language, title in LANGUAGES.items():
        for system, store in stores.items():
            salt = uuid.uuid4().hex
            rows.note(f"cold, {title}", system, one_load(system, language, store, salt).first)
            warm = one_load(system, language, store, salt, "--repeat", str(repeats))
            rows.note(IMPORT, system, warm.imported)
            rows.note(IMPORT_OF_FUNCTION, system, warm.with_function)
            rows.note(f"warm, fresh process, {title}", system, warm.first)
            rows.note(f"warm, same process, {title}", system, warm.again)
    for system, store in stores.items():
        rows.note(FIVE_ARCHITECTURES, system, one_new_kernel(system, "cuda", store, "--architectures", FIVE))


@contextlib.contextmanager
def new_stores() -> Iterator[dict[str, str]]:
    """Make a store for each system, and remove them and their daemons afterwards."""
    stores = {system: tempfile.mkdtemp(prefix=f"bench-{system}-") for system in SYSTEMS}
    try:
        yield stores
    finally:
        end_daemon(stores["kernix"])
        for store in stores.values():
            shutil.rmtree(store, ignore_errors=True)


def end_daemon(store: str) -> None:
    """End the kernixd of a store, if one runs."""
    command = [_environment.program("kernixctl"), "--store", store, "shutdown"]
    subprocess.run(command, check=False, capture_output=True)


def measure_first_loads(rows: Rows) -> None:
    """Load new kernels with each system: on a new store, and after the end of what runs on it."""
    with new_stores() as stores:
        for system, store in stores.items():
            rows.note(FIRST_OF_ALL, system, one_new_kernel(system, "cpp", store))
        end_daemon(stores["kernix"])
        for system, store in stores.items():
            rows.note(AFTER_RESTART, system, one_new_kernel(system, "cpp", store))


def measure(rounds: int, repeats: int) -> Rows:
    """Measure all rows."""
    rows = Rows()
    with new_stores() as stores:
        for system, store in stores.items():
            for language in LANGUAGES:  # so that both have seen their compilers
                one_new_kernel(system, language, store)
            one_new_kernel(system, "cuda", store, "--architectures", FIVE)
        for index in range(rounds):
            print(f"round {index + 1} of {rounds}", file=sys.stderr)
            measure_round(rows, stores, repeats)
            measure_first_loads(rows)
    return rows


def table(rows: Rows) -> str:
    """Return the Markdown table of medians, ratios of the medians, ratios of single rounds, and bars."""
    lines = ["| | brainevent 0.3.0 | kernix | ratio | range | bar |", "|---|---:|---:|---:|---:|---:|"]
    for row in (*BARS, IMPORT, IMPORT_OF_FUNCTION, FIRST_OF_ALL, AFTER_RESTART):
        reference, ours = rows.medians(row)
        low, high = rows.spread(row)
        bar = f"≤ {BARS[row]:.3g}" if row in BARS else f"≤ {IMPORT_BAR} ms" if row == IMPORT else ""
        times = f"{reference:.3g} ms | {ours:.3g} ms | {ours / reference:.3f}"
        lines.append(f"| {row} | {times} | {low:.3f} to {high:.3f} | {bar} |")
    return "\n".join(lines)


def machine() -> str:
    """Return a description of the machine and the software."""
    models = [
        line.partition(":")[2].strip()
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    cores = f"{len(os.sched_getaffinity(0))} cores ({models[0] if models else 'unknown'})"
    versions = f"Python {platform.python_version()}, JAX {version('jax')}, kernix {version('kernix')}"
    return f"{cores}, load {os.getloadavg()[0]:.1f} at the start, {versions}"


def main() -> int:
    """Measure, print, and check the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=200, help="loads for the same-process rows")
    parser.add_argument("--json", type=pathlib.Path, help="also write all individual times to this file")
    arguments = parser.parse_args()
    where = machine()
    rows = measure(arguments.rounds, arguments.repeats)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows.times, indent=1))
    print(table(rows))
    first, restarted, cold = (rows.medians(row)[1] for row in (FIRST_OF_ALL, AFTER_RESTART, "cold, C++"))
    ratios = [a / b for a, b in zip(rows.times[FIRST_OF_ALL]["kernix"], rows.times["cold, C++"]["kernix"], strict=True)]
    print(f"\nkernix: its first load of all takes {first / cold:.2f} times as long as a cold one", end=" ")
    print(f"({min(ratios):.2f} to {max(ratios):.2f}; bar: {FIRST_LOAD_BAR}),", end=" ")
    print(f"and its first load after a restart {restarted / cold:.2f} times as long")
    print(f"\nMedians of {arguments.rounds} rounds; {where}")
    if missed := rows.missed():
        print(f"bench: above the bar: {'; '.join(missed)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
