# SPDX-License-Identifier: Apache-2.0
"""Loads in the background (wait=False), and many loads side by side (load_many)."""

import asyncio
import contextlib
import os
import pickle
import pty
import re
import signal
import subprocess
import threading
import time
import warnings
from concurrent.futures import CancelledError, as_completed
from concurrent.futures import wait as wait_for

import kernels
import pytest

import kernix
from kernix import _environment
from kernix.loading import background, connection, many
from kernix.loading.console import progress_line

BROKEN = "// @BE f ret\nvoid f(BE::Tensor out) { nonsense; }\n"


def spec(name, value, **options):
    """Return a load of load_many()."""
    return {"name": name, "cpp_sources": kernels.constant(value), **options}


def in_background(name, source, **options):
    return kernix.load_cpp_inline(name, source, auto_register=False, wait=False, **options)


def test_a_future_has_the_module():
    futures = [in_background(f"background{i}", kernels.constant(300 + i)) for i in range(3)]
    assert {future.result() for future in as_completed(futures)} == {future.result(timeout=0) for future in futures}
    future = futures[0]
    assert (future.done(), future.progress, future.name, future.exception()) == (True, "done", "background0", None)
    assert repr(future) == "LoadFuture('background0': done)"
    assert future.result() is kernix.load_cpp_inline("background0", kernels.constant(300), auto_register=False)
    assert not future.cancel(), "it has ended"


def test_a_future_registers_its_module():
    import jax
    import numpy as np

    kernix.load_cpp_inline("background_jax", kernels.constant(310), wait=False).result()
    call = jax.ffi.ffi_call("background_jax.value", jax.ShapeDtypeStruct((), np.float32))
    assert call(np.zeros((), np.float32)) == 310


def test_await():
    async def both():
        first = in_background("background_await", kernels.constant(320))
        second = in_background("background_await2", kernels.constant(321))
        return await first, await second

    assert [module.name for module in asyncio.run(both())] == ["background_await", "background_await2"]


def test_what_can_be_refused_at_once_is():
    with pytest.raises(kernix.KernelRequestError, match="name must be a non-empty string"):
        in_background("", kernels.constant(1))
    with pytest.raises(TypeError, match="unexpected keyword argument 'wiat'"):
        kernix.load_cpp_inline("background", kernels.constant(1), wiat=False)
    with pytest.raises(TypeError, match="leave out wait"):
        kernix.watch("x.cpp", wait=False)


def test_an_error_is_the_futures():
    future = in_background("background_broken", BROKEN)
    with pytest.raises(kernix.KernelCompilationError, match="nonsense"):
        future.result()
    assert isinstance(future.exception(), kernix.KernelCompilationError)

    async def wait():
        await future

    with pytest.raises(kernix.KernelCompilationError, match="nonsense"):
        asyncio.run(wait())


def endless(name):
    future = in_background(name, kernels.ENDLESS, extra_cflags=kernels.ENDLESS_FLAGS)
    while "/" not in future.progress:  # "compile (0/3)"
        assert not future.done(), future.exception()
        time.sleep(0.01)
    return future


def assert_ends_when_cancelled(future):
    with pytest.raises(TimeoutError):
        future.result(timeout=0.01)
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result()
    while connection.client().info(start=False).running_jobs:
        pass


def test_a_load_under_way_is_cancelled(fresh_name, counters):
    future = endless(fresh_name)
    assert_ends_when_cancelled(future)
    assert counters.cancelled == 1


