# SPDX-License-Identifier: Apache-2.0
"""When a load counts as the same as an earlier one: what is noted of the file system."""

import os
import time

import pytest

from kernix.loading.inputs import Inputs, stamp
from kernix.loading.memo import Memo


def age(path):
    """Return once a change of `path` would look older than a load that begins now."""
    while time.time_ns() - path.stat().st_ctime_ns < 25_000_000:
        pass


@pytest.fixture(name="tree")
def tree_fixture(tmp_path):
    """Two include folders; the second has a header."""
    for folder in ("first/sub", "second/sub"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "second/sub/x.h").write_text("1")
    age(tmp_path / "second/sub/x.h")
    return tmp_path


def inputs_of(tree, *more):
    """Return what a load that finds the header notes."""
    inputs = Inputs([str(path) for path in more])
    inputs.add([str(tree / "first"), str(tree / "second")], [str(tree / "second/sub/x.h")])
    return inputs


def changed(stamps):
    """Whether something is not as it was."""
    return any(stamp(path) != then for path, then in stamps)


def test_nothing_changes_by_itself(tree):
    assert not changed(inputs_of(tree).stamps())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda tree: (tree / "second/sub/x.h").write_text("2"), id="other content"),
        pytest.param(lambda tree: (tree / "second/sub/x.h").unlink(), id="removed"),
        pytest.param(lambda tree: (tree / "first/sub/x.h").touch(), id="hidden by a new one"),
        pytest.param(lambda tree: os.rename(tree / "second", tree / "elsewhere"), id="folder renamed"),
        pytest.param(lambda tree: (tree / "missing").mkdir(), id="include path appears"),
    ],
)
def test_changes_are_seen(tree, change):
    stamps = inputs_of(tree, tree / "missing").stamps()
    change(tree)
    assert changed(stamps)


def test_a_change_during_the_load_is_not_trusted(tree):
    inputs = inputs_of(tree)
    (tree / "second/sub/x.h").write_text("2")
    assert inputs.stamps() is None


def test_a_header_that_is_gone_when_the_load_ends_is_not_trusted(tree):
    inputs = inputs_of(tree)
    (tree / "second/sub/x.h").unlink()
    age(tree / "second/sub")
    assert inputs.stamps() is None


def test_memo_finds_what_it_remembers(tree):
    memo, module = Memo(), object()
    memo.remember("key", module, inputs_of(tree).stamps(), memo.generation)
    assert memo.find("key") is module
    assert memo.find("other") is None
    (tree / "second/sub/x.h").write_text("2")
    assert memo.find("key") is None


def test_a_load_that_began_before_forgetting_is_not_remembered():
    memo = Memo()
    generation = memo.generation
    memo.forget()
    memo.remember("key", object(), [], generation)
    assert memo.find("key") is None
