# SPDX-License-Identifier: Apache-2.0
"""Measure what workers are worth to a node that is busy: a burst of kernels, with and without ``overflow``.

A kernixd with one job, and an engine on this machine with one worker, of one job. Each round loads a burst of new C++
kernels at once, with a new kernixd for each setting. Machine and engine share the processors, so two of them show the
most that there is to gain: half of the time.

Needs what ``make build`` makes, the tests' engine (``make setup``), and bubblewrap:
``.venv/bin/python bench/overflow.py``.
"""

import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time
import uuid

from fleet import ROOT, Node, engine

# The macro comes first, so that no kernel takes the compiled preamble of another one.
KERNEL = """#define SALT "{salt}"
#include <{header}>
#include "brainevent/common.h"
// @BE f{number}
void f{number}(const BE::Tensor x, BE::Tensor y) {{ *y.data_ptr<float>() = *x.data_ptr<const float>(); }}
"""
HERE = ("--jobs=1", "--upstream-read=false")


def overflow(after: str) -> tuple[str, ...]:
    """Return the settings of a node that sends away what would wait for longer."""
    return (*HERE, "--upstream-steps=overflow", f"--upstream-overflow-after={after}", "--upstream-jobs=1")


class Setting:
    """One way to run the burst, and what it took."""

    def __init__(self, name: str, flags: tuple[str, ...]) -> None:
        self.name = name
        self.flags = flags
        self.seconds: list[float] = []
        self.sent_away: list[float] = []

    def run(self, programs: pathlib.Path, folder: pathlib.Path, address: str, kernels: pathlib.Path) -> None:
        """Load the burst on a new node."""
        node = Node(programs, folder, address, self.flags)
        try:
            node.await_ready()
            begin = time.monotonic()
            node.ask("build", str(kernels), "-j", str(len(list(kernels.iterdir()))))
            self.seconds.append(time.monotonic() - begin)
            self.sent_away.append(node.total('kernix_placed_steps_total{place="remote"}'))
        finally:
            node.process.terminate()
            node.process.wait()


def write_burst(folder: pathlib.Path, count: int, header: str) -> None:
    """Write kernels that nobody has built."""
    folder.mkdir()
    for number in range(count):
        text = KERNEL.format(header=header, number=number, salt=uuid.uuid4().hex)
        (folder / f"k{number:03}.cpp").write_text(text)


def can_sandbox() -> bool:
    """Return whether workers can shut in what they run."""
    sandbox = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "/bin/true"]
    return subprocess.run(sandbox, check=False, capture_output=True).returncode == 0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kernels", type=int, default=12)
    parser.add_argument("--header", default="regex", help="what each kernel includes, so that compiling takes a while")
    parser.add_argument("--after", default="100ms,3s")
    parser.add_argument("--build", default=str(ROOT / "build"))
    options = parser.parse_args()
    if not can_sandbox():
        print("not measured: bubblewrap cannot make a sandbox on this machine")
        return
    settings = [Setting("this machine alone", HERE)]
    settings += [Setting(f"`overflow_after = {after}`", overflow(after)) for after in options.after.split(",")]
    with tempfile.TemporaryDirectory(prefix="ko") as name, engine(pathlib.Path(name), workers=1) as address:
        for number in range(options.rounds):
            for place, setting in enumerate(settings):
                folder = pathlib.Path(name) / f"{number}-{place}"
                folder.mkdir()
                write_burst(folder / "kernels", options.kernels, options.header)
                setting.run(pathlib.Path(options.build) / "bin", folder / "n", address, folder / "kernels")
    print("| setting | median | range | of this machine alone | steps on the worker |")
    print("|---|---:|---:|---:|---:|")
    alone = statistics.median(settings[0].seconds)
    for setting in settings:
        took = statistics.median(setting.seconds)
        low, high = min(setting.seconds), max(setting.seconds)
        away = statistics.median(setting.sent_away)
        print(f"| {setting.name} | {took:.1f} s | {low:.1f} to {high:.1f} | {took / alone:.2f} | {away:.0f} |")


if __name__ == "__main__":
    main()
