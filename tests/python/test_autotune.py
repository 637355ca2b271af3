# SPDX-License-Identifier: Apache-2.0
"""kernix.autotune: which variants it drops and why, what it takes for the fastest, and what it remembers."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from unittest.mock import Mock

import conftest
import jax
import jax.numpy as jnp
import kernels
import numpy as np
import pytest

import kernix
from kernix.loading.background import BackgroundFetch
from kernix.loading.load import PreparedLoad
from kernix.tuning import command as tuning_command
from kernix.tuning import driver, fit, measure
from kernix.tuning.memory import Memory, Remembered
from kernix.tuning.result import TuningRow, TuningTable

# Takes as long as WORK says, and is right unless WRONG.
WORK = """
#include <stdexcept>
#include "brainevent/common.h"
#if defined(BROKEN) && BROKEN
#error "this one is broken"
#endif
// @BE twice
void twice(BE::In<float> x, BE::Out<float> y) {
    volatile int64_t done = 0;
    for (int64_t k = 0; k < WORK; ++k) done = done + 1;
    for (int64_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
#if defined(WRONG) && WRONG == 1
    y[1] = 7;
#elif defined(WRONG) && WRONG == 2
    throw std::runtime_error("it does not want to");
#endif
}
"""
X = np.arange(8, dtype=np.float32)
HEAVY = 300_000


def tune(space, args=(X,), **options):
    """Tune WORK."""
    options = {"check": 2 * X} | options
    source = options.pop("source", WORK)
    return kernix.autotune(source, space, list(args), **options)


def outcomes(result):
    return [row.outcome for row in result.table]


@pytest.fixture(autouse=True, name="memory")
def memory_fixture(place, monkeypatch):
    """An empty memory: the files of each test."""
    folder = pathlib.Path(f"{place.store}.tuned")
    for file in folder.glob("*"):
        file.unlink()
    return folder


# --- The search -------------------------------------------------------------------------------------------------------


def test_the_fastest_wins(fresh_name):
    result = tune({"WORK": [HEAVY, 1, 20 * HEAVY]}, name=fresh_name)
    assert result.best == {"WORK": 1}
    assert not result.from_memory
    assert [row.settings["WORK"] for row in result.table] == [HEAVY, 1, 20 * HEAVY]
    assert result.table[1].outcome == "best"
    assert {result.table[0].outcome, result.table[2].outcome} <= {"slower", "cut short"}
    best = result.table[1]
    assert best.low <= best.seconds <= best.high
    assert best.repeats == 30
    assert [row.settings["WORK"] for row in result.table.by_time()] == [1, HEAVY, 20 * HEAVY]
    np.testing.assert_array_equal(result.function(X), 2 * X)
    assert result.module.name == fresh_name


def test_the_function_works_in_jax_and_no_other_variant_is_registered(fresh_name):
    before = set(kernix.list_registered_targets())
    result = tune({"WORK": [1, 2, 3]}, [jnp.asarray(X)], name=fresh_name)
    assert set(kernix.list_registered_targets()) == before
    np.testing.assert_array_equal(jax.jit(result.function)(jnp.asarray(X)), 2 * X)
    (target,) = set(kernix.list_registered_targets()) - before
    assert target.startswith("kernix.")


def test_a_target_prefix_registers_the_winner(fresh_name):
    result = tune({"WORK": [1, 2 * HEAVY]}, name=fresh_name, target_prefix=fresh_name)
    assert [name for name in kernix.list_registered_targets() if fresh_name in name] == [f"{fresh_name}.twice"]
    assert result.module.twice.target == f"{fresh_name}.twice"


def test_a_result_whose_prefix_is_taken_is_kept(fresh_name):
    kernix.load_cpp_inline(fresh_name, WORK, defines={"WORK": 7})
    with pytest.raises(kernix.KernelRegistrationError, match=f"{fresh_name}.twice"):
        tune({"WORK": [1, 2 * HEAVY]}, name=f"{fresh_name}2", target_prefix=fresh_name)
    again = tune({"WORK": [1, 2 * HEAVY]}, name=f"{fresh_name}2", target_prefix=f"{fresh_name}3")
    assert again.from_memory


def test_variants_that_cannot_be_used_do_not_end_the_search(fresh_name):
    result = tune({"WORK": [1], "BROKEN": [1, 0], "WRONG": [0, 1, 2]}, name=fresh_name)
    assert outcomes(result) == ["does not compile"] * 3 + ["best", "wrong", "failed"]
    reasons = [row.reason for row in result.table]
    assert "this one is broken" in reasons[0]
    assert reasons[3] == ""
    assert reasons[4] == "the result has 7.0 at [1], not 2.0"
    assert "it does not want to" in reasons[5]
    assert all(row.seconds is None for row in result.table if row.outcome != "best")
    assert "does not compile" in str(result)
    assert str(result).splitlines()[2].startswith("1     0       0")


def test_nothing_usable_is_an_error_that_counts(fresh_name):
    with pytest.raises(kernix.KernelTuningError) as caught:
        tune({"WORK": [1], "BROKEN": [1, 0], "WRONG": [1, 2]}, name=fresh_name)
    text = str(caught.value)
    assert "none of the 4 variants is usable" in text
    assert "2 did not compile; WORK=1 BROKEN=1 WRONG=1: " in text
    assert "1 gave a wrong result; WORK=1 BROKEN=0 WRONG=1: the result has 7.0 at [1], not 2.0" in text
    assert "1 failed; WORK=1 BROKEN=0 WRONG=2: " in text
    assert len(caught.value.table) == 4
    with pytest.raises(kernix.KernelTuningError, match="the only variant is not usable"):
        tune({"WORK": [1], "WRONG": [1]}, name=fresh_name)


def test_a_variant_that_fails_later_does_not_end_the_search(fresh_name):
    source = """
#include <stdexcept>
// @BE f
void f(BE::In<float> x, BE::Out<float> y) {
    static int calls = 0;
    if (++calls > LAST) throw std::runtime_error("enough");
    y[0] = 1;
}
"""
    result = kernix.autotune(source, {"LAST": [1, 2_000_000_000]}, [X[:1]], check=np.array([1.0]), name=fresh_name)
    assert outcomes(result) == ["failed", "best"]
    assert "enough" in result.table[0].reason


def test_a_finalist_that_fails_leaves_the_others(fresh_name, monkeypatch):
    """Its errors begin in the last round, when nothing compiles any more."""
    source = """
#include <cstdlib>
#include <stdexcept>
// @BE f
void f(BE::In<float> x, BE::Out<float> y) {
    if (FAILS && std::getenv("KERNEL_FAILS") != nullptr) throw std::runtime_error("enough");
    y[0] = 1;
}
"""
    original = measure.measure_in_turn

    def in_turn(*arguments):
        monkeypatch.setenv("KERNEL_FAILS", "1")
        return original(*arguments)

    monkeypatch.setattr("kernix.tuning.search.measure_in_turn", in_turn)
    for limit in ("measure._CUT_AT", "measure._CUT_AT_ONCE_AT", "search._FINALIST_WITHIN"):  # all are finalists
        monkeypatch.setattr(f"kernix.tuning.{limit}", float("inf"))
    result = kernix.autotune(source, {"FAILS": [1, 0]}, [X[:1]], check=np.array([1.0]), name=fresh_name)
    assert outcomes(result) == ["failed", "best"]
    assert "enough" in result.table[0].reason


def test_calls_go_round_copies_of_the_arrays(fresh_name, tmp_path):
    """The kernel notes where its arrays lie; 32 copies of so small ones are the most."""
    source = f"""
#include <cstdio>
// @BE f
void f(BE::In<float> x, BE::Out<float> y) {{
    std::FILE* file = std::fopen("{tmp_path}/addresses", "a");
    std::fprintf(file, "%p %p\\n", static_cast<const void*>(x.data()), static_cast<void*>(y.data()));
    std::fclose(file);
    for (int64_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i] + ZERO;
}}
"""
    for rotate, copies in ((True, 32), (False, 1)):
        (tmp_path / "addresses").unlink(missing_ok=True)
        tune({"ZERO": [0]}, source=source, name=fresh_name, rotate=rotate)
        first, *timed = (tmp_path / "addresses").read_text().splitlines()
        assert len(set(timed)) == copies
        assert len({line.split()[0] for line in timed}) == len({line.split()[1] for line in timed}) == copies
        assert first.split()[0] in {line.split()[0] for line in timed}
        assert all(one != another for one, another in itertools.pairwise(timed)) or not rotate


def test_a_variant_that_writes_nothing_is_wrong(fresh_name):
    """Not taken for right, because the memory has what an earlier variant wrote."""
    source = """
// @BE f
void f(BE::In<float> x, BE::Out<float> y) {
    for (int64_t i = 0; i < x.size() * WRITES; ++i) y[i] = 2 * x[i];
}
"""
    result = tune({"WRITES": [1, 0]}, source=source, name=fresh_name, at_once=1)
    assert outcomes(result) == ["best", "wrong"]
    assert "nan at [0]" in result.table[1].reason


def test_order(fresh_name):
    seen = []

    def check(result):
        seen.append(float(result[0]))

    source = "// @BE f\nvoid f(BE::In<float> x, BE::Out<float> y) { y[0] = A * 10 + B; }\n"
    space = {"A": [1, 2], "B": [3, 4]}
    result = kernix.autotune(source, space, [X[:1]], check=check, at_once=1, name=fresh_name)
    assert seen == [13, 14, 23, 24] == [10 * row.settings["A"] + row.settings["B"] for row in result.table]
    seen.clear()
    kernix.autotune(source, space, [X[:1]], check=check, at_once=1, name=fresh_name, order=lambda s: (s["B"], -s["A"]))
    assert seen == [23, 13, 24, 14]


def test_macros_of_all_kinds(fresh_name):
    source = """
// @BE f
void f(BE::In<float> x, BE::Out<float> y) { REAL sum = A + B + (C ? 1 : 0) + EXTRA; y[0] = sum; }
"""
    values = []
    kernix.autotune(
        source,
        {"A": [-3], "B": [np.int64(2), 0.25], "C": [True, False], "REAL": ["float", "double"]},
        [X[:1]],
        check=lambda result: values.append(float(result[0])),
        defines={"EXTRA": 100},
        name=fresh_name,
    )
    assert sorted(values) == [97.25, 97.25, 98.25, 98.25, 99, 99, 100, 100]


def test_values_of_the_call_need_no_compilation(fresh_name, counters):
    source = """
// @BE f
void f(BE::In<float> x, BE::Out<float> y, int64_t rounds, float scale) {
    volatile int64_t done = 0;
    for (int64_t k = 0; k < rounds; ++k) done = done + 1;
    for (int64_t i = 0; i < x.size(); ++i) y[i] = scale * x[i];
}
"""
    counters.start()
    result = kernix.autotune(
        source,
        {"rounds": [HEAVY, 3]},
        [X],
        launch={"rounds": "rounds"},
        attributes={"scale": 2},
        check=2 * X,
        name=fresh_name,
    )
    assert counters.builds == 1
    assert result.best == {"rounds": 3}
    np.testing.assert_array_equal(result.function(X), 2 * X)
    np.testing.assert_array_equal(result.function(X, scale=3), 3 * X)
    computed = kernix.autotune(
        source, {"rounds": [3]}, [X], launch=lambda s: {"scale": 2, "rounds": s["rounds"]}, check=2 * X, name=fresh_name
    )
    assert computed.best == {"rounds": 3}


def test_several_results_and_a_described_one(fresh_name):
    source = """
// @BE f
void f(BE::In<float> x, BE::Out<float> sum, BE::Out<int> count) { sum[0] = x[0] + x[1] + A; count[0] = A; }
"""
    out = [jax.ShapeDtypeStruct((1,), "float32"), np.zeros(1, np.int32)]
    result = kernix.autotune(source, {"A": [5]}, [X], out=out, check=[np.array([6.0]), np.array([5])], name=fresh_name)
    total, count = result.function(X)
    assert (total[0], count[0]) == (6, 5)
    assert out[1][0] == 0, "arrays of the caller only describe results"


def test_files(fresh_name, tmp_path):
    path = tmp_path / f"{fresh_name}.cpp"
    path.write_text(WORK)
    result = tune({"WORK": [1]}, source=path)
    assert result.name == result.module.name == fresh_name


def test_other_errors_end_the_search(fresh_name, monkeypatch):
    def check(result):
        raise ValueError("a mistake in the check")

    with pytest.raises(ValueError, match="a mistake in the check"):
        tune({"WORK": [1, 2]}, name=fresh_name, check=check)
    monkeypatch.setenv("CXX", "/no/compiler")
    with pytest.raises(kernix.KernelToolchainError):
        tune({"WORK": [1, 2]}, name=fresh_name)


@pytest.mark.parametrize("how", ["freeze", "policy", "variable"])
def test_a_search_that_may_not_compile_ends_and_keeps_nothing(fresh_name, how, monkeypatch):
    tune({"WORK": [HEAVY]}, name=fresh_name)
    if how == "variable":
        monkeypatch.setenv("KERNIX_POLICY", "cached")
    options = {"policy": "cached"} if how == "policy" else {}
    frozen = kernix.freeze() if how == "freeze" else contextlib.nullcontext()
    with frozen, pytest.raises(kernix.KernelNotCachedError):
        tune({"WORK": [1, HEAVY]}, name=fresh_name, **options)
    monkeypatch.delenv("KERNIX_POLICY", raising=False)
    result = tune({"WORK": [1, HEAVY]}, name=fresh_name)
    assert (result.best, result.from_memory) == ({"WORK": 1}, False)


def test_a_build_that_reached_a_limit_is_no_result_to_keep(fresh_name, monkeypatch):
    fetch = PreparedLoad.fetch
    full = kernix.KernelResourceError("the disk is full")
    monkeypatch.setattr(PreparedLoad, "fetch", Mock(side_effect=full))
    with pytest.raises(kernix.KernelTuningError, match="1 could not be built; WORK=1: the disk is full"):
        tune({"WORK": [1]}, name=fresh_name)

    def fetch_some(load):
        if next(numbers) == 1:
            raise full
        return fetch(load)

    numbers = itertools.count()
    monkeypatch.setattr(PreparedLoad, "fetch", fetch_some)
    result = tune({"WORK": [2, 1]}, name=fresh_name, at_once=1)
    assert outcomes(result) == ["best", "not built"]
    assert result.table[1].reason == "the disk is full"
    monkeypatch.setattr(PreparedLoad, "fetch", fetch)
    assert not tune({"WORK": [2, 1]}, name=fresh_name).from_memory


def test_ctrl_c_keeps_what_was_found_out(fresh_name):
    with pytest.raises(KeyboardInterrupt) as caught:
        tune({"WORK": [1], "BROKEN": [1, 0]}, name=fresh_name, check=Mock(side_effect=KeyboardInterrupt), at_once=1)
    (note,) = caught.value.__notes__
    assert note.startswith(f"{fresh_name}: stopped after\nWORK  BROKEN")
    assert "does not compile" in note


def test_ctrl_c_cancels_what_compiles(fresh_name, counters):
    def check(result):
        raise KeyboardInterrupt

    source = f"#if SLOW\n{kernels.ENDLESS}\n#else\n{WORK}\n#endif\n"
    counters.start()
    with pytest.raises(KeyboardInterrupt):
        tune(
            {"SLOW": [1, 0], "WORK": [1]},
            source=source,
            functions=["twice"],
            extra_cflags=kernels.ENDLESS_FLAGS,
            name=fresh_name,
            check=check,
        )
    deadline = time.monotonic() + 20
    while counters.cancelled < 1:  # kernixd waits a second for somebody who wants it, too
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_no_more_loads_at_a_time_than_said(monkeypatch, fresh_name):
    most, made = [], []

    class Counted(BackgroundFetch):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)
            most.append(sum(not each.done() for each in made))

    monkeypatch.setattr("kernix.tuning.search.BackgroundFetch", Counted)
    tune({"WORK": list(range(1, 8))}, name=fresh_name, at_once=2)
    assert max(most) <= 2
    assert len(most) >= 7


def test_progress_names_the_best_so_far(fresh_name, monkeypatch):
    drawn = []
    monkeypatch.setattr("kernix.tuning.search._PROGRESS_AFTER_SECONDS", 0)
    monkeypatch.setattr("kernix.loading.console.SharedLine.show", lambda self, text: drawn.append(text))
    tune({"WORK": [1, HEAVY]}, name=fresh_name, at_once=1)
    assert any("] 1 of 2 variants, best " in text for text in drawn), drawn
    assert "with WORK=1, " in drawn[-1]


# --- What is checked first --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({}, "the space is empty"),
        ({"WORK": []}, r"space\['WORK'\] has no value"),
        ({"2": [1]}, "'2' is not an identifier"),
        ({3: [1]}, "3 is not an identifier"),
        ({"WORK": [None]}, r"space\['WORK'\] has a value of type NoneType; it must be a number, a str or a bool"),
        ({"WORK": [[]]}, r"space\['WORK'\] has a value of type list"),
        ({"WORK": [(1, 2)]}, r"space\['WORK'\] has a tuple, which a macro cannot be"),
        ({"WORK": [1, 2, 1]}, r"space\['WORK'\] has 1 twice"),
        ({"WORK": itertools.count()}, r"space\['WORK'\] has more than 10,000 values"),
        ({"WORK": range(101), "B": range(100)}, "the space has 10,100 variants, and a search takes at most 10,000"),
    ],
)
@pytest.mark.usefixtures("daemon_and_cache_as_they_were")
def test_bad_spaces(space, message):
    with pytest.raises(kernix.KernelRequestError, match=message):
        tune(space)


def test_values_of_numpy_are_plain_numbers(fresh_name):
    space = {"WORK": np.array([1, 2]), "SCALE": [np.float32(0.5), np.float64(0.25)], "FLAG": np.array([True])}
    best = tune(space, name=fresh_name).best
    assert best["SCALE"] in (0.5, 0.25)
    assert best["FLAG"] is True


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"space": [1]}, TypeError, "space must be a dict"),
        ({"space": {"WORK": "12"}}, TypeError, r"space\['WORK'\] must be a list of values"),
        ({"args": X}, TypeError, "args must be a list of the arrays"),
        ({"args": [X, 2.0]}, TypeError, r"args\[1\] is of type float, not an array; what calls take by keyword"),
        ({"launch": 3}, TypeError, "launch must be a dict, or a function"),
        ({"launch": lambda s: 3}, TypeError, "launch returned 3"),
        ({"out": "float32"}, TypeError, r"out 0 is 'float32'; it must have shape and dtype"),
        ({"repeats": 0}, kernix.KernelRequestError, "repeats must be a whole number, at least 1, not 0"),
        ({"at_once": True}, kernix.KernelRequestError, "at_once must be a whole number"),
        ({"language": "rust"}, kernix.KernelRequestError, 'language must be "cuda" or "cpp"'),
        ({"wait": False}, TypeError, "has no wait="),
        ({"defines": ["A"]}, TypeError, "defines must be a dict"),
        ({"functions": ["twice", "thrice"]}, kernix.KernelTuningError, "thrice"),
        ({"args": [X, X]}, TypeError, "takes 1 array"),
        ({"args": [X.astype(np.float64)]}, TypeError, "takes float32"),
        ({"function": "thrice"}, KeyError, "no function 'thrice'"),
        ({"attributes": {"factor": 2}}, TypeError, "has no attribute 'factor'"),
        ({"space": {"WORK": [1], "block": [32]}}, TypeError, "it is a host function"),
        ({"space": {"WORK": [float("inf")]}}, kernix.KernelTuningError, "which C\\+\\+ has no literal for"),
    ],
)
def test_mistakes(fresh_name, parameters, error, message):
    parameters = {"source": WORK, "space": {"WORK": [1]}, "args": [X], "name": fresh_name} | parameters
    with pytest.raises(error, match=message):
        kernix.autotune(**parameters)


def test_several_functions_need_a_name(fresh_name):
    source = """
// @BE f
void f(BE::In<float> x, BE::Out<float> y) { y[0] = A * x[0]; }
// @BE g
void g(BE::In<float> x, BE::Out<float> y) { y[0] = A + x[0]; }
"""
    with pytest.raises(kernix.KernelRequestError, match=f"say which function= to tune: {fresh_name} has f, g"):
        kernix.autotune(source, {"A": [4]}, [X[:1]], name=fresh_name)
    result = kernix.autotune(source, {"A": [4]}, [X[:1] + 3], function="g", check=np.array([7.0]), name=fresh_name)
    assert result.function(X[:1]) == 4


def test_not_inside_of_jit(fresh_name):
    @jax.jit
    def inside(x):
        tune({"WORK": [1]}, [x], name=fresh_name)
        return x

    with pytest.raises(kernix.KernelRequestError, match="call it outside of jax.jit"):
        inside(X)


# --- The check --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "error", "is_right"),
    [
        ("float32", 1e-5, True),
        ("float32", 1e-2, False),
        ("float64", 1e-5, False),
        ("float64", 1e-10, True),
        ("float16", 1e-2, True),
        ("bfloat16", 3e-2, True),
        ("bfloat16", 0.5, False),
        ("complex64", 1e-5, True),
        ("int32", 1, False),
        ("int32", 0, True),
    ],
)
def test_tolerance(dtype, error, is_right):
    from kernix.tuning.check import why_wrong

    expected = np.array([1, -4, 0, 2]).astype(jnp.dtype(dtype))
    result = np.array([1, -4, error, 2]).astype(jnp.dtype(dtype))
    assert (why_wrong(expected, result) == "") == is_right
    assert why_wrong(lambda _: expected[0] == 1, result) == ""


def test_verdicts():
    from kernix.tuning.check import why_wrong

    def fails(result):
        np.testing.assert_array_equal(result, X)

    nan = np.array([np.nan, np.inf])
    assert why_wrong(nan, nan.copy()) == ""
    assert why_wrong(nan, np.array([np.nan, 1.0])) == "the result has 1.0 at [1], not inf"
    assert why_wrong(X, X[:2]) == "the result has the shape (2,), not (8,)"
    assert why_wrong([X, X], (X, X + 1)) == "result 1 has 1.0 at [0], not 0.0"
    assert why_wrong(X, (X, X)) == "check has 1 arrays, and the function has 2 results"
    assert why_wrong(lambda _: np.bool_(False), X) == "the check returned False"
    assert "Mismatched elements: 8 / 8" in why_wrong(fails, X + 1)
    assert why_wrong(lambda _: None, X) == why_wrong(None, X) == ""


# --- Times ------------------------------------------------------------------------------------------------------------


def clock_of(seconds):
    """Return a clock for calls that take `seconds()` each."""
    return lambda call, count: sum(seconds() for _ in range(count))


def test_what_takes_much_longer_is_cut_short():
    assert not measure.measure(None, clock_of(lambda: 1e-3), best=0.9e-3).cut_short
    cut = measure.measure(None, clock_of(lambda: 1e-3), best=0.4e-3)
    assert cut.cut_short
    assert len(cut.samples) == 3
    at_once = measure.measure(None, clock_of(lambda: 1.0), best=0.4e-3)
    assert at_once.cut_short
    assert at_once.samples == [1.0]


def test_measurements():
    timing = measure.measure(None, clock_of(lambda: 1e-6), best=None)
    assert timing.median == pytest.approx(1e-6)
    assert timing.quartiles == pytest.approx((1e-6, 1e-6))
    assert measure.Timing([3.0]).quartiles == (3.0, 3.0)
    assert measure.Timing([1.0, 2.0, 3.0, 4.0, 100.0]).median == 3
    assert measure.Timing([1.0, 2.0, 3.0, 4.0, 100.0]).quartiles == (2, 4)


def test_what_fails_is_measured_no_more():
    clock = clock_of(lambda: 1e-3)

    def failing(call, count):
        if call == "bad":
            raise kernix.KernelCallError("enough")
        return clock(call, count)

    found = measure.measure_in_turn({4: "good", 7: "bad"}, failing, 5)
    assert list(found) == [7, 4], "failures come first"
    assert found[4].samples == pytest.approx([1e-3] * 5)
    assert str(found[7]) == "enough"


def test_after_a_call_that_never_ends_no_other_is_made():
    made = []

    def hanging(call, count):
        made.append(call)
        if call == "hangs" and made.count(call) == 3:
            raise driver.KernelNeverEndsError("has not ended")
        return 1e-3 * count

    found = measure.measure_in_turn({1: "good", 2: "hangs", 3: "later"}, hanging, 30)
    assert next(iter(found)) == 2
    assert made.count("later") == made.count("hangs") - 1
    assert made[-1] == "hangs"


def test_equal_variants_are_tied(fresh_name):
    """The same code under two names."""
    result = tune({"WORK": [1000], "NAME": ["one", "two"]}, name=fresh_name, repeats=100)
    assert sorted(outcomes(result)) in (["best", "tied"], ["best", "slower"])
    times = sorted(row.seconds for row in result.table)
    if "slower" in outcomes(result):  # on a machine that something else has slowed
        assert times[1] > times[0]
    else:
        assert "tied with 1 more" in repr(result)


# --- Memory -----------------------------------------------------------------------------------------------------------


def test_the_second_call_times_nothing(fresh_name, memory, counters):
    first = tune({"WORK": [1, HEAVY]}, name=fresh_name)
    counters.start()
    checked = []
    second = tune({"WORK": [1, HEAVY]}, name=fresh_name, check=checked.append)
    assert second.from_memory
    assert second.best == first.best
    assert second.table == first.table
    assert counters.builds == counters.misses == 0
    assert len(checked) == 1  # the winner alone
    assert "from an earlier search" in repr(second)
    np.testing.assert_array_equal(second.function(X), 2 * X)
    assert len(list(memory.glob("*"))) == 1
    assert not tune({"WORK": [1, HEAVY]}, name=fresh_name, force=True).from_memory


@pytest.mark.parametrize(
    ("check", "outcome"),
    [
        ({"check": 3 * X}, "the result has 2.0 at [1], not 3.0"),  # another expectation
        ({"check": lambda result: result[0] == 1}, "the check returned False"),
        ({"check": 2 * X, "args": [X + 1]}, "the result has 2.0 at [0], not 0.0"),  # other values of the same shape
    ],
)
def test_a_winner_that_was_kept_has_to_pass_the_check_of_this_call(fresh_name, check, outcome):
    assert tune({"WORK": [1]}, name=fresh_name, check=None).best == {"WORK": 1}
    with pytest.raises(kernix.KernelTuningError) as caught:
        tune({"WORK": [1]}, name=fresh_name, **check)
    assert caught.value.table[0].reason == outcome


def test_a_winner_that_the_check_refuses_gives_way_to_one_that_passes(fresh_name):
    search = {"space": {"WRONG": [1, 0]}, "defines": {"WORK": f"(WRONG ? 1 : {HEAVY})"}, "name": fresh_name}
    assert tune(**search, check=None).best == {"WRONG": 1}
    right = tune(**search, target_prefix=fresh_name)  # which the refused one has not taken
    assert (right.best, right.from_memory) == ({"WRONG": 0}, False)
    again = tune(**search)
    assert (again.best, again.from_memory) == ({"WRONG": 0}, True)


@pytest.mark.parametrize(
    "change",
    [
        {"space": {"WORK": [1, 3]}},
        {"args": [X[:4]], "check": None},
        {"source": WORK + "// another\n"},
        {"extra_cflags": ["-O1"]},
        {"attributes": {}, "defines": {"UNUSED": 1}},
        {"order": lambda s: -s["WORK"]},
        {"out": jax.ShapeDtypeStruct((8,), "float32")},
    ],
    ids=lambda change: "-".join(change),
)
def test_what_makes_another_search(fresh_name, change):
    assert not tune({"WORK": [1, 2]}, name=fresh_name).from_memory
    assert tune({"WORK": [1, 2]}, name=fresh_name).from_memory
    assert not tune(**{"space": {"WORK": [1, 2]}, "name": fresh_name} | change).from_memory


def test_what_the_launch_computes_counts(fresh_name):
    source = "// @BE f\nvoid f(BE::In<float> x, BE::Out<float> y, int n) { y[0] = A + n; }\n"

    def once(n):
        return kernix.autotune(source, {"A": [1]}, [X[:1]], launch=lambda s: {"n": n}, name=fresh_name).from_memory

    assert [once(1), once(1), once(2)] == [False, True, False]


def test_a_changed_header_makes_another_search(fresh_name, tmp_path):
    (tmp_path / "factor.h").write_text("#define FACTOR 2\n")
    source = '#include "factor.h"\n// @BE f\nvoid f(BE::In<float> x, BE::Out<float> y) { y[0] = A * FACTOR; }\n'
    options = {"extra_include_paths": [tmp_path], "name": fresh_name}
    assert not kernix.autotune(source, {"A": [1]}, [X[:1]], **options).from_memory
    assert kernix.autotune(source, {"A": [1]}, [X[:1]], **options).from_memory
    (tmp_path / "factor.h").write_text("#define FACTOR 3\n")
    changed = kernix.autotune(source, {"A": [1]}, [X[:1]], **options)
    assert not changed.from_memory
    assert changed.function(X[:1]) == 3


def test_another_machine_searches_itself(fresh_name, monkeypatch):
    tune({"WORK": [1, 2]}, name=fresh_name)
    monkeypatch.setattr("kernix.tuning.memory._describe_cpu", lambda: {"cpu": "Z80", "cores": "1"})
    assert not tune({"WORK": [1, 2]}, name=fresh_name).from_memory


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"table": []}', "null"])
def test_a_damaged_file_counts_as_none(fresh_name, memory, damage):
    tune({"WORK": [1, 2]}, name=fresh_name)
    (file,) = memory.glob("*")
    file.write_text(damage)
    assert not tune({"WORK": [1, 2]}, name=fresh_name).from_memory
    assert tune({"WORK": [1, 2]}, name=fresh_name).from_memory


def test_edited_rows_count_as_none(fresh_name, memory):
    tune({"WORK": [1, 2]}, name=fresh_name)
    (file,) = memory.glob("*")
    kept = json.loads(file.read_text())
    edits = [
        {"about": kept["about"].replace("volatile", "")},
        {"winner": 7},
        {"winner": "1"},
        {"winner": 1 - kept["winner"]},
        {"table": kept["table"][:1]},
    ]
    for edit in edits:
        file.write_text(json.dumps(kept | edit))
        assert not tune({"WORK": [1, 2]}, name=fresh_name).from_memory, edit


def test_a_folder_that_cannot_be_made_costs_only_the_memory(fresh_name, memory):
    if memory.exists():
        memory.rmdir()
    memory.write_text("a file in its place")
    try:
        assert not tune({"WORK": [1]}, name=fresh_name).from_memory
        assert not tune({"WORK": [1]}, name=fresh_name).from_memory
    finally:
        memory.unlink()


def test_results_of_other_stores_are_read(fresh_name, place, memory, monkeypatch):
    """The first store of a list is written, the others are read."""
    tune({"WORK": [1, 2]}, name=fresh_name)
    monkeypatch.setenv("KERNIX_CACHE_DIR", f"{place.store}.second:{place.store}")
    assert tune({"WORK": [1, 2]}, name=fresh_name).from_memory
    assert not tune({"WORK": [1, 2, 3]}, name=fresh_name).from_memory
    assert len(list(pathlib.Path(f"{place.store}.second.tuned").iterdir())) == 1
    assert len(list(memory.iterdir())) == 1


def test_nodes_that_share_a_home_share_results(monkeypatch, tmp_path):
    """The default store is on the node's own disk then."""
    home = tmp_path / "home" / ".cache"
    monkeypatch.delenv("KERNIX_CACHE_DIR")
    monkeypatch.setattr("kernix.tuning.memory.store_override", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    found = Remembered(0, "key", TuningTable([TuningRow(settings={}, outcome="best")]))

    def on_node(name):
        monkeypatch.setattr("kernix.tuning.memory._core.default_store_directory", lambda: str(tmp_path / name))
        return Memory({"search": 1})

    on_node("first").keep(found)
    assert [path.name for path in home.iterdir()] == ["kernix.tuned"]
    assert on_node("second").recall([{}]) == found
    (home / "kernix.tuned").chmod(0o777)  # anybody could write there: each node has its own
    assert on_node("first").recall([{}]) is None
    on_node("first").keep(found)
    assert on_node("second").recall([{}]) is None
    assert on_node("first").recall([{}]) == found


def test_a_folder_that_others_can_write_is_not_read(fresh_name, place, memory, monkeypatch):
    """Else a stranger would choose the variant."""
    monkeypatch.setenv("KERNIX_CACHE_DIR", f"{place.store}.third:{place.store}")
    tune({"WORK": [1, 2]}, name=fresh_name)
    (kept,) = pathlib.Path(f"{place.store}.third.tuned").iterdir()
    memory.mkdir(exist_ok=True)
    kept.rename(memory / kept.name)
    memory.chmod(0o777)
    try:
        assert not tune({"WORK": [1, 2]}, name=fresh_name).from_memory
    finally:
        memory.chmod(0o700)


def test_a_folder_that_was_opened_stays_open(fresh_name, memory):
    memory.mkdir(exist_ok=True)
    memory.chmod(0o755)
    try:
        tune({"WORK": [1]}, name=fresh_name)
        assert [file.stat().st_mode & 0o777 for file in memory.iterdir()] == [0o644]
    finally:
        memory.chmod(0o700)


def test_a_slash_at_the_end_of_a_store_changes_no_folder(fresh_name, place, memory, monkeypatch):
    monkeypatch.setenv("KERNIX_CACHE_DIR", f"{place.store}/")
    tune({"WORK": [1]}, name=fresh_name)
    assert len(list(memory.iterdir())) == 1


def test_a_recording_depends_on_no_earlier_search(fresh_name, tmp_path, monkeypatch):
    tune({"WORK": [1, 2]}, name=fresh_name)
    monkeypatch.setenv("KERNIX_RECORD", str(tmp_path))
    assert not tune({"WORK": [1, 2]}, name=fresh_name).from_memory


def test_the_oldest_results_go(fresh_name, memory, monkeypatch):
    monkeypatch.setattr("kernix.tuning.memory._MOST_FILES", 3)
    memory.mkdir(exist_ok=True)
    for age in range(4):
        (memory / f"{age}.json").write_text("{}")
        os.utime(memory / f"{age}.json", (1000 - age, 1000 - age))
    tune({"WORK": [1]}, name=fresh_name)
    assert sorted(file.name for file in memory.glob("?.json")) == ["0.json", "1.json"]
    assert len(list(memory.glob("*"))) == 3


def test_the_example_takes_its_second_result_from_the_first(place):
    example = conftest.HERE.parents[1] / "python" / "examples" / "autotune.py"

    def run():
        command = [sys.executable, example]
        return subprocess.run(command, env=place.environment, check=True, capture_output=True, text=True).stdout

    assert re.match(r"product: 12 variants, best ROWS=\d+ DEPTH=\d+: .* µs(, tied with \d+ more)?\n", run())
    assert "from an earlier search" in run().splitlines()[0]


# --- CUDA without a GPU -----------------------------------------------------------------------------------------------

SUMS = """
// @BE sums
__global__ void __launch_bounds__(1024) sums(const float* x, float* y, int n) {
    extern __shared__ float dynamic[];
    __shared__ float tile[TILE];
    float own[WIDTH];
    for (int k = 0; k < WIDTH; ++k) own[k] = x[(threadIdx.x * 7 + k * blockIdx.x) % n];
    for (int round = 0; round < n; ++round)
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) own[k] = own[k] * own[(k + 1) % WIDTH] + round;
    float sum = 0;
    for (int k = 0; k < WIDTH; ++k) sum += own[k];
    tile[threadIdx.x % TILE] = sum;
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = tile[(threadIdx.x + 1) % TILE] + dynamic[0];
}
"""


def tune_sums(space, **options):
    return kernix.autotune(SUMS, space, compile_only=True, compute_capability="sm_90", **options)


def test_compile_only(fresh_name):
    space = {"WIDTH": [4, 200], "TILE": [32, 12000, 20000], "block": [128], "shared": [0, 200_000]}
    result = tune_sums(space, launch={"grid": lambda s: 4096 // s["block"]}, name=fresh_name)
    assert outcomes(result) == [
        "compiled",
        "compiled",
        "compiled",
        "does not fit",  # 48,000 bytes and 200,000
        *["does not compile"] * 2,
        *["spills"] * 4,
        *["does not compile"] * 2,
    ]
    assert (result.best, result.module, result.function) == (None, None, None)
    first, fourth, fifth, seventh = (result.table[number] for number in (0, 3, 4, 6))
    assert first.registers > 0
    assert (first.shared_memory, first.spills) == (128, 0)
    assert "248000 bytes of shared memory on sm_90" in fourth.reason
    assert "too much shared data" in fifth.reason
    assert fifth.registers is None
    assert seventh.spills > 0
    assert "sums(float const*, float*, int)" in seventh.reason
    assert f"{fresh_name}: 12 variants, 3 of them usable, none timed" in repr(result)


def test_spills_may_be_allowed(fresh_name):
    result = tune_sums({"WIDTH": [200], "TILE": [32]}, allow_spills=True, name=fresh_name)
    assert outcomes(result) == ["compiled"]


def test_registers_of_a_block_must_fit(fresh_name):
    source = SUMS.replace("__launch_bounds__(1024)", "")
    result = kernix.autotune(
        source,
        {"WIDTH": [100], "TILE": [32], "block": [64, (32, 32)]},
        compile_only=True,
        compute_capability="sm_90",
        name=fresh_name,
    )
    assert outcomes(result) == ["compiled", "does not fit"]
    assert result.table[1].reason.startswith("a block of (32, 32) with ")


def test_timing_cuda_needs_a_gpu(fresh_name):
    if pathlib.Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU: tests/gpu tunes there")
    with pytest.raises(kernix.KernelToolchainError, match="no NVIDIA driver here .* pass compile_only=True"):
        kernix.autotune(SUMS, {"WIDTH": [4], "TILE": [32]}, [X], compute_capability="sm_90", name=fresh_name)


# --- The table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "architectures"),
    [("sm_90", ["sm_90a"]), ("sm_89", ["sm_86"]), ("sm_86", ["sm_86"]), ("sm_100", []), ("sm_80", ["sm_80"])],
)
def test_only_the_code_of_this_gpu_counts(monkeypatch, gpu, architectures):
    built = ("sm_80", "sm_86", "sm_90a")
    kernels = [kernix.KernelResources("k()", "k", name, registers=40, shared_memory=0) for name in built]
    monkeypatch.setattr("kernix._core.gpu_architecture", lambda: gpu)
    assert [kernel.architecture for kernel in fit._of_this_gpu(kernels)] == architectures


# --- The command ------------------------------------------------------------------------------------------------------


def command(*arguments):
    """Run ``python -m kernix tune``."""
    words = [sys.executable, "-m", "kernix", "tune", *arguments]
    return subprocess.run(words, capture_output=True, text=True)


def test_command(tmp_path):
    source = tmp_path / "scale.cpp"
    source.write_text(
        "// @BE scale\nvoid scale(BE::In<float> x, BE::Out<float> y, float by) {\n"
        "  for (int64_t i = 0; i < x.size(); ++i) y[i] = by * TIMES * x[i];\n}\n"
    )
    done = command(str(source), "--space", "TIMES=1,2,wrong", "--arg", "float32[8,4]", "--attribute", "by=2.5")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^scale: 3 variants, best TIMES=[12]: ", done.stdout)
    assert "does not compile" in done.stdout
    by_kernixctl = [str(pathlib.Path(sys.executable).with_name("kernixctl")), "tune", str(source)]
    words = [*by_kernixctl, "--space", "TIMES=1,2", "--compile-only"]
    (tmp_path / "kernix").mkdir()
    (tmp_path / "kernix" / "__init__.py").write_text("raise SystemExit('code of the folder')")
    compiled = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert "scale: 2 variants, 2 of them usable, none timed" in compiled.stdout
    missing = command(str(tmp_path / "none.cpp"), "--space", "TIMES=1")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "none.cpp" in missing.stderr.splitlines()[-1]


def test_ctrl_c_prints_the_table_so_far(monkeypatch, tmp_path, capsys):
    stop = KeyboardInterrupt()
    stop.__notes__ = ["the table"]
    monkeypatch.setattr(tuning_command, "autotune", Mock(side_effect=stop))
    (tmp_path / "kernel.cpp").write_text("void f();\n")
    assert tuning_command.tune([str(tmp_path / "kernel.cpp"), "--space", "A=1"]) == 130
    assert capsys.readouterr().out == "the table\n"


def test_messages_name_options_of_the_command(monkeypatch, tmp_path, capsys):
    error = kernix.KernelToolchainError("pass compile_only=True, or compute_capability")
    monkeypatch.setattr(tuning_command, "autotune", Mock(side_effect=error))
    (tmp_path / "kernel.cpp").write_text("void f();\n")
    assert tuning_command.tune([str(tmp_path / "kernel.cpp"), "--space", "A=1"]) == 1
    assert "pass --compile-only, or --arch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--space", "A=1", "--arg", "flot32[8]"], 2, "'flot32[8]' is not of the form float32[1024,1024]"),
        (["--space", "A=1", "--arg", "float32(8)"], 2, "'float32(8)' is not of the form"),
        (["--space", "A"], 2, "'A' is not of the form NAME=VALUE"),
        (["--space", "A=1", "--launch", "grid=1+"], 2, "'1+' is not a Python expression"),
        (["--space", "A=1", "--launch", "grid=x"], 1, "--launch: 'x' fails with A=1: name 'x' is not defined"),
        (["--space", "A=1", "--space", "A=2"], 2, "--space names A twice"),
        (["--space", "A=1", "--attribute", "b=1", "--attribute", "b=2"], 2, "--attribute names b twice"),
        (["--space", "A=1", "--arg", "float32[10000000000000]"], 1, "Unable to allocate"),
        (["--space", "A=1", "--arg", "float32[1]", "--arg", "float32[2]"], 1, "needs --out, the shape"),
        (["--space", "A=1", "none.cpp"], 2, "unrecognized arguments: none.cpp"),
    ],
)
def test_mistakes_of_the_command(tmp_path, arguments, code, message):
    (tmp_path / "kernel.cpp").write_text("// @BE f\nvoid f(BE::In<float> x, BE::Out<float> y) {}\n")
    done = command(str(tmp_path / "kernel.cpp"), *arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_table_as_text_and_html():
    rows = [
        kernix.TuningRow({"A": 1, "B": "<"}, "slower", 2e-3, 1e-3, 3e-3, 5),
        kernix.TuningRow({"A": 2, "B": "y"}, "best", 2e-6, 1e-6, 3e-6, 30),
        kernix.TuningRow({"A": 3, "B": "z"}, "wrong", reason="so <wrong>"),
    ]
    table = kernix.TuningTable(rows)
    assert str(table).splitlines() == [
        "A  B  time  quartiles",
        "2  y  2 µs  1 µs to 3 µs  best",
        "1  <  2 ms  1 ms to 3 ms  slower",
        "3  z                      wrong: so <wrong>",
    ]
    assert "<td>&lt;</td>" in table._repr_html_()
    assert "wrong: so &lt;wrong&gt;" in table._repr_html_()
    assert str(kernix.TuningTable()) == "no variants"
    assert str(kernix.TuningTable(rows[1:2] * 50)).splitlines()[-1] == "... and 10 more"


def test_plot():
    drawn = {}

    class Axes:
        def errorbar(self, places, middle, yerr, fmt):
            drawn.update(places=list(places), middle=middle, yerr=yerr)

        def set_xlabel(self, text):
            drawn["x"] = text

        def set_ylabel(self, text):
            drawn["y"] = text

    axes = Axes()
    rows = [kernix.TuningRow({"A": 1}, "best", 2e-6, 1e-6, 4e-6, 5), kernix.TuningRow({"A": 2}, "wrong", reason="no")]
    assert kernix.TuningTable(rows).plot(axes) is axes
    assert drawn["places"] == [0]
    assert drawn["middle"] == pytest.approx([2])
    assert drawn["yerr"] == [pytest.approx([1]), pytest.approx([2])]


@pytest.mark.parametrize(
    ("seconds", "text"), [(3e-9, "3 ns"), (1.5e-6, "1.5 µs"), (0.25, "250 ms"), (12.345, "12.3 s"), (4000, "4000 s")]
)
def test_shown_seconds(seconds, text):
    from kernix.tuning.result import shown_seconds

    assert shown_seconds(seconds) == text
