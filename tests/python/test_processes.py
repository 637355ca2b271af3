# SPDX-License-Identifier: Apache-2.0
"""Loads in threads, in forked and spawned children, in many processes at once, under Ctrl-C and under kill -9.

The processes run scripts without JAX: JAX has threads of its own, which a fork does not survive.
"""

import itertools
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import conftest
import kernels
import pytest

import kernix
from kernix.loading import connection

SCRIPTS = conftest.HERE / "scripts"


def load(name, value, **options):
    """Load a tiny module without JAX."""
    return kernix.load_cpp_inline(name, kernels.constant(value), auto_register=False, **options)


def test_threads_that_want_the_same_share_one_build(fresh_name, counters):
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        return load(fresh_name, 201)

    with ThreadPoolExecutor(8) as pool:
        keys = {module.key for module in pool.map(work, range(8))}
    assert len(keys) == 1
    assert counters.builds == 1


def test_threads_that_want_different_things(fresh_name, counters):
    with ThreadPoolExecutor(4) as pool:
        modules = list(pool.map(lambda value: load(fresh_name, value), range(210, 216)))
    assert len({module.key for module in modules}) == 6
    assert counters.builds == 6


def start_endless(where, *arguments, **environment):
    """Start a process whose load does not end; return once its compiler runs."""
    child = subprocess.Popen(
        [sys.executable, SCRIPTS / "load_endless.py", *arguments],
        env=where.environment | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "compiling\n", child.communicate()
    return child


def test_interpreter_runs_while_a_load_waits(own_place):
    """The child says `compiling` from a thread of Python, while its main thread waits in the load."""
    child = start_endless(own_place)
    child.kill()
    child.communicate()


def test_ctrl_c_ends_a_load_and_cancels_its_job(own_place, run_python):
    child = start_endless(own_place)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=60)
    assert error.endswith("KeyboardInterrupt\n")
    assert error.count("  File ") == 1, error  # the script's
    assert child.returncode == -signal.SIGINT
    assert run_python("wait_for_idle.py", where=own_place) == "cancelled 1\n"


def test_ctrl_c_ends_many_loads_and_cancels_their_jobs(own_place, run_python):
    child = start_endless(own_place, "many")
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=60)
    assert error.endswith("KeyboardInterrupt\n")
    assert error.count("  File ") == 1, error
    assert child.returncode == -signal.SIGINT
    assert run_python("wait_for_idle.py", where=own_place) in ("cancelled 1\n", "cancelled 2\n")  # the short one, too


def test_a_fork_during_loads_in_the_background(own_place, run_python):
    # A job for each endless load and for the child's; a limit that ends a test that would fail.
    limits = {"KERNIX_JOBS": "4", "KERNIX_JOB_TIMEOUT": "100s"}
    assert run_python("fork_with_future.py", where=own_place, **limits).splitlines() == [
        "child: KernelDaemonError: the load of endless was under way when this process was forked",
        "child: KernelDaemonError: the load of endless0 and 1 more was under way when this process was forked",
        "child: loaded 7",
        "parent: cancelled",
        "parent: cancelled",
    ]


def test_verbose_shows_a_command_while_it_runs(own_place, run_python):
    child = start_endless(own_place, "verbose", KERNIX_JOB_TIMEOUT="100s")  # which ends a test that would fail
    shown = next((line for line in child.stderr if "-O3" in line), None)
    assert shown is not None
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in error
    assert run_python("wait_for_idle.py", where=own_place) == "cancelled 1\n"


def test_killed_client_cancels_its_job(own_place, run_python):
    child = start_endless(own_place)
    child.kill()
    child.communicate()
    assert run_python("wait_for_idle.py", where=own_place) == "cancelled 1\n"


@pytest.mark.parametrize("way", ["sys.exit", "end of the script"])
def test_exit_while_daemon_threads_load(own_place, run_python, way):
    """The interpreter takes no thread of ours down in the middle: no signal, no abort."""
    for _ in range(5):
        assert run_python("exit_during_load.py", way, where=own_place, PYTHONFAULTHANDLER="1") == "going\n"
    assert own_place.stats()["failures"] == 0


def test_exit_handler_that_waits_for_a_thread_that_calls(own_place, run_python):
    """A function of atexit that is older than kernix waits for a thread; that one gets an error, and so an end."""
    assert run_python("exit_handler_waits.py", where=own_place).splitlines() == [
        "kernix can no longer be called: Python is exiting",
        "joined",
    ]