def test_a_cancelled_task_cancels_its_load(fresh_name, counters):
    async def impatient():
        await asyncio.wait_for(endless(fresh_name), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    while connection.client().info(start=False).running_jobs:
        pass
    assert counters.cancelled == 1


DOUBTFUL = """
#include "brainevent/common.h"
// @BE f
void f(BE::Tensor x, BE::Tensor y) {}
"""


@pytest.mark.parametrize("way", ["result", "await", "many", "many later"])
def test_warnings_point_to_the_line_that_takes_the_result(way, fresh_name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if way == "many":
            kernix.load_many([{"name": fresh_name, "cpp_sources": DOUBTFUL}], auto_register=False)
        else:
            if way == "many later":
                loads = [{"name": fresh_name, "cpp_sources": DOUBTFUL}]
                future = kernix.load_many(loads, auto_register=False, wait=False)
            else:
                future = in_background(fresh_name, DOUBTFUL)
            wait_for([future])
            assert not caught

            async def wait():
                await future

            asyncio.run(wait()) if way == "await" else future.result()
            future.result()
    assert [str(one.message).partition(":")[0] for one in caught] == [fresh_name]
    assert caught[0].filename == __file__


def test_warnings_come_with_an_error_too(fresh_name):
    loads = [{"name": fresh_name, "cpp_sources": DOUBTFUL}, {"name": f"{fresh_name}_broken", "cpp_sources": BROKEN}]
    future = kernix.load_many(loads, auto_register=False, wait=False)
    with pytest.warns(kernix.KernelWarning, match=f"^{fresh_name}:") as caught, pytest.raises(kernix.KernelBatchError):
        future.result()
    assert (len(caught), caught[0].filename) == (1, __file__)


def test_a_callback_may_take_the_result(fresh_name):
    """Its warnings are not the future's own again."""
    loads = [{"name": fresh_name, "cpp_sources": DOUBTFUL}, {"name": f"{fresh_name}_broken", "cpp_sources": BROKEN}]
    for failed in (False, True):
        future = kernix.load_many(loads[: 1 + failed], auto_register=False, wait=False)
        taken = threading.Event()

        def take(ended, taken=taken):
            with contextlib.suppress(kernix.KernelBatchError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ended.result()
            taken.set()

        future.add_done_callback(take)
        assert taken.wait(60)


def test_where_no_thread_can_be_started(fresh_name, monkeypatch):
    """Threads that there are do the work; without one, it is an error at once, and later loads work."""
    threads = background._Threads(2)
    monkeypatch.setattr(background, "_threads", threads)
    release, done = threading.Event(), threading.Event()

    def refuse(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            kernix.load_many([spec(fresh_name, 440)], auto_register=False, wait=False)
    threads.submit(release.wait)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        threads.submit(done.set)
    assert not done.is_set()
    release.set()
    assert done.wait(60)
    assert in_background(fresh_name, kernels.constant(440)).result().name == fresh_name


# --- load_many() ------------------------------------------------------------------------------------------------------


def test_many_in_order(fresh_name, counters, forget, tmp_path):
    path = tmp_path / f"{fresh_name}_file.cpp"
    path.write_text(kernels.constant(340))
    folder = tmp_path / f"{fresh_name}_folder"
    folder.mkdir()
    (folder / "a.cc").write_text(kernels.constant(341))
    loads = [
        spec(fresh_name, 342),
        path,
        {"directory": folder},
        {"path": [path], "name": f"{fresh_name}_again", "defines": {"X": 1}},
    ]
    modules = kernix.load_many(loads, auto_register=False)
    assert [module.name for module in modules] == [
        fresh_name,
        path.stem,
        folder.name,
        f"{fresh_name}_again",
    ]
    assert [(one.name, one.origin, one.reason) for one in modules.report] == [
        (module.name, "built", "new source") for module in modules
    ]
    assert all(one.build_ms > 0 and one.seconds > 0 for one in modules.report)
    assert str(modules.report[0]).startswith(f"{fresh_name}: built, ")
    assert counters.builds == 4
    again = kernix.load_many(loads[:1], auto_register=False)  # the files have just been written
    assert (again, again.report[0].origin) == (modules[:1], "process")
    forget()
    hits = kernix.load_many(loads, auto_register=False)
    assert [one.origin for one in hits.report] == ["cache"] * 4
    assert kernix.load_many([]) == []


def test_many_are_registered_in_order(fresh_name):
    """Of two that want one name, the later one is refused, however long each takes."""
    with pytest.raises(kernix.KernelBatchError) as caught:
        kernix.load_many([spec(fresh_name, 350, force_rebuild=True), spec(fresh_name, 351)])
    (error,) = caught.value.exceptions
    assert isinstance(error, kernix.KernelRegistrationError)
    assert [module is None for module in caught.value.modules] == [False, True]
    assert caught.value.report[1].origin == "failed"


def test_many_with_errors(fresh_name):
    loads = [
        spec(fresh_name, 360),
        {"name": f"{fresh_name}_broken", "cpp_sources": BROKEN},
        "/nowhere/k.cu",
        {"name": f"{fresh_name}_none", "cpp_sources": "int x;"},
        spec(f"{fresh_name}_other", 361),
    ]
    with pytest.raises(kernix.KernelBatchError) as caught:
        kernix.load_many(loads, auto_register=False)
    error = caught.value
    assert isinstance(error, kernix.KernelError)
    assert [type(one) for one in error.exceptions] == [
        kernix.KernelCompilationError,
        FileNotFoundError,
        kernix.KernelRequestError,
    ]
    assert [module and module.name for module in error.modules] == [
        fresh_name,
        None,
        None,
        None,
        f"{fresh_name}_other",
    ]
    assert [one.origin for one in error.report] == ["built", "failed", "failed", "failed", "built"]
    text = str(error)
    assert "3 of 5 loads failed:" in text
    assert f"load 1, {fresh_name}_broken: KernelCompilationError: " in text
    assert "load 2, /nowhere/k.cu: FileNotFoundError: " in text
    only, rest = error.split(kernix.KernelCompilationError)
    assert (len(only.exceptions), len(rest.exceptions), rest.modules) == (1, 2, error.modules)
    assert isinstance(only, kernix.KernelBatchError)


@pytest.mark.parametrize(
    ("loads", "text"),
    [
        ("k.cu", "loads must be a list"),
        ({"path": "k.cu"}, "loads must be a list"),
        ([{"name": "a"}], "load 0 must have one of cuda_sources, .*; it has none of them"),
        ([{"path": "k.cu", "directory": "x"}], "load 0 must have one of .*; it has path and directory"),
        ([spec("mistake_many", 1, wiat=1)], "unexpected keyword argument 'wiat'"),
        ([spec("mistake_many", 1, wait=False)], "unexpected keyword argument 'wait'\nin"),
        (
            [{"name": "a", "cuda_sources": "", "extra_cflags": []}],
            r"load of CUDA got .* argument 'extra_cflags'. Did you mean extra_ldflags or extra_cuda_cflags\?",
        ),
    ],
)
def test_mistakes_in_a_call_of_load_many(loads, text, counters):
    with pytest.raises(TypeError, match=text):
        kernix.load_many(loads)
    assert counters.builds == 0


def test_many_share_one_progress_line(fresh_name, monkeypatch, capsys):
    class Recorded:
        def __init__(self):
            self.texts = []

        def draw(self, text):
            self.texts.append(text)

        def erase(self):
            pass

        def close(self):
            self.texts.append("closed")

    line = Recorded()
    monkeypatch.setattr(many, "_PROGRESS_AFTER_SECONDS", 0)
    monkeypatch.setattr(many, "_LOOK_SECONDS", 0.001)
    token = progress_line.set(line)
    try:
        kernix.load_many([spec(f"{fresh_name}{i}", 370 + i) for i in range(3)], auto_register=False, verbose=True)
    finally:
        progress_line.reset(token)
    assert line.texts[0].startswith("kernix: [--------------------] 0 of 3 loads done, ")
    assert line.texts[-1] == "closed"
    error = capsys.readouterr().err
    assert error.count("built, ") == 3
    assert "-O3" in error


def test_many_in_the_background(fresh_name, counters):
    future = kernix.load_many([spec(f"{fresh_name}{i}", 400 + i) for i in range(3)], wait=False)
    modules = future.result()
    assert [module.name for module in modules] == [f"{fresh_name}{i}" for i in range(3)]
    assert [one.origin for one in modules.report] == ["built"] * 3
    assert counters.builds == 3
    assert (future.done(), future.progress, future.name) == (True, "done", f"{fresh_name}0 and 2 more")
    assert not future.cancel(), "it has ended"
    assert kernix.load_many([], wait=False).result(timeout=0) == []

    import jax
    import numpy as np

    call = jax.ffi.ffi_call(f"{fresh_name}2.value", jax.ShapeDtypeStruct((), np.float32))
    assert call(np.zeros((), np.float32)) == 402

    async def wait():
        return await kernix.load_many([spec(f"{fresh_name}1", 401)], wait=False)

    assert [one.origin for one in asyncio.run(wait()).report] == ["process"]


def test_many_in_the_background_are_registered_in_order(fresh_name):
    loads = [spec(fresh_name, 410, force_rebuild=True), spec(fresh_name, 411), "/nowhere/k.cu"]
    future = kernix.load_many(loads, wait=False)
    with pytest.raises(kernix.KernelBatchError) as caught:
        future.result()
    refused, missing = caught.value.exceptions
    assert isinstance(refused, kernix.KernelRegistrationError)
    assert isinstance(missing, FileNotFoundError)
    assert [module is None for module in caught.value.modules] == [False, True, True]


def test_many_in_the_background_are_cancelled(fresh_name, counters):
    slow = {"name": f"{fresh_name}_endless", "cpp_sources": kernels.ENDLESS, "extra_cflags": kernels.ENDLESS_FLAGS}
    future = kernix.load_many([slow, "/nowhere/k.cu"], auto_register=False, wait=False)
    while not re.match("1 of 2 loads done, 1 failed, .*_endless: .*/", future.progress):  # "compile (0/3)"
        assert not future.done(), future.exception()
        time.sleep(0.01)
    assert_ends_when_cancelled(future)
    assert counters.cancelled == 1


def test_a_batch_in_the_background_takes_no_thread_but_those_of_its_loads(fresh_name, monkeypatch):
    """Or as many batches as there may be threads would wait for each other."""
    submitted = []

    class Threads(background._Threads):
        def submit(self, work):
            submitted.append(work)
            super().submit(work)

    monkeypatch.setattr(background, "_threads", Threads(1))
    batches = [
        kernix.load_many([spec(f"{fresh_name}{i}", 430), spec(f"{fresh_name}{i}b", 431)], wait=False) for i in range(2)
    ]
    assert [len(batch.result()) for batch in batches] == [2, 2]
    assert len(submitted) == 4


def test_a_batch_that_waits_for_a_thread_is_cancelled_at_once(fresh_name, monkeypatch, counters):
    threads = background._Threads(1)
    monkeypatch.setattr(background, "_threads", threads)
    release = threading.Event()
    threads.submit(release.wait)
    future = kernix.load_many([spec(f"{fresh_name}{i}", 450 + i) for i in range(2)], auto_register=False, wait=False)
    assert future.progress == "0 of 2 loads done"
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result(timeout=0)
    release.set()
    assert in_background(fresh_name, kernels.constant(452)).result().name == fresh_name, "the thread goes on"
    assert counters.builds == 1


def test_reports_are_plain_data(fresh_name):
    (one,) = kernix.load_many([spec(fresh_name, 380)], auto_register=False).report
    assert pickle.loads(pickle.dumps(one)) == one


def test_python_finds_what_kernixctl_has_built(place, tmp_path, fresh_name):
    path = tmp_path / f"{fresh_name}.cpp"
    path.write_text(kernels.constant(390))
    packages = _environment.for_kernixctl()["KERNIX_SITE_PACKAGES"]
    place.kernixctl("build", str(tmp_path), "--site-packages", *packages.split(":"))
    (one,) = kernix.load_many([path]).report
    assert one.origin == "cache"


def test_kernixctl_build_shows_one_line_for_all(place, tmp_path, fresh_name):
    quick = tmp_path / f"{fresh_name}.cpp"
    quick.write_text(kernels.constant(391))
    (tmp_path / f"{fresh_name}_endless.cpp").write_text(kernels.ENDLESS)
    flags = [f"--flag={flag}" for flag in kernels.ENDLESS_FLAGS]
    place.kernixctl("build", str(quick), *flags)  # or it would wait where one compiler runs at a time
    command = [_environment.program("kernixctl"), "build", str(tmp_path)]
    parent, child = pty.openpty()
    with subprocess.Popen([*command, *flags], env=place.environment, stdout=subprocess.PIPE, stderr=child) as process:
        os.close(child)
        shown = b""
        while (line := re.search(rb"kernixctl: ([^\r\n\x1b]*1 done, one: [^\r\n\x1b]*), \d+ s", shown)) is None:
            shown += os.read(parent, 4096)
        process.send_signal(signal.SIGINT)
        built, _ = process.communicate()
    os.close(parent)
    assert process.returncode == 130
    assert built.count(b"\n") == 1, built
    assert line[1].startswith(b"2 modules: "), line[1]
    assert b"\n" not in shown, "it stays on its line"
