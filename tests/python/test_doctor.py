# SPDX-License-Identifier: Apache-2.0
"""``python -m kernix``."""

import os
import re
import subprocess
import sys


def run(own_place, **variables):
    """Run it against a daemon of its own; return its exit code and its lines by subject."""
    done = subprocess.run(
        [sys.executable, "-m", "kernix"],
        env=own_place.environment | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables,
        capture_output=True,
        text=True,
    )
    lines = re.findall(r"^(ok|warn|fail) +(\S+(?: \S+)*)  +(.*)$", done.stdout, re.MULTILINE)
    return done.returncode, {subject: (state, text) for state, subject, text in lines}


def test_ctrl_c_ends_it_without_a_traceback(tmp_path):
    (tmp_path / "jax.py").write_text("raise KeyboardInterrupt")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "kernix"], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_everything_is_examined(own_place):
    """Python's own findings come first, then kernixctl's; a machine without GPU has warnings only."""
    code, findings = run(own_place)
    assert code == 0, findings
    assert list(findings)[:2] == ["Python", "JAX"]
    assert re.search(r"jax \S+, jaxlib \S+, platforms: .*(cpu|cuda|gpu)", findings["JAX"][1])
    assert findings["call"] == ("ok", "add_one([0, 1, 2]) = [1, 2, 3]")
    assert findings["C++ kernel"][0] == "ok"
    assert findings["socket"][0] == "ok"


def test_a_broken_compiler_fails_with_its_name(own_place):
    """The exit code says that something failed, and the line which compiler."""
    code, findings = run(own_place, CXX="/nonexistent/c++")
    assert code == 1
    assert findings["C++ compiler"][0] == "fail"
    assert "/nonexistent/c++" in findings["C++ compiler"][1]
    assert findings["call"][0] == "fail"
