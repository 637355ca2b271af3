# SPDX-License-Identifier: Apache-2.0
"""When a load counts as the same as an earlier one of this process. client/load has the tests of single inputs."""

import os
import subprocess
import time

import kernels
import pytest

import kernix
from kernix.loading import module as modules


def age(path):
    """Wait until a change of `path` looks older than a load that begins now."""
    while time.time_ns() - path.stat().st_ctime_ns < 150_000_000:
        time.sleep(0.01)


def load(name, source=kernels.ADD_ONE, **options):
    """Load a module without JAX."""
    return kernix.load_cpp_inline(name, source, auto_register=False, **options)


def test_the_same_is_the_same_module_and_asks_nobody(fresh_name, counters):
    first = load(fresh_name)
    assert load(fresh_name) is first
    assert (counters.builds, counters.hits) == (1, 0)
    other = load(fresh_name, extra_cflags=["-DX"])
    assert other is not first
    assert load(fresh_name) is first
    assert load(fresh_name, extra_cflags=["-DX"]) is other
    assert (counters.builds, counters.hits) == (2, 0)


def test_thousands_of_loads_are_not_kept_for_ever(fresh_name):
    """As of a tuning run. The slots are those of loads that nobody makes: they would take minutes."""
    first = load(fresh_name)
    core, unused = first._code.core, 1 << 40
    for slot in range(unused, unused + 5000):
        modules.module_of(core, slot, None)
        if slot % 1000 == 0:
            assert load(fresh_name) is first
    assert len(modules._modules) == 4096
    assert modules.module_of(core, unused + 4999, None) is modules.module_of(core, unused + 4999, None)
    assert (unused, None) not in modules._modules
    assert load(fresh_name) is first


def test_target_names_are_part_of_a_module(fresh_name):
    module = kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE)
    assert kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE) is module
    other = kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, target_prefix=f"{fresh_name}.b")
    assert (module.add_one.target, other.add_one.target) == (f"{fresh_name}.add_one", f"{fresh_name}.b.add_one")
    assert kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE) is module


def test_relative_folders_are_those_of_the_working_folder(fresh_name, tmp_path, monkeypatch):
    source = '#include "v.h"\n' + kernels.constant("VALUE")
    values = {}
    for value in (1, 2):
        folder = tmp_path / str(value)
        (folder / "inc").mkdir(parents=True)
        (folder / "inc" / "v.h").write_text(f"#define VALUE {value}\n")
        age(folder / "inc" / "v.h")
    for value in (1, 2, 1, 2):
        monkeypatch.chdir(tmp_path / str(value))
        values.setdefault(value, []).append(load(fresh_name, source, extra_cflags=["-Iinc"]))
    assert values[1][0] is values[1][1]
    assert values[2][0] is values[2][1]
    assert values[1][0].content_hash != values[2][0].content_hash


@pytest.mark.parametrize("variable", ["CPATH", "KERNIX_TEST", "CXX"])
def test_variables_that_a_load_reads_count(fresh_name, monkeypatch, counters, variable):
    first = load(fresh_name)
    monkeypatch.setenv("OTHER_VARIABLE", "1")
    assert load(fresh_name) is first
    monkeypatch.setenv(variable, "g++" if variable == "CXX" else "/no/such/folder")
    assert load(fresh_name) is not first
    monkeypatch.delenv(variable)
    assert load(fresh_name) is first
    assert counters.builds == 1


@pytest.mark.parametrize("way", ["a folder that is there", "-I", "-idirafter", "CPATH", "CPLUS_INCLUDE_PATH"])
def test_a_header_that_appears_counts(fresh_name, tmp_path, monkeypatch, way):
    source = '#if __has_include("opt/x.h")\n#include "opt/x.h"\n#else\n#define VALUE 1\n#endif\n'
    source += kernels.constant("VALUE")
    folder, options = tmp_path / "inc", {}
    if way == "a folder that is there":
        (folder / "opt").mkdir(parents=True)
        options = {"extra_include_paths": [folder]}
    elif way.startswith("-"):
        options = {"extra_cflags": [f"{way}{folder}"]}
    else:
        monkeypatch.setenv(way, str(folder))
    (tmp_path / "clock").touch()
    age(tmp_path / "clock")
    first = load(fresh_name, source, **options)
    assert load(fresh_name, source, **options) is first
    (folder / "opt").mkdir(parents=True, exist_ok=True)
    (folder / "opt" / "x.h").write_text("#define VALUE 2\n")
    assert load(fresh_name, source, **options).content_hash != first.content_hash


