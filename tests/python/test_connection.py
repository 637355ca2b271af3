# SPDX-License-Identifier: Apache-2.0
"""Loads where the usual way is closed: no place for a daemon, and a store that this process cannot open."""

import json
import os
import shutil
import subprocess
import sys

import conftest
import kernels
import pytest

import kernix
from kernix import _environment

SCRIPT = conftest.HERE / "scripts" / "load_constant.py"


def load(environment, *before):
    """Load a constant in a fresh process; return its output and what it said on stderr."""
    command = [*before, sys.executable, SCRIPT, "constant", "5"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.split(), result.stderr


def test_where_no_daemon_can_be_started_a_private_one_serves_with_a_warning(own_place):
    (own_place.root / "run" / "kernix").write_text("no folder")
    (hit, path), said = load(own_place.environment)
    assert hit == "False"
    assert path.startswith(str(own_place.store))
    assert path.endswith(".so")
    assert "A private kernixd serves this load alone" in said
    assert str(own_place.root / "run" / "kernix") in said
    (hit, _), _ = load(own_place.environment)
    assert hit == "True"
    assert own_place.kernixctl("status", check=False).returncode == 3


def test_without_a_store_of_its_own_a_private_one_has_libraries_too(own_place):
    (own_place.root / "run" / "kernix").write_text("no folder")
    own_place.store.write_text("no folder")
    (hit, path), said = load(own_place.environment)
    assert (hit, path.startswith(str(own_place.store)), path.endswith(".so")) == ("False", False, True)
    assert "gone when this process ends" in said


def test_a_store_that_a_kernixd_in_another_container_holds_is_read(own_place):
    """Containers that share a cache do not see each other's run folders."""
    if os.geteuid() != 0:
        pytest.skip("hides a folder by a mount: takes root")
    load(own_place.environment)
    hidden = f'mount -t tmpfs none {own_place.root}/run && exec "$@"'
    (own_place.root / "run2").mkdir(mode=0o700)
    elsewhere = own_place.environment | {"XDG_RUNTIME_DIR": str(own_place.root / "run2"), "KERNIX_POLICY": "cached"}
    (hit, path), said = load(elsewhere, "unshare", "--mount", "sh", "-c", hidden, "sh")
    assert (hit, path.startswith(str(own_place.store))) == ("True", True)
    assert "is in use by another kernixd" in said


def test_root_leaves_no_folder_in_a_home_of_somebody_else(own_place):
    home = own_place.root / "home"
    home.mkdir()
    if os.geteuid() != 0:
        pytest.skip("gives a folder to another user: takes root")
    os.chown(home, 65534, 65534)
    environment = own_place.environment | {"KERNIX_CACHE_DIR": str(home / ".cache" / "kernix")}
    refused = subprocess.run([sys.executable, SCRIPT, "c", "5"], env=environment, capture_output=True, text=True)
    assert "Run this as that user, not as root" in refused.stderr
    assert list(home.iterdir()) == []


@pytest.mark.skipif(
    os.geteuid() != 0 and "KERNIX_TEST_AS_ROOT" not in os.environ,
    reason="a daemon that may open what its client may not: takes root",
)
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv takes root's rights over files from the client")
def test_an_artifact_that_the_client_cannot_open_is_streamed(own_place):
    (hit, path), _ = load(own_place.environment)
    assert (hit, path.startswith(str(own_place.store)), path.endswith(".so")) == ("False", True, True)
    daemon = json.loads(own_place.kernixctl("status", "--json").stdout)
    own_place.store.chmod(0)
    cache = own_place.root / "cache"
    environment = own_place.environment | {"KERNIX_ADDRESS": daemon["address"], "KERNIX_CACHE_DIR": str(cache)}
    without_rights = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    (hit, path), _ = load(environment, *without_rights)
    assert (hit, path.startswith(str(cache / "fetched")), path.endswith(".so")) == ("True", True, True)
    own_place.store.chmod(0o700)
    assert own_place.stats()["builds"] == 1


def test_an_nvcc_that_was_installed_since_is_found(tmp_path, monkeypatch, fresh_name):
    wheels = [folder for folder in sys.path if os.path.isdir(f"{folder}/nvidia/cu13")]
    if not wheels or os.path.exists("/usr/local/cuda/bin/nvcc"):
        pytest.skip("needs NVIDIA's wheels, and no toolkit in /usr/local/cuda, where nvcc is always found")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/g++").symlink_to("/usr/bin/g++")
    for variable in ("CUDA_HOME", "CUDA_PATH", "BRAINEVENT_NVCC_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "path", [*(folder for folder in sys.path if folder not in wheels), str(tmp_path)])

    def load():
        return kernix.load_cuda_inline(fresh_name, kernels.VECTOR_ADD, compute_capability="sm_90", auto_register=False)

    with pytest.raises(kernix.KernelToolchainError, match="no nvcc found"):
        load()
    (tmp_path / "nvidia").symlink_to(f"{wheels[0]}/nvidia")
    assert load().function_names == ["vector_add"]


def test_headers_of_a_jaxlib_that_was_installed_since_are_found(monkeypatch):
    monkeypatch.setattr(_environment, "_jax_include_paths", [])
    with monkeypatch.context() as without:
        without.setattr("importlib.util.find_spec", lambda name: None)
        assert _environment.jax_include_paths() == []
    assert _environment.jax_include_paths() != []


def test_a_daemon_that_says_nothing(own_place):
    environment = own_place.environment | {"KERNIXD": shutil.which("false")}
    result = subprocess.run([sys.executable, SCRIPT, "constant", "5"], env=environment, capture_output=True, text=True)
    assert result.returncode != 0
    assert "false ended with exit code 1 (an unexpected failure). It has written nothing to its log, " in result.stderr
    assert "false --oneshot-fd ended with exit code 1 (an unexpected failure) and printed nothing" in result.stderr
