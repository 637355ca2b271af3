# SPDX-License-Identifier: Apache-2.0
"""Runs unit tests under AddressSanitizer with UndefinedBehaviorSanitizer, and under ThreadSanitizer.

``sanitize.py [--minutes N] [asan] [tsan]`` builds one test program after the other in a build folder of each sanitizer,
and runs it. Programs whose rooms the last day's commits have changed come first; among equals, each commit begins with
another one. After N minutes no further program is begun, and the last lines name those that were left out.
"""

import argparse
import collections
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What ThreadSanitizer runs: the programs whose tests start threads of ours.
THREADED = {"build_test", "cache_test", "client_connection_test", "common_test", "exec_test", "remote_test"}
# They wait for real compilers most of the time, which no sanitizer watches: they come last.
SLOW = {"builder_test", "kernel_test"}
# A forked child does not have its parent's threads; ThreadSanitizer reports them as never joined.
OPTIONS = {"TSAN_OPTIONS": "report_thread_leaks=0"}


class Run(NamedTuple):
    """A test program under one sanitizer."""

    preset: str
    program: str  # its path in the build folder
    rooms: frozenset[str]  # the folders of its tests

    @property
    def name(self) -> str:
        """Return the program's name."""
        return pathlib.Path(self.program).name

    @property
    def title(self) -> str:
        """Return what the run is called."""
        return f"{self.name} ({self.preset})"


def output_of(*command: str) -> str:
    """Return what a command prints; fail as it fails."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def changes() -> collections.Counter[str]:
    """Return how many files of each folder the last commit and those of the day before it have changed."""
    newest = int(output_of("git", "log", "-1", "--format=%ct"))
    names = output_of("git", "log", f"--since={newest - 86_400}", "--name-only", "--format=")
    return collections.Counter(str(pathlib.Path(name).parent) for name in {*names.split("\n")} if name)


def programs(preset: str) -> list[Run]:
    """Configure a sanitizer's build folder. Return the programs of its target `unit_tests`."""
    build = ROOT / f"build-{preset}"
    subprocess.run(["cmake", "--preset", preset, "--log-level=NOTICE"], cwd=ROOT, check=True)
    inputs = output_of("ninja", "-C", str(build), "-t", "query", "unit_tests").partition("  outputs:")[0]
    wanted = [line.strip() for line in inputs.splitlines() if line.endswith("_test")]
    rooms: dict[str, set[str]] = {program: set() for program in wanted}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        folder, marked, _ = words[words.index("-o") + 1].partition(".dir/")
        program = folder.replace("CMakeFiles/", "")
        if marked and program in rooms:
            rooms[program].add(os.path.relpath(pathlib.Path(entry["file"]).parent, ROOT))
    runs = [Run(preset, program, frozenset(rooms[program])) for program in wanted]
    return [run for run in runs if preset != "tsan" or run.name in THREADED]


def ordered(runs: list[Run]) -> list[Run]:
    """Return the runs, those of rooms with most changes first."""
    commits = int(output_of("git", "rev-list", "--count", "HEAD"))
    begin = commits % len(runs)
    changed = changes()
    in_turn = runs[begin:] + runs[:begin]
    return sorted(in_turn, key=lambda run: (run.name in SLOW, -sum(changed[room] for room in run.rooms)))


def succeeds(command: list[str], folder: pathlib.Path) -> bool:
    """Run a command. Return whether it succeeds; print its output if it does not."""
    environment = OPTIONS | os.environ
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        print(done.stdout.decode(errors="replace"))
    return done.returncode == 0


def passes(run: Run) -> bool:
    """Build and run a test program. Return whether both succeed."""
    began = time.monotonic()
    program = ROOT / f"build-{run.preset}" / run.program
    build = ["cmake", "--build", f"build-{run.preset}", "--target", run.name]
    passed = succeeds(build, ROOT) and succeeds([str(program)], program.parent)
    print(f"sanitize: {run.title} {'passed' if passed else 'failed'}, {time.monotonic() - began:.0f} s", flush=True)
    return passed


def main() -> int:
    """Run what the time allows; return the process's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("presets", nargs="*", default=["asan", "tsan"], help="asan, tsan; without: both")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after that no program is begun")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    runs = ordered([run for preset in arguments.presets for run in programs(preset)])
    failed, left_out = [], []
    for run in runs:
        if time.monotonic() > end:
            left_out.append(run.title)
        elif not passes(run):
            failed.append(run.title)
    if left_out:
        print(f"sanitize: left out, since {arguments.minutes:g} minutes are over: {', '.join(left_out)}")
    if failed:
        print(f"sanitize: failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
