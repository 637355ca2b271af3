# SPDX-License-Identifier: Apache-2.0
"""kernix.freeze(): after it, no load is expected to build."""

import contextlib
import re
import warnings

import kernels
import pytest

import kernix
from kernix.loading import report as reports


@pytest.fixture(autouse=True)
def of_this_test(monkeypatch):
    """Begin with no notes, and end without a freeze."""
    monkeypatch.setattr(reports, "_of_process", reports._Loads())
    yield
    kernix.unfreeze()


def load(name, value=1, **options):
    """Load a tiny module without JAX."""
    return kernix.load_cpp_inline(name, kernels.constant(value), auto_register=False, **options)


def builds_after_freeze(place):
    """Return what kernixd has counted, by outcome."""
    text = place.kernixctl("metrics").stdout
    counts = re.findall(r'kernix_builds_after_freeze_total\{outcome="(\w+)"\} (\d+)', text)
    return {outcome: int(count) for outcome, count in counts}


def test_what_is_there_loads_and_the_rest_is_an_error_that_says_why(fresh_name, counters, forget):
    known = load(fresh_name, 701)
    load(fresh_name, 702)
    forget()
    kernix.freeze()
    assert load(fresh_name, 702).origin == "cache"
    assert load(fresh_name, 701).key == known.key
    with pytest.raises(kernix.KernelNotCachedError) as caught:
        load(fresh_name, 701, defines={"N": 2})
    message = str(caught.value)
    assert "this process is frozen: it compiles nothing" in message
    assert "differs: other defines: now also N=2." in message
    when = rf"The process was frozen by {re.escape(__file__)}:\d+ at \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\.$"
    assert re.search(when, message)
    assert counters.builds == 2
    kernix.unfreeze()
    assert load(fresh_name, 701, defines={"N": 2}).origin == "built"


def test_a_warning_instead(fresh_name, counters, monkeypatch):
    kernix.freeze("warn")
    with pytest.warns(kernix.KernelWarning, match=f"{fresh_name}.* built in .*: new source.*build-after-freeze"):
        assert load(fresh_name, 703).origin == "built"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(fresh_name, 703)
        monkeypatch.setenv("KERNIX_WARNINGS", "no-build-after-freeze")
        load(fresh_name, 704)
    assert counters.builds == 2


def test_all_is_counted_here_and_by_kernixd(place, fresh_name, recwarn):
    load(fresh_name, 705)
    before = builds_after_freeze(place)
    with kernix.freeze("count"):
        load(fresh_name, 705)
        load(fresh_name, 706)
        with pytest.raises(kernix.KernelCompilationError):
            kernix.load_cpp_inline(fresh_name, "// @BE f ret\nvoid f(BE::Tensor out) { nonsense; }\n")
    with kernix.freeze("raise"), pytest.raises(kernix.KernelNotCachedError):
        load(fresh_name, 707)
    load(fresh_name, 708)
    assert not recwarn.list
    assert kernix.report().after_freeze == {"built": 1, "failed": 1, "refused": 1}
    after = builds_after_freeze(place)
    assert {outcome: after[outcome] - before[outcome] for outcome in after} == {"built": 1, "failed": 1, "refused": 1}


def test_the_report_says_that_the_process_is_frozen(fresh_name):
    assert kernix.report().frozen == ""
    with kernix.freeze("count"):
        load(fresh_name, 709)
        lines = str(kernix.report()).splitlines()
    assert lines[1].startswith(f"frozen (count) by {__file__}:")
    assert lines[2] == "needed a build after freeze(), 1 built"
    assert "frozen (" not in str(kernix.report())


def test_a_block_ends_as_it_began():
    def action():
        return kernix.report().frozen[:12]

    with kernix.freeze("warn"):
        with contextlib.suppress(ZeroDivisionError), kernix.freeze():
            assert action() == "frozen (rais"
            raise ZeroDivisionError
        assert action() == "frozen (warn"
        kernix.unfreeze()
        assert action() == ""
    assert action() == ""
    kernix.freeze("count")
    with kernix.freeze():
        pass
    assert action() == "frozen (coun"


def test_blocks_of_threads_end_for_themselves():
    blocks = [kernix.freeze("warn"), kernix.freeze(), kernix.freeze("count")]
    for ended, action in ((0, "coun"), (2, "rais"), (1, None)):  # in another order than they began
        blocks[ended].__exit__(None, None, None)
        assert kernix.report().frozen[:12] == (f"frozen ({action}" if action else "")
    with kernix.freeze():
        blocks[0].__exit__(None, None, None)
        assert kernix.report().frozen


def test_a_load_that_asks_for_a_build_gets_it(fresh_name, recwarn):
    for action in ("raise", "warn"):
        kernix.freeze(action)
        load(fresh_name, 710, policy="build", defines={"ACTION": action})
        load(fresh_name, 710, policy="build", force_rebuild=True)
    assert not recwarn.list
    assert kernix.report().after_freeze == {"built": 4}
    kernix.freeze()
    with pytest.raises(kernix.KernelRequestError, match="force_rebuild compiles, and a frozen process forbids"):
        load(fresh_name, 710, force_rebuild=True)


def test_a_freeze_is_stricter_than_the_variable_and_never_laxer(fresh_name, monkeypatch):
    monkeypatch.setenv("KERNIX_POLICY", "build")
    with kernix.freeze(), pytest.raises(kernix.KernelNotCachedError):
        load(fresh_name, 711)
    monkeypatch.setenv("KERNIX_POLICY", "cached")
    for action in ("warn", "count"):
        with kernix.freeze(action), pytest.raises(kernix.KernelNotCachedError):
            load(fresh_name, 711)


def test_loads_in_the_background_count_as_they_were_called(fresh_name):
    early = load(f"{fresh_name}_early", 712, wait=False)
    with kernix.freeze():
        late = load(f"{fresh_name}_late", 713, wait=False)
        with pytest.raises(kernix.KernelBatchError) as caught:
            kernix.load_many([{"name": fresh_name, "cpp_sources": kernels.constant(714)}], auto_register=False)
    assert early.result().origin == "built"
    with pytest.raises(kernix.KernelNotCachedError, match="this process is frozen"):
        late.result()
    assert "this process is frozen" in caught.value.report[0].reason


def test_threads_and_children_are_frozen(run_python, own_place):
    assert run_python("freeze.py", where=own_place).splitlines() == [
        "1 built",
        "1 built",
        "2 refused",
        "3 refused",
        "child {'refused': 1}",
        "4 built",
        "5 refused",
        "parent {'refused': 2}",
    ]


def test_an_unknown_action_is_refused():
    with pytest.raises(ValueError, match='action is \'panic\'. It takes "raise", "warn" and "count"'):
        kernix.freeze("panic")
    assert kernix.report().frozen == ""
