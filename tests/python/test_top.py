# SPDX-License-Identifier: Apache-2.0
"""`kernixctl top` in a terminal of 80 columns and 24 lines."""

import contextlib
import json
import re
import subprocess
import time

import pexpect
import pytest

from kernix import _environment

# Its compilation takes minutes, if nobody cancels it.
ENDLESS = """
#include "brainevent/common.h"
constexpr unsigned long work(unsigned long n) {
  unsigned long sum = 0;
  for (unsigned long i = 0; i < n; ++i) sum += i ^ n;
  return sum;
}
static_assert(work(4000000000ul) != 1, "");
// @BE endless ret
void endless(BE::Tensor out) {}
"""


@contextlib.contextmanager
def endless_load(place, folder):
    """Start a load that does not end by itself; gives the process of its client."""
    source = folder / "endless.cpp"
    source.write_text(ENDLESS)
    limits = ["--flag=-fconstexpr-ops-limit=2000000000000", "--flag=-fconstexpr-loop-limit=2147483647"]
    command = [_environment.program("kernixctl"), "compile", str(source), *limits]
    environment = place.environment | {"KERNIXD": _environment.program("kernixd")}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def top(place):
    """Run `kernixctl top` in a terminal."""
    command = _environment.program("kernixctl")
    options = {"env": place.environment, "dimensions": (24, 80), "encoding": "utf-8", "timeout": 60}
    terminal = pexpect.spawn(command, ["top"], **options)
    yield terminal
    terminal.close(force=True)


def await_load(place):
    """Wait until the load runs a compiler."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        status = json.loads(place.kernixctl("status", "--json", check=False).stdout or "{}")
        if any(load["step"] for load in status.get("loads", [])):
            return
    raise AssertionError("the load runs no compiler")


@pytest.fixture(name="load")
def load_fixture(own_place, tmp_path):
    """A load that does not end by itself."""
    with endless_load(own_place, tmp_path) as process:
        await_load(own_place)
        yield process


def test_cancels_the_selected_load(own_place, load):
    with top(own_place) as terminal:
        terminal.expect_exact("endless")
        terminal.send("c")
        terminal.expect_exact("no load is selected")
        terminal.send("j")
        terminal.expect_exact("\x1b[7mendless")
        terminal.send("c")
        assert load.wait(timeout=60) == 130
        assert "cancelled" in load.stderr.read()
        terminal.send("q")
        terminal.expect(pexpect.EOF)
        terminal.wait()
        assert terminal.exitstatus == 0


def test_gives_the_terminal_back(own_place, load):
    with top(own_place) as terminal:
        terminal.expect_exact("\x1b[?1049h")
        terminal.expect_exact("endless")
        terminal.sendintr()
        terminal.expect_exact("\x1b[?1049l")
        terminal.expect(pexpect.EOF)
        terminal.wait()
        assert terminal.exitstatus == 130


def test_filters(own_place, load):
    with top(own_place) as terminal:
        terminal.expect_exact("endless")
        terminal.send("/nothing\n")
        terminal.expect_exact("filter: nothing")
        terminal.send("c")
        terminal.expect_exact("no load is selected")
        terminal.send("q")
        terminal.expect(pexpect.EOF)
    assert load.poll() is None


def test_without_a_terminal_it_prints_once(own_place, load):
    text = own_place.kernixctl("top").stdout
    assert re.search(r"jobs: \d running", text)
    assert "endless" in text
    assert "\x1b" not in text


def test_a_terminal_without_a_screen_gets_it_once(own_place, load):
    command = f"{_environment.program('kernixctl')} top"
    environment = own_place.environment | {"TERM": "dumb"}
    text, code = pexpect.run(command, env=environment, withexitstatus=True, encoding="utf-8")
    assert (code, "endless" in text, "\x1b" in text) == (0, True, False)


def test_a_terminal_that_does_not_know_its_size_has_80_columns_and_24_lines(own_place, load):
    options = {"env": own_place.environment | {"TERM": "vt220"}, "dimensions": (0, 0), "encoding": "utf-8"}
    terminal = pexpect.spawn(_environment.program("kernixctl"), ["top"], timeout=60, **options)
    terminal.expect_exact("endless")
    terminal.close(force=True)


def test_without_a_daemon(own_place):
    result = own_place.kernixctl("top", check=False)
    assert (result.returncode, "no kernixd" in result.stderr) == (3, True)
