# SPDX-License-Identifier: Apache-2.0
"""``kernixctl watch``."""

import os
import re
import select
import signal
import subprocess
import time

import kernels
import pytest

from kernix import _environment

BUILT = r"one\.cpp: value \(built in \d+ ms: [^)]+\) -> \S+\.so"


class Session:
    """A running ``kernixctl watch``, and what it prints."""

    def __init__(self, place, folder, *arguments):
        self._process = subprocess.Popen(
            [_environment.program("kernixctl"), "watch", *arguments],
            cwd=folder,
            env=place.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._said = ""
        self.transcript = ""

    def expect(self, pattern):
        """Wait for a line, and forget what was said up to it."""
        deadline = time.monotonic() + 60
        while (found := re.search(f"^{pattern}$", self._said, re.MULTILINE)) is None:
            ready = select.select([self._process.stdout], [], [], deadline - time.monotonic())[0]
            assert ready, f"no {pattern!r} in {self._said!r}"
            more = os.read(self._process.stdout.fileno(), 4096).decode()
            assert more, f"it has ended: {self._said!r}"
            self._said += more
            self.transcript += more
        self._said = self._said[found.end() :]

    def code(self):
        """Wait for its end."""
        return self._process.wait(timeout=60)

    def end(self):
        """Press Ctrl-C; return the exit code and what was said since the last expected line."""
        self._process.send_signal(signal.SIGINT)
        rest = self._process.communicate(timeout=60)[0].decode()
        return self._process.returncode, (self._said + rest).strip()


@pytest.fixture(name="folder")
def folder_fixture(tmp_path):
    """A folder of headers, and a source that writes a header's VALUE."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "value.h").write_text("#define VALUE 1\n")
    (tmp_path / "one.cpp").write_text('#include "value.h"\n' + kernels.constant("VALUE"))
    return tmp_path


def replace(path, text):
    """Write a file as editors do: under another name first."""
    path.with_suffix(".new").write_text(text)
    os.replace(path.with_suffix(".new"), path)


def test_each_change_is_compiled(own_place, folder):
    """Edits in place and by renaming, of the source and of its header, and back to what the cache has."""
    header = folder / "include" / "value.h"
    session = Session(own_place, folder, "one.cpp", "-I", "include", "-o", "one.so")
    session.expect(r"one\.cpp: value \(built in \d+ ms: [^)]+\) -> one\.so")
    for write, text in [
        (header.write_text, "#define VALUE 2\n"),
        (lambda text: replace(header, text), "#define VALUE 3"),
    ]:
        before = (folder / "one.so").read_bytes()
        write(text)
        session.expect(r"one\.cpp: value \(built in \d+ ms: [^)]+\) -> one\.so")
        assert (folder / "one.so").read_bytes() != before
    replace(folder / "one.cpp", kernels.constant(4))
    session.expect(r"one\.cpp: value \(built in \d+ ms: [^)]+\) -> one\.so")
    replace(folder / "one.cpp", '#include "value.h"\n' + kernels.constant("VALUE"))
    session.expect(r"one\.cpp: value \(from the cache\) -> one\.so")
    assert session.end() == (130, "")
    assert own_place.stats()["builds"] == 4


def test_mistakes_and_their_mending(own_place, folder):
    """An error shows the user's line once; a header that comes into being mends it."""
    header = folder / "include" / "value.h"
    session = Session(own_place, folder, "one.cpp", "-I", "include")
    session.expect(BUILT)
    header.write_text("#define VALUE nothing\n")
    session.expect(rf"kernixctl: compile failed: {header}:1:\d+: error: .nothing. was not declared.*")
    header.unlink()
    session.expect(rf"kernixctl: compile failed: {folder}/one\.cpp:1:\d+: fatal error: value\.h: No such file.*")
    replace(folder / "value.h", "#define VALUE 1\n")
    session.expect(BUILT)
    assert session.end() == (130, "")
    said = session.transcript
    assert [said.count(text) for text in ("compile failed", "| #define VALUE nothing", " -c ")] == [2, 1, 0]


def test_a_file_that_is_not_there_yet(own_place, folder):
    """It is compiled once somebody writes it, and others meanwhile."""
    session = Session(own_place, folder, "new.cpp", "one.cpp", "-I", "include")
    session.expect(r"kernixctl: cannot read the source file: cannot open new\.cpp: No such file or directory")
    session.expect(BUILT)
    replace(folder / "new.cpp", kernels.constant(5))
    session.expect(BUILT.replace("one", "new"))
    (folder / "new.cpp").unlink()
    session.expect(r"kernixctl: cannot read the source file: cannot open new\.cpp: No such file or directory")
    assert session.end() == (130, "")


def test_without_a_compiler_it_ends(own_place, folder, monkeypatch):
    """No edit can help there."""
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    session = Session(own_place, folder, "one.cpp")
    session.expect("kernixctl: .*/nonexistent/c.*")
    assert session.code() == 5
