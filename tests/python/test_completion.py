# SPDX-License-Identifier: Apache-2.0
"""Typing kernixctl's commands in real shells, with the tabulator key."""

import os
import pathlib
import pty
import re
import shlex
import shutil
import subprocess

import pytest

from kernix import _environment

#: Completes as kernixctl does, and shows what it gets otherwise.
SHOW_ARGUMENTS = """#!/bin/sh
[ "$1" = __complete ] && exec {kernixctl} "$@"
printf '<%s>' "$@"
echo
"""

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
PREPARE = {"bash": "bind 'set bell-style none'", "zsh": "autoload -Uz compinit; compinit -D -u"}


@pytest.fixture(name="folder")
def folder_fixture(tmp_path):
    """A folder with a kernixctl that shows its arguments, and with files."""
    program = tmp_path / "bin" / "kernixctl"
    program.parent.mkdir()
    program.write_text(SHOW_ARGUMENTS.format(kernixctl=shlex.quote(str(_environment.program("kernixctl")))))
    program.chmod(0o755)
    (tmp_path / "my kernel.cu").touch()
    (tmp_path / "headers").mkdir()
    (tmp_path / "heap.txt").touch()
    return tmp_path


def typed(shell: str, keys: str, folder: pathlib.Path) -> str:
    """Type `keys` and Enter in a shell with its completion; return the line that the command prints."""
    program = _environment.program("kernixctl")
    script = subprocess.run([program, "completion", shell], check=True, capture_output=True, text=True).stdout
    (folder / "completion").write_text(f"{PREPARE[shell]}\nPS1=\n{script}")
    environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "TERM": "dumb", "HOME": str(folder)}
    parent, child = pty.openpty()
    try:
        with subprocess.Popen(
            SHELLS[shell], cwd=folder, env=environment, stdin=child, stdout=child, stderr=child, start_new_session=True
        ) as process:
            os.close(child)
            os.write(parent, b"source ./completion; echo re''ady\n")
            read_until(parent, "(ready)\r\n")
            os.write(parent, f"kernixctl {keys}\n".encode())
            arguments = read_until(parent, "(<.*>)\r\n")
            os.write(parent, b"exit\n")
            process.wait()
    finally:
        os.close(parent)
    return arguments


def read_until(terminal: int, pattern: str) -> str:
    """Return the group of `pattern` in what the shell prints, once it is there."""
    said = ""
    while (found := re.search(pattern, said)) is None:
        said += os.read(terminal, 4096).decode()
    return found[1]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("keys", "arguments"),
    [
        ("ca\tpu\t--ol\t3d", "<cache><purge><--older-than><3d>"),
        ("compile --pri\tre\t", "<compile><--print><resources>"),
        ("compile --print=re\t", "<compile><--print=resources>"),
        ("compile -o out.so my\t", "<compile><-o><out.so><my kernel.cu>"),
        ("compile -I he\tsub", "<compile><-I><headers/sub>"),
    ],
)
def test_a_shell_completes(shell, keys, arguments, folder):
    assert shutil.which(shell), f"deploy/setup.sh installs {shell}"
    assert typed(shell, keys, folder) == arguments
