# SPDX-License-Identifier: Apache-2.0
"""Measure what an upstream is worth: a compile, a load of what another node has built, and a hit on the same node.

Two kernixds with stores of their own share an engine on this machine. In each round, one compiles a new kernel, the
other one takes it from the engine, and then finds it in its store; each load in a fresh process that has not imported
JAX. Before the rounds, the other node has taken a kernel of the language: it knows its compilers and has digested their
headers.

Needs what ``make build`` makes, and the tests' engine (``make setup``): ``.venv/bin/python bench/upstream.py``.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

from fleet import ROOT, Node, engine
from one_load import CPP_SOURCE, CUDA_SOURCE


def load(language: str, salt: str) -> float:
    """Return how many milliseconds this process needs for the kernel."""
    import kernix

    name = f"bench_{language}_{salt}"
    load_cpp, load_cuda = kernix.load_cpp_inline, kernix.load_cuda_inline  # imported now: no part of a load
    begin = time.perf_counter()
    if language == "C++":
        module = load_cpp(name, CPP_SOURCE.format(salt=salt), auto_register=False)
    else:
        module = load_cuda(name, CUDA_SOURCE.format(salt=salt), auto_register=False, compute_capability="sm_90")
    took = 1e3 * (time.perf_counter() - begin)
    return took if module else 0.0


def load_on(node: Node, language: str, salt: str) -> float:
    """Return how many milliseconds a fresh process needs for the kernel on this node."""
    command = [sys.executable, __file__, "--load", language, salt]
    environment = os.environ | {"KERNIX_ADDRESS": f"unix:{node.socket}", "KERNIX_WARNINGS": "none"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout)


def written(node: Node) -> float:
    """Return how many results the node has written."""
    metrics = node.ask("metrics").splitlines()
    lines = [line for line in metrics if line.startswith("kernix_upstream_results_written_total")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def await_writes(node: Node, before: float) -> None:
    """Return when the node has written something since, and no more for a while."""
    seen, since = before, time.monotonic()
    while seen == before or time.monotonic() < since + 0.5:
        now = written(node)
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.05)


def measure_round(builder: Node, taker: Node, language: str) -> dict[str, float]:
    """Return the times of a new kernel by row."""
    salt = uuid.uuid4().hex
    before = written(builder)
    compiled = load_on(builder, language, salt)
    await_writes(builder, before)
    taken_before = taker.counts()["from_upstream"]
    taken = load_on(taker, language, salt)
    if taker.counts()["from_upstream"] != taken_before + 1:
        raise SystemExit("the kernel was not taken from the engine")
    hit = load_on(taker, language, salt)
    more = taken - hit
    return {"compile": compiled, "taken from the engine": taken, "hit": hit, "taken: more than a hit": more}


def measure(builder: Node, taker: Node, language: str, rounds: int) -> None:
    """Print the rows of a language."""
    measure_round(builder, taker, language)
    measured = [measure_round(builder, taker, language) for _ in range(rounds)]
    rows = {row: [times[row] for times in measured] for row in measured[0]}
    for row, times in rows.items():
        ratio = statistics.median(times) / statistics.median(rows["compile"])
        low, high = min(times), max(times)
        print(
            f"| {language}, {row} | {statistics.median(times):.1f} ms | {low:.1f} to {high:.1f} | {ratio:.3f} |",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--load", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        print(load(*options.load))
        return
    print("| load | median | range | of a compile |")
    print("|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="ku") as name, engine(pathlib.Path(name)) as address:
        programs = pathlib.Path(options.build) / "bin"
        nodes = [Node(programs, pathlib.Path(name) / role, address) for role in ("builder", "taker")]
        try:
            for node in nodes:
                node.await_ready()
            for language in ("C++", "CUDA"):
                measure(nodes[0], nodes[1], language, options.rounds)
        finally:
            for node in nodes:
                node.process.terminate()
                node.process.wait()


if __name__ == "__main__":
    main()
