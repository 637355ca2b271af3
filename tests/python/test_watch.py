# SPDX-License-Identifier: Apache-2.0
"""Kernels that are loaded again when somebody edits their files."""

import os
import signal
import sys
import threading
import time

import jax
import kernels
import numpy as np
import pytest

import kernix
from kernix.loading import watch as watching

pytestmark = pytest.mark.usefixtures("on_cpu")

X = np.zeros(1, np.float32)


def until(condition):
    """Wait for what another thread will do."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def save(path, text):
    """Write a file as editors do: under another name first."""
    path.with_suffix(".new").write_text(text)
    os.replace(path.with_suffix(".new"), path)


@pytest.fixture(name="files")
def files_fixture(tmp_path, fresh_name):
    """A kernel that writes its header's VALUE."""
    (tmp_path / "include").mkdir()
    header = tmp_path / "include" / "value.h"
    header.write_text("#define VALUE 1\n")
    source = tmp_path / f"{fresh_name}.cpp"
    source.write_text('#include "value.h"\n' + kernels.constant("VALUE"))
    return source, header


def test_edits_become_live(files, capsys):
    source, header = files
    with kernix.watch(source, extra_include_paths=[header.parent]) as watch:
        first = watch.module
        jitted = jax.jit(lambda x: first.value(jax.numpy.asarray(x)))
        assert jitted(X) == 1
        save(header, "#define VALUE 2\n")
        until(lambda: jitted(X) == 2)
        source.write_text(kernels.constant(3))
        until(lambda: jitted(X) == 3)
        until(lambda: capsys.readouterr().err.startswith(f"kernix: {source.name}: live, "))
        assert (watch.module is first, watch.error) == (False, None)
    source.write_text(kernels.constant(4))
    time.sleep(3 * watching._INTERVAL_S)
    assert jitted(X) == 3


def test_a_failed_load_waits_for_the_next_edit(files, capsys, counters):
    source, header = files
    with kernix.watch(source, extra_include_paths=[header.parent]) as watch:
        first = watch.module
        save(header, "#define VALUE nothing\n")
        until(lambda: watch.error is not None)
        assert "'nothing' was not declared" in str(watch.error)
        until(lambda: "\n" in (said := capsys.readouterr().err) and len(said.splitlines()) == 1)
        time.sleep(3 * watching._INTERVAL_S)
        assert (counters.failures, watch.module is first, first.value(X)[0]) == (1, True, 1)
        header.unlink()
        until(lambda: "value.h: No such file" in str(watch.error))
        save(source.parent / "value.h", "#define VALUE 5\n")
        until(lambda: watch.error is None)
        assert (watch.module.value(X)[0], first.value(X)[0]) == (5, 5)


def test_warnings_name_the_file(files, capsys, recwarn):
    source, header = files
    said = ""
    with kernix.watch(source, extra_include_paths=[header.parent]):
        save(source, kernels.constant(2).replace("const BE::Tensor x", "BE::Tensor x").replace(" arg ret", ""))
        while "live" not in said:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert said.startswith(f"kernix: {source.name}: {source}:4: all arrays of function 'value' are results")
    assert len(said.splitlines()) == 2
    assert [str(one.message) for one in recwarn if one.category is kernix.KernelWarning] == []


def test_folder_with_cuda(tmp_path):
    (tmp_path / "a.cu").write_text(kernels.VECTOR_ADD)
    (tmp_path / "b.cpp").write_text("not part of it")
    with kernix.watch(tmp_path, compute_capability="sm_90", auto_register=False) as watch:
        assert (watch.module.platform, watch.module.function_names) == ("CUDA", ["vector_add"])
        (tmp_path / "c.cu").write_text(kernels.constant(1))
        until(lambda: watch.module.function_names == ["vector_add", "value"])


def test_folder_and_what_is_below(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.cc").write_text(kernels.constant("nothing"))
    (tmp_path / "b.cc").write_text("static const int nothing = 1;")
    patterns = ["*.cc", "**/*.cc"]
    with kernix.watch(tmp_path, file_patterns=patterns, auto_register=False) as watch:
        assert watch.module.value(X)[0] == 1
        save(tmp_path / "b.cc", "")
        until(lambda: watch.error is not None)
        save(tmp_path / "below" / "a.cc", kernels.constant(2))
        until(lambda: watch.error is None)
        assert watch.module.value(X)[0] == 2


def test_first_load_that_fails(tmp_path):
    with pytest.raises(FileNotFoundError):
        kernix.watch(tmp_path / "nothing.cpp")
    (tmp_path / "a.cpp").write_text(kernels.constant("nothing"))
    with pytest.raises(kernix.KernelCompilationError):
        kernix.watch(tmp_path / "a.cpp")
    for option in ("replace", "force_rebuild"):
        with pytest.raises(TypeError, match=f"leave out {option}"):
            kernix.watch(tmp_path / "a.cpp", **{option: True})


def interrupt_while_in(function):
    """Send SIGINT to the main thread once it waits inside `function`."""
    main = threading.main_thread().ident

    def waits():
        frame = sys._current_frames()[main]
        return frame.f_code.co_filename == threading.__file__ and function.__code__ in codes(frame)

    until(waits)
    signal.pthread_kill(main, signal.SIGINT)


def codes(frame):
    """Return what runs in a thread."""
    return [frame.f_code, *codes(frame.f_back)] if frame else []


def test_ctrl_c_ends_the_wait(files):
    source, header = files
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)  # in background jobs, it is ignored
    try:
        watch = kernix.watch(source, extra_include_paths=[header.parent], auto_register=False)
        thread = threading.Thread(target=interrupt_while_in, args=[kernix.Watch.wait], daemon=True)
        thread.start()
        watch.wait()
        thread.join()
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("kernix.watch")]