def write_library(folder, value):
    """Write a static library whose function ``answer`` returns `value`."""
    (folder / "answer.cc").write_text(f'extern "C" float answer() {{ return {value}; }}\n')
    subprocess.run(["g++", "-fPIC", "-c", "answer.cc"], cwd=folder, check=True)
    subprocess.run(["ar", "rcs", "libanswer.a", "answer.o"], cwd=folder, check=True)
    (folder / "clock").touch()
    age(folder / "clock")


SPELLINGS = {
    kernix.load_cpp_inline: ["-L{}", "-L {}", "--library-path={}", "--library-path {}"],
    kernix.load_cuda_inline: ["-L{}", "-L={}", "-library-path {}", "--library-path={}", "-Xcompiler=-L{}"],
}


@pytest.mark.parametrize("loader", SPELLINGS, ids=["cpp", "cuda"])
def test_a_library_that_is_made_again_counts(fresh_name, tmp_path, loader):
    source = 'extern "C" float answer();\n' + kernels.constant("answer()")
    options = {"compute_capability": "sm_90"} if loader is kernix.load_cuda_inline else {}
    flags = [[*spelling.format(tmp_path).split(), "-lanswer"] for spelling in SPELLINGS[loader]]

    def load_all():
        return [loader(fresh_name, source, extra_ldflags=words, auto_register=False, **options) for words in flags]

    write_library(tmp_path, 1)
    first = load_all()
    for module, again in zip(first, load_all(), strict=True):
        assert module is again
    write_library(tmp_path, 2)
    for module, other in zip(first, load_all(), strict=True):
        assert module.content_hash != other.content_hash


def test_a_file_that_a_linker_script_names_counts(fresh_name, tmp_path):
    source = 'extern "C" float answer();\n' + kernels.constant("answer()")
    write_library(tmp_path, 1)
    (tmp_path / "libscript.so").write_text(f"/* GNU ld script */\nINPUT({tmp_path}/answer.o)\n")
    age(tmp_path / "libscript.so")
    flags = {"extra_ldflags": [f"-L{tmp_path}", "-lscript"]}
    first = load(fresh_name, source, **flags)
    assert load(fresh_name, source, **flags) is first
    write_library(tmp_path, 2)
    assert load(fresh_name, source, **flags).content_hash != first.content_hash


def test_a_thin_archive_says_what_to_do(fresh_name, tmp_path):
    write_library(tmp_path, 1)
    subprocess.run(["ar", "rcsT", "libthin.a", "answer.o"], cwd=tmp_path, check=True)
    with pytest.raises(kernix.KernelRequestError, match=r"libthin\.a.*is a thin archive.*by ar without T"):
        load(fresh_name, extra_ldflags=[f"{tmp_path}/libthin.a"])


def test_an_edited_compiler_counts(fresh_name, tmp_path, monkeypatch):
    compiler = tmp_path / "g++"
    source = kernels.constant("VALUE")
    monkeypatch.setenv("CXX", str(compiler))

    def write(value):
        compiler.write_text(f'#!/bin/sh\nexec /usr/bin/g++ -DVALUE={value} "$@"\n')
        compiler.chmod(0o755)
        age(compiler)

    write(1)
    first = load(fresh_name, source)
    assert load(fresh_name, source) is first
    write(2)
    assert load(fresh_name, source).content_hash != first.content_hash


def test_a_purge_ends_it(fresh_name, counters):
    first = load(fresh_name)
    assert kernix.clear_cache(fresh_name) == 1
    assert load(fresh_name) is not first
    assert counters.builds == 2


def test_a_build_directory_is_written_even_if_the_artifact_is_gone(fresh_name, tmp_path):
    path = load(fresh_name).path
    os.unlink(path)
    assert load(fresh_name, build_directory=tmp_path).path == path
    assert (tmp_path / f"{fresh_name}.so").exists()
