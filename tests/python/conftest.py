# SPDX-License-Identifier: Apache-2.0
"""A real kernixd on private paths for all tests of this folder, and what several of them use."""

import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

import kernix
from kernix import _environment
from kernix.loading import connection

HERE = pathlib.Path(__file__).parent

# What a developer's shell may set for compilers, and a load reads.
FOR_COMPILERS = {
    "CXX",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "NVCC_CCBIN",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
}


class Place:
    """A store and a runtime folder: what decides which daemon a process talks to."""

    def __init__(self):
        # Directly under /tmp: the path of a socket must be short.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="kx-", dir="/tmp"))
        self.store = self.root / "store"
        (self.root / "run").mkdir(mode=0o700)

    @property
    def variables(self):
        """Environment variables that lead to this place."""
        return {
            "KERNIX_CACHE_DIR": str(self.store),
            "XDG_RUNTIME_DIR": str(self.root / "run"),
            "KERNIX_HISTORY": "0",  # no load of a test has others built in the background
        }

    @property
    def environment(self):
        """The whole environment of a process that uses this place, and can import our modules."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KERNIX_")}
        path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
        return kept | self.variables | {"PYTHONPATH": path}

    def kernixctl(self, *arguments, check=True):
        """Run kernixctl in this place."""
        return subprocess.run(
            [_environment.program("kernixctl"), *arguments],
            env=self.environment,
            check=check,
            capture_output=True,
            text=True,
        )

    def stats(self):
        """Return the counters of the cache, as kernixctl prints them."""
        return json.loads(self.kernixctl("cache", "stats", "--json").stdout)

    def close(self, keep=False):
        """Stop the daemon and remove all, or say where it is."""
        self.kernixctl("shutdown", check=False)
        if keep:
            print(f"\nkept for a look: {self.root}")
        else:
            shutil.rmtree(self.root, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True, name="place")
def place_fixture(request):
    """The place that all tests share."""
    place = Place()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("KERNIX_") or name in FOR_COMPILERS]:
            patch.delenv(name)
        for name, value in place.variables.items():
            patch.setenv(name, value)
        yield place
        place.close(keep=request.session.testsfailed > 0)


@pytest.fixture(name="own_place")
def own_place_fixture(request):
    """A place of one test alone: with a daemon that may be killed, and counters that start at zero."""
    place = Place()
    before = request.session.testsfailed
    yield place
    place.close(keep=request.session.testsfailed > before)


class Counters:
    """How far the cache's counters moved since :meth:`start`."""

    def __init__(self):
        self.start()

    @staticmethod
    def _now():
        stats = connection.client().stats()
        return {name: getattr(stats, name) for name in ("builds", "hits", "misses", "failures", "cancelled", "entries")}

    def start(self):
        """Count from here."""
        self._before = self._now()

    def __getattr__(self, name):
        return self._now()[name] - self._before[name]


@pytest.fixture(name="counters")
def counters_fixture():
    """Evidence of what the daemon did for a test."""
    return Counters()


@pytest.fixture(name="daemon_and_cache_as_they_were")
def daemon_and_cache_as_they_were_fixture(place):
    """Check that what a test does builds nothing, stores nothing, removes nothing, and that the daemon outlives it."""

    def now():
        pid = connection.client().info().pid
        stats = place.stats()
        return pid, {name: stats[name] for name in ("builds", "hits", "evictions", "entries", "bytes")}

    before = now()
    yield
    assert now() == before


@pytest.fixture(name="brainevent_stand_in")
def brainevent_stand_in_fixture(monkeypatch):
    """A fresh stand-in for brainevent, under its name."""
    from kernix.compat import brainevent as compat

    monkeypatch.syspath_prepend(str(HERE / "stand_in"))
    monkeypatch.delenv("BRAINEVENT_NVCC_PREFER", raising=False)
    yield importlib.import_module("brainevent")
    compat.uninstall()
    for name in [name for name in sys.modules if name.partition(".")[0] == "brainevent"]:
        del sys.modules[name]


@pytest.fixture(name="forget")
def forget_fixture():
    """A function that makes this process ask the daemon again for what it has loaded already."""
    return lambda: kernix.clear_cache("no module of any test")


@pytest.fixture(name="fresh_name")
def fresh_name_fixture(request):
    """A module name that no other test uses."""
    return "".join(c if c.isalnum() else "_" for c in request.node.name)


@pytest.fixture(name="on_cpu")
def on_cpu_fixture():
    """Run JAX on the CPU, also where there is a GPU."""
    import jax

    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.fixture(name="run_python")
def run_python_fixture(place):
    """A function that runs a script of ``scripts/`` in a fresh process and returns its output."""

    def run(script, *arguments, where=place, **environment):
        command = [sys.executable, HERE / "scripts" / script, *arguments]
        result = subprocess.run(command, env=where.environment | environment, capture_output=True, text=True)
        assert result.returncode == 0, f"{script} failed:\n{result.stdout}\n{result.stderr}"
        return result.stdout

    return run


@pytest.fixture(name="restore_cache_dir")
def restore_cache_dir_fixture():
    """Undo ``set_cache_dir`` after the test, and stop the daemons that it made."""
    yield
    if connection.store_override():
        connection.client().shutdown()
        connection.use_store("")
    assert kernix.get_cache_dir()
