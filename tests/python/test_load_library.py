# SPDX-License-Identifier: Apache-2.0
"""What ``kernixctl compile -o`` and ``build_directory`` write, and ``kernix.load_library`` opens."""

import os
import subprocess
import sys

import kernels
import numpy as np
import pytest

import kernix


@pytest.fixture(name="library")
def library_fixture(place, tmp_path, fresh_name):
    """The path of a library that kernixctl has written."""
    source = tmp_path / f"{fresh_name}.cpp"
    source.write_text(kernels.ADD_ONE)
    place.kernixctl("compile", source, "-o", tmp_path / "given.so")
    return tmp_path / "given.so"


def test_a_library_has_its_functions(library, fresh_name):
    module = kernix.load_library(library)
    assert (module.name, module.platform, module.path) == (fresh_name, "cpu", str(library))
    assert module.origin == kernix.report().loads[-1].origin == "file"
    assert module.arg_spec("add_one") == ["arg", "ret"]
    x = np.arange(3, dtype=np.float32)
    assert np.asarray(module.add_one(x)).tolist() == [1.0, 2.0, 3.0]
    assert f"{fresh_name}.add_one" in kernix.list_registered_targets()
    assert "// @BE add_one" in module.source()


def test_neither_compiler_nor_daemon_nor_source(library, own_place):
    script = """
import sys, numpy, kernix
module = kernix.load_library(sys.argv[1], auto_register=False)
print(numpy.asarray(module.add_one(numpy.ones(1, numpy.float32))))
"""
    library.with_name("source.cpp").unlink(missing_ok=True)
    environment = own_place.environment | {"CXX": "/nonexistent/c++", "KERNIXD": "/nonexistent/kernixd"}
    done = subprocess.run(
        [sys.executable, "-c", script, library], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout == "[2.]\n"
    assert not own_place.store.exists()


def test_the_library_of_a_build_directory(tmp_path, fresh_name):
    loaded = kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, build_directory=tmp_path)
    module = kernix.load_library(tmp_path / f"{fresh_name}.so", target_prefix="other")
    assert (module.name, module.key) == (loaded.name, loaded.key)
    assert module.content_hash != loaded.content_hash
    assert "other.add_one" in kernix.list_registered_targets()


def test_a_cuda_library_says_what_it_is(tmp_path, place, fresh_name):
    source = tmp_path / f"{fresh_name}.cu"
    source.write_text(kernels.VECTOR_ADD)
    site_packages = [f"--site-packages={folder}" for folder in sys.path if os.path.isdir(f"{folder}/nvidia")]
    place.kernixctl("compile", source, "--arch", "8.0,9.0", "-o", tmp_path / "given.so", *site_packages)
    module = kernix.load_library(tmp_path / "given.so")
    assert module.platform == "CUDA"
    assert module.arg_spec("vector_add") == ["arg", "arg", "ret", "stream"]
    assert {kernel.architecture for kernel in module.resources()} == {"sm_80", "sm_90"}


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(kernix.KernelRequestError, match="cannot read the library: .*none.so"):
        kernix.load_library(tmp_path / "none.so")
    assert kernix.report().loads[-1][:2] == ("none", "failed")


def test_other_files_are_refused_before_they_are_opened(tmp_path, fresh_name):
    text = tmp_path / "text.so"
    text.write_text("no library")
    of_the_store = kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE).path
    for path in (text, of_the_store):
        with pytest.raises(kernix.KernelLoadError, match="is no library that `kernixctl compile -o` or"):
            kernix.load_library(path)


def test_a_damaged_library_is_refused(library):
    content = library.read_bytes()
    library.write_bytes(content[: len(content) // 2])
    with pytest.raises(kernix.KernelLoadError, match="is no library that"):
        kernix.load_library(library)