def test_fork(own_place, run_python):
    """Loads before, inside and after os.fork, and a fork while another thread loads."""
    assert run_python("fork.py", where=own_place).splitlines() == [
        "before False", "child knows it", "child hit True", "child new False", "after hit True", "after new False",
        "fork during a load", "load survived the fork",
    ]  # fmt: skip
    assert own_place.stats()["builds"] == 4


def test_fork_while_another_thread_holds_the_locks(own_place, run_python):
    said = run_python("fork_with_locks_held.py", where=own_place)
    assert said == "child ended with 0 and the parent's locks are held\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(own_place, run_python, method):
    assert run_python("pool.py", method, where=own_place) == "one key, 4 processes\n"
    assert own_place.stats()["builds"] == 1


@pytest.mark.parametrize(
    ("setting", "bound"),
    [("loads", "1"), ("request_bytes", "600KiB")],  # of a load and a half at once
)
def test_loads_above_what_a_user_may_have_at_once_wait(own_place, setting, bound):
    """They come back until there is room, in every process, and none is lost."""
    environment = own_place.environment | {f"KERNIX_MAX_{setting.upper()}_PER_USER": bound}
    children = [
        subprocess.Popen(
            [sys.executable, SCRIPTS / "load_several.py", str(10 * number)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    ends = [(*child.communicate(timeout=300), child.returncode) for child in children]
    assert [(out, code) for out, _, code in ends] == [("4\n", 0)] * 3, ends
    turned_away = own_place.kernixctl("metrics").stdout
    assert f'kernix_refusals_total{{reason="{setting}"}} 0' not in turned_away
    assert f'kernix_refusals_total{{reason="{setting}"}}' in turned_away


def test_loads_above_the_bound_of_connections_wait(own_place):
    """Some of those whom kernixd turns away hear why; the others come back as well."""
    environment = own_place.environment | {"KERNIX_MAX_CONNECTIONS_PER_USER": "3"}
    command = [sys.executable, SCRIPTS / "load_several.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    children = [subprocess.Popen([*command, str(10 * n), "12"], env=environment, **pipes) for n in range(6)]
    ends = [(*child.communicate(timeout=300), child.returncode) for child in children]
    assert [(out, code) for out, _, code in ends] == [("12\n", 0)] * 6, ends


def test_many_processes_at_once_get_one_daemon_and_one_build(own_place):
    processes = 64  # two hundred of C++ are a test of their own (client_start_test.cc)
    gate_read, gate_write = os.pipe()
    command = [sys.executable, SCRIPTS / "load_at_once.py", str(gate_read)]
    children = [
        subprocess.Popen(
            command,
            env=own_place.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=[gate_read],
        )
        for _ in range(processes)
    ]
    os.close(gate_read)
    os.close(gate_write)  # all go
    answers = {child.communicate()[0] for child in children}
    assert len(answers) == 1  # "<process id of the daemon> <digest>"
    assert [child.returncode for child in children] == [0] * processes
    stats = own_place.stats()
    assert stats["builds"] == 1
    assert stats["hits"] + stats["misses"] == processes


@pytest.mark.usefixtures("on_cpu")
def test_kill_9_of_the_daemon_during_fifty_builds(own_place, monkeypatch, forget):
    """Nothing wrong is ever served, and what was acknowledged is still a hit."""
    import jax
    import numpy as np

    for name, value in own_place.variables.items():
        monkeypatch.setenv(name, value)
    kills = set()
    acknowledged = itertools.count(1)
    killing = threading.Lock()

    def kill_daemon():
        with killing:  # what answers here was not killed before
            pid = connection.client().info().pid
            os.kill(pid, signal.SIGKILL)
            kills.add(pid)

    def work(value):
        while True:
            try:
                module = load("killed", value, target_prefix=f"killed{value}")
            except kernix.KernelDaemonError:
                continue  # killed twice under the same load: the client retries once
            if next(acknowledged) % 8 == 4:
                kill_daemon()
            return module

    with ThreadPoolExecutor(6) as pool:
        modules = dict(zip(range(50), pool.map(work, range(50)), strict=True))
    assert len(kills) >= 5

    forget()
    before = connection.client().stats().builds
    x = np.zeros(1, np.float32)
    for value in range(50):
        again = load("killed", value)
        assert again.cache_hit
        assert again.content_hash == modules[value].content_hash
        kernix.register_ffi_target(f"killed.{value}", again, "value")
        assert jax.ffi.ffi_call(f"killed.{value}", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)[0] == value
    assert connection.client().stats().builds == before
