# SPDX-License-Identifier: Apache-2.0
"""Where the time of a build went: ``mod.trace()``, and ``kernixctl trace``."""

import copy
import dataclasses
import json
import pickle
import sqlite3

import kernels
import pytest

import kernix

SCALE = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
__global__ void scale_kernel(float* x, float by) { x[threadIdx.x] *= by; }
// @BE scale ret stream
void scale(BE::Tensor x, cudaStream_t stream) { scale_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>(), %d); }
"""


def load(name, value, **options):
    """Load a tiny C++ module without JAX."""
    return kernix.load_cpp_inline(name, kernels.constant(value), auto_register=False, **options)


def load_scale(name, by, architectures="9.0", **options):
    """Load a CUDA module without JAX."""
    return kernix.load_cuda_inline(name, SCALE % by, auto_register=False, compute_capability=architectures, **options)


def check_times(trace):
    """Check what holds for the times of every trace of kernixd."""
    assert trace.steps
    assert [step.begin_ms for step in trace.steps] == sorted(step.begin_ms for step in trace.steps)
    for step in trace.steps:
        assert step.how in ("run", "reused", "kernixd")
        assert min(step.begin_ms, step.waited_ms, step.took_ms) >= 0
        assert step.begin_ms + step.waited_ms + step.took_ms <= trace.total_ms + 0.01
        assert (step.peak_memory_bytes > 1 << 20) == (step.how == "run")
    own = [step for step in trace.steps if step.how == "kernixd"]
    assert sum(step.took_ms for step in own) <= trace.total_ms + 0.01
    assert [step.name for step in own[:3]] == ["identify tools", "plan", "look up"]
    assert [step.name for step in own[-3:]] == ["check artifact", "digest headers", "keep artifact"]


def check_chrome(chrome, trace):
    """Check a trace in Chrome's format against the data of which it was made."""
    events = chrome["traceEvents"]
    rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert rows[0] == "kernixd"
    assert [event["args"]["name"] for event in events if event["name"] == "process_name"]
    complete = [event for event in events if event["ph"] == "X"]
    assert {event["ph"] for event in events} == {"X", "M"}
    assert all(isinstance(event[key], int) for event in complete for key in ("ts", "dur", "pid", "tid"))
    runs = [event for event in complete if event["cat"] != "queue"]
    assert [(event["name"], event["cat"]) for event in runs] == [(step.name, step.how) for step in trace.steps]
    for event, step in zip(runs, trace.steps, strict=True):
        assert event["ts"] == round(1000 * (step.begin_ms + step.waited_ms))
        assert event["dur"] == round(1000 * step.took_ms)
        assert event["args"].get("peak_memory_bytes", 0) == step.peak_memory_bytes
        assert rows[event["tid"]] == ("kernixd" if step.how == "kernixd" else step.name)
    waits = [event for event in complete if event["cat"] == "queue"]
    assert len(waits) == sum(step.waited_ms > 0 for step in trace.steps)
    # Events of one row must not overlap, or viewers do not show them.
    for row in rows:
        ends = 0
        for event in sorted((event for event in complete if event["tid"] == row), key=lambda event: event["ts"]):
            assert event["ts"] >= ends - 1
            ends = event["ts"] + event["dur"]


def ways(trace):
    """Return how each step came to its result, by name."""
    return {step.name: step.how for step in trace.steps}


def test_a_cpp_build_says_where_its_time_went(fresh_name, forget):
    module = load(fresh_name, 4401)
    trace = module.trace()
    check_times(trace)
    check_chrome(trace.to_chrome(), trace)
    assert (trace.name, trace.key, trace.left_out) == (module.name, module.key, 0)
    assert ways(trace)["compile"] == "run"
    assert ways(trace)["link"] == "run"
    begin = {step.name: step.begin_ms for step in trace.steps}
    assert begin["plan"] < begin["stage"] < begin["compile"] < begin["link"] < begin["keep artifact"]
    # build_ms counts from the staging of inputs until the entry is in the index.
    staged = next(step.begin_ms + step.took_ms for step in trace.steps if step.name == "stage")
    assert trace.total_ms - staged <= module.build_ms + 1.01

    forget()
    hit = load(fresh_name, 4401)
    assert hit.cache_hit
    assert hit.trace() == trace


def test_a_cuda_build_shows_nvccs_phases_and_what_it_reused(fresh_name):
    # With -lineinfo, kernixd takes the whole runtime header from the first kernel on.
    options = {"extra_cuda_cflags": ["-lineinfo"]}
    first = load_scale(fresh_name, 2, "8.0,9.0", **options).trace()
    check_times(first)
    names = set(ways(first))
    assert {
        "cicc compute_80",
        "ptxas sm_80",
        "cicc compute_90",
        "ptxas sm_90",
        "cudafe++ host",
        "host compile",
        "link",
    } <= names
    assert any(name.startswith("preprocess compute_90") for name in names)
    assert "cicc compute_86" not in names

    more = load_scale(fresh_name, 2, "8.0,8.6,9.0", **options).trace()
    check_times(more)
    check_chrome(more.to_chrome(), more)
    assert ways(more)["cicc compute_86"] == "run"
    assert ways(more)["cicc compute_90"] == "reused"
    assert "\ncicc compute_90 " in str(more)


