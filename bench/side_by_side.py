# SPDX-License-Identifier: Apache-2.0
"""kernix beside brainevent 0.3.0, in one run: prints a Markdown table of medians and ratios.

Every round takes each system in turn, so that a machine that slows down slows both. Rows:

* cold: the kernel has never been compiled; a fresh process, the daemon runs already.
* warm, fresh process: another process has compiled it.
* warm, same process: the same load again in one process.
* first load of all: as cold, but no kernixd runs yet: it is started, and looks at its compilers for the first time.
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
import uuid

HERE = pathlib.Path(__file__).parent
BARS = {"cold C++": 0.30, "cold CUDA": 0.35, "warm, fresh process": 1.0, "warm, same process": 0.05}


def one_load(system: str, language: str, store: str, salt: str, repeat: int = 0) -> dict:
    """Run ``one_load.py`` in a fresh process and return what it measured."""
    command = [sys.executable, str(HERE / "one_load.py"), system, language, store, salt, "--repeat", str(repeat)]
    done = subprocess.run(command, check=False, capture_output=True, text=True,
                          env=dict(os.environ, JAX_PLATFORMS="cpu"))
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(rounds: int, repeats: int) -> dict:
    """Return ``{row: {system: [milliseconds]}}``."""
    rows: dict = {}

    def note(row: str, system: str, milliseconds: float) -> None:
        rows.setdefault(row, {}).setdefault(system, []).append(milliseconds)

    stores = {system: tempfile.mkdtemp(prefix=f"bench-{system}-") for system in ("brainevent", "kernix")}
    try:
        for system, store in stores.items():
            note("first load of all (C++)", system, one_load(system, "cpp", store, uuid.uuid4().hex)["first_ms"])
            one_load(system, "cuda", store, uuid.uuid4().hex)  # both have seen their compilers once
        for index in range(rounds):
            print(f"round {index + 1} of {rounds}", file=sys.stderr)
            for language, title in (("cpp", "C++"), ("cuda", "CUDA")):
                for system, store in stores.items():
                    salt = uuid.uuid4().hex
                    note(f"cold {title}", system, one_load(system, language, store, salt)["first_ms"])
                    warm = one_load(system, language, store, salt, repeats)
                    note("warm, fresh process", system, warm["first_ms"])
                    note("warm, same process", system, warm["repeat_ms"])
    finally:
        from kernix import _environment

        kernixctl = _environment.program("kernixctl")
        subprocess.run([kernixctl, "--store", stores["kernix"], "shutdown"], check=False, capture_output=True)
        for store in stores.values():
            shutil.rmtree(store, ignore_errors=True)
    return rows


def table(rows: dict) -> str:
    """Return the Markdown table of medians, ratios and bars."""
    lines = ["| | brainevent 0.3.0 | kernix | ratio | bar |", "|---|---:|---:|---:|---:|"]
    for row in (*BARS, "first load of all (C++)"):
        reference, ours = (statistics.median(rows[row][system]) for system in ("brainevent", "kernix"))
        bar = f"≤ {BARS[row]:.2f}" if row in BARS else ""
        lines.append(f"| {row} | {reference:.3g} ms | {ours:.3g} ms | {ours / reference:.3f} | {bar} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=200, help="loads for the same-process row")
    parser.add_argument("--json", type=pathlib.Path, help="also write every single time here")
    arguments = parser.parse_args()
    rows = measure(arguments.rounds, arguments.repeats)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    print(table(rows))


if __name__ == "__main__":
    main()
