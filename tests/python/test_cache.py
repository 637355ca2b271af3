# SPDX-License-Identifier: Apache-2.0
"""What the cache counts, serves and forgets."""

import json
import os
import re

import kernels
import pytest

import kernix
from kernix.loading import connection


def load(name, value=1, **options):
    """Load a tiny module without JAX."""
    return kernix.load_cpp_inline(name, kernels.constant(value), auto_register=False, **options)


def test_second_load_is_a_hit(fresh_name, counters, forget):
    first = load(fresh_name, 101)
    assert (counters.builds, counters.misses, counters.hits) == (1, 1, 0)
    forget()
    again = load(fresh_name, 101)
    assert (counters.builds, counters.misses, counters.hits) == (1, 1, 1)
    assert (first.cache_hit, again.cache_hit) == (False, True)
    assert (first.origin, again.origin) == ("built", "cache")
    assert first.build_ms > 0
    assert again.build_ms == 0
    assert again.path == first.path


def test_a_build_says_why_it_was_needed(fresh_name, forget, tmp_path):
    header = tmp_path / "x.h"
    header.write_text("// one\n")

    def reason(value, **options):
        source = '#include "x.h"\n' + kernels.constant(value)
        paths = [str(tmp_path)]
        module = kernix.load_cpp_inline(fresh_name, source, auto_register=False, extra_include_paths=paths, **options)
        return module.miss_reason

    assert reason(107) == "new source"
    forget()
    assert reason(107) is None
    assert reason(108) == f"source {fresh_name} changed"
    header.write_text("// the second\n")
    assert reason(108) == "header x.h changed"
    assert reason(108, force_rebuild=True) == "force_rebuild"


def test_known_load_asks_nobody(fresh_name, counters):
    first = load(fresh_name, 102)
    counters.start()
    assert load(fresh_name, 102) is first
    assert (counters.misses, counters.hits) == (0, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"extra_cflags": ["-DX"]},
        {"extra_ldflags": ["-Wl,-O1"]},
        {"functions": {"value": ["arg", "ret"]}},
        {"extra_include_paths": ["/"]},
    ],
    ids=str,
)
def test_known_load_depends_on_every_argument(fresh_name, change):
    assert load(fresh_name, 103, **change) is not load(fresh_name, 103)


def test_known_load_depends_on_the_environment(fresh_name, monkeypatch):
    first = load(fresh_name, 104)
    monkeypatch.setenv("CPATH", "/tmp")
    assert load(fresh_name, 104) is not first


def test_name_is_no_part_of_the_key(fresh_name, counters):
    """Except where the source shows it: as the label of diagnostics."""
    first = load(fresh_name, 105)
    same = load(fresh_name, 105, target_prefix="other")
    assert first.key == same.key
    assert counters.builds == 1


def test_fresh_process_is_served_from_the_cache(fresh_name, counters, run_python):
    module = load(fresh_name, 106)
    counters.start()
    said = run_python("load_constant.py", fresh_name, "106")
    assert said.split() == ["True", module.path]
    assert (counters.builds, counters.hits) == (0, 1)


def test_kernixctl_counts_the_same(place, counters, fresh_name):
    before = place.stats()
    load(fresh_name, 107)
    after = place.stats()
    assert after["builds"] - before["builds"] == counters.builds == 1
    assert after["entries"] - before["entries"] == 1


def test_clear_cache_of_a_name(fresh_name, counters):
    load(fresh_name, 108)
    load(fresh_name, 109)
    load(fresh_name + "_other", 110)
    assert kernix.clear_cache(fresh_name) == 2
    assert kernix.clear_cache(fresh_name) == 0
    counters.start()
    load(fresh_name, 108)
    assert counters.builds == 1
    load(fresh_name + "_other", 110)
    assert counters.builds == 1


def test_clear_cache_with_an_empty_name_is_refused():
    with pytest.raises(ValueError, match="empty"):
        kernix.clear_cache("")


def test_cache_dir_of_ones_own(capsys, tmp_path_factory, restore_cache_dir, place, fresh_name):
    shared_daemon = connection.client().info().pid
    shared_store = place.stats()
    folder = tmp_path_factory.mktemp("own") / "new"
    kernix.set_cache_dir(folder)
    assert kernix.get_cache_dir() == str(folder)
    module = load(fresh_name, 111)
    assert module.path.startswith(str(folder))
    load(fresh_name, 112)
    assert connection.client().stats().builds == 2
    kernix.print_diagnostics()
    assert f" {folder}, " in capsys.readouterr().out
    assert connection.client().info().pid != shared_daemon
    assert kernix.clear_cache() == 2
    assert place.stats() == shared_store
    assert json.loads(place.kernixctl("status", "--json").stdout)["pid"] == shared_daemon


def test_cache_dirs_after_the_first_are_read(tmp_path_factory, restore_cache_dir, fresh_name):
    folder = tmp_path_factory.mktemp("layers")
    kernix.set_cache_dir(folder / "image")
    load(fresh_name, 113)
    connection.client().shutdown()
    kernix.set_cache_dir(f"{folder}/own:{folder}/image")
    assert kernix.get_cache_dir() == f"{folder}/own"
    hit = load(fresh_name, 113)
    assert hit.cache_hit
    assert hit.path.startswith(f"{folder}/image/")
    assert load(fresh_name, 114).path.startswith(f"{folder}/own/")
    assert sorted(os.listdir(folder)) == ["image", "own"]


def test_cache_dir_by_default(place):
    assert kernix.get_cache_dir() == str(place.store)


def test_diagnostics(capsys, place):
    kernix.print_diagnostics()
    said = capsys.readouterr().out
    for subject in ("kernixctl", "C++ compiler", "nvcc", "kernixd", "socket", "store", "targets"):
        assert re.search(rf"^(ok|warn|    ) +{re.escape(subject)}  ", said, re.MULTILINE), said
    assert str(place.store) in said


def test_diagnostics_without_a_daemon(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("KERNIX_ADDRESS", f"unix:{tmp_path}/nobody.sock")
    kernix.print_diagnostics()
    assert re.search(r"^fail +socket  ", capsys.readouterr().out, re.MULTILINE)