def test_units_of_their_own_are_told_apart(fresh_name, tmp_path):
    for number in (1, 2):
        (tmp_path / f"unit{number}.cpp").write_text(kernels.constant(4410 + number).replace("value", f"value{number}"))
    module = kernix.load_cpp_dir(str(tmp_path), name=fresh_name, separate=True, auto_register=False)
    assert {"compile unit1.cpp", "compile unit2.cpp"} <= set(ways(module.trace()))


def test_headers_that_the_client_sends_are_part_of_a_build(fresh_name, tmp_path):
    (tmp_path / "sent.h").write_text(f"// {fresh_name}\n")
    source = '#include "sent.h"\n' + kernels.constant(4402)
    module = kernix.load_cpp_inline(fresh_name, source, auto_register=False, extra_include_paths=[str(tmp_path)])
    trace = module.trace()
    check_times(trace)
    assert ways(trace)["receive headers"] == "kernixd"


def test_a_forced_build_replaces_the_trace(fresh_name):
    first = load(fresh_name, 4403).trace()
    again = load(fresh_name, 4403, force_rebuild=True).trace()
    assert again.began_unix_ms > first.began_unix_ms
    assert ways(again)["compile"] == "run"


def test_a_trace_is_plain_data(fresh_name, tmp_path):
    trace = load(fresh_name, 4404).trace()
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.steps[0].name = "other"
    assert copy.deepcopy(trace) == trace == pickle.loads(pickle.dumps(trace))
    assert dataclasses.asdict(trace)["steps"][0]["name"] == trace.steps[0].name
    trace.save(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text()) == trace.to_chrome()
    with pytest.raises(kernix.KernelResourceError, match="cannot write the trace"):
        trace.save(tmp_path / "no" / "trace.json")


def test_the_picture_has_the_terminals_width(fresh_name, monkeypatch):
    trace = load(fresh_name, 4405).trace()
    for width in (70, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        bars = str(trace).split("\n\n")[0].splitlines()
        assert len(bars) == 1 + len(trace.steps)
        assert max(map(len, bars)) <= width


def test_a_trace_is_shown_where_a_notebook_asks(fresh_name):
    IPython = pytest.importorskip("IPython")
    trace = load(fresh_name, 4406).trace()
    assert IPython.lib.pretty.pretty(trace) == str(trace)


def test_a_trace_lives_as_long_as_its_artifact(own_place, monkeypatch):
    for name, value in own_place.variables.items():
        monkeypatch.setenv(name, value)
    module = load("lasting", 4407)
    trace = module.trace()
    own_place.kernixctl("shutdown")
    assert module.trace() == trace, "a daemon that has started again"

    own_place.kernixctl("shutdown")
    with sqlite3.connect(own_place.store / "private" / "index.sqlite") as index:
        assert index.execute("DELETE FROM build_trace").rowcount == 1  # as if another node had built it
    index.close()
    with pytest.raises(kernix.KernelRequestError, match="another node has built it.*force_rebuild"):
        module.trace()
    shown = own_place.kernixctl("trace", module.key[:12], check=False)
    assert shown.returncode == 1
    assert "force_rebuild" in shown.stderr
    assert load("lasting", 4407, force_rebuild=True).trace().steps

    own_place.kernixctl("cache", "purge", "--all")
    with pytest.raises(kernix.KernelRequestError, match=f"no entry of yours with the key {module.key}"):
        module.trace()


def test_kernixctl_draws_prints_and_writes_the_same_trace(fresh_name, place, tmp_path):
    module = load(fresh_name, 4408)
    trace = module.trace()
    picture = place.kernixctl("trace", module.key[:16]).stdout
    assert picture.startswith(f"{fresh_name} {module.key[:12]}, built 20")
    bars = picture.split("\n\n")[0].splitlines()[2:]
    assert [bar.split("  ")[0].strip() for bar in bars] == [step.name for step in trace.steps]

    printed = place.kernixctl("trace", module.key, "--json").stdout
    check_chrome(json.loads(printed), trace)
    assert printed.count("\n") == 1
    file = tmp_path / "trace.json"
    assert place.kernixctl("trace", module.key, "-o", str(file)).stdout == picture
    assert file.read_text() == printed

    refused = place.kernixctl("trace", module.key, "-o", str(tmp_path / "no" / "x"), check=False)
    assert refused.returncode == 1
    assert str(tmp_path / "no") in refused.stderr


def test_kernixctl_refuses_keys_that_no_entry_has(place):
    unknown = place.kernixctl("trace", "0123456789abcdef0", check=False)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "no entry of yours has a key that begins with 0123456789abcdef0" in unknown.stderr
    assert place.kernixctl("trace", "nonsense", check=False).returncode == 2
