# SPDX-License-Identifier: Apache-2.0
"""`kernixctl metrics`, read by Prometheus' own parser."""

import pathlib
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kernix import _environment

KERNEL = """
#include "brainevent/common.h"
// @BE value ret
void value(BE::Tensor out) { *static_cast<float*>(out.data_ptr()) = 1; }
"""


@pytest.fixture(name="families")
def families_fixture(own_place):
    """Return a function that reads all families of metrics, by name."""

    def read():
        text = own_place.kernixctl("metrics").stdout
        families = list(text_string_to_metric_families(text))
        assert len({family.name for family in families}) == len(families)
        return {family.name: family for family in families}

    return read


def values(family):
    """Return the samples of a family by name and labels, without a histogram's buckets."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


def run_compile(place, source):
    """Return the exit code of `kernixctl compile`, which starts a daemon where there is none."""
    command = [_environment.program("kernixctl"), "compile", str(source)]
    environment = place.environment | {"KERNIXD": _environment.program("kernixd")}
    return subprocess.run(command, env=environment, check=False, capture_output=True).returncode


@pytest.fixture(name="used_daemon")
def used_daemon_fixture(own_place, tmp_path):
    """A daemon that has built, hit and failed once each."""
    good = tmp_path / "good.cpp"
    good.write_text(KERNEL)
    bad = tmp_path / "bad.cpp"
    bad.write_text(KERNEL.replace("float*>", "nonsense*>"))
    for source, code in [(good, 0), (good, 0), (bad, 4)]:
        assert run_compile(own_place, source) == code
    return own_place


def test_without_a_daemon_the_exit_code_says_so(own_place):
    assert own_place.kernixctl("metrics", check=False).returncode == 3


def test_names_types_and_help_follow_prometheus_rules(used_daemon, families):
    for name, family in families().items():
        assert name.startswith("kernix_")
        assert family.documentation.endswith(".")
        assert family.type in ("counter", "gauge", "histogram")
        if family.type == "histogram":
            assert name.endswith("_seconds")
        if family.type == "counter":
            assert all(sample.name == name + "_total" for sample in family.samples)


def test_every_metric_is_documented(own_place, tmp_path):
    page = (pathlib.Path(__file__).parents[2] / "docs" / "reference.md").read_text()
    settings = {"ADDRESS": f"unix://{tmp_path}/nobody", "WRITE": "true", "BUILD_ONCE": "true", "STEPS": "prefer-remote"}
    (tmp_path / "good.cpp").write_text(KERNEL)
    variables = {f"KERNIX_UPSTREAM_{name}": value for name, value in settings.items()}
    command = [_environment.program("kernixctl"), "compile", str(tmp_path / "good.cpp")]
    environment = own_place.environment | variables | {"KERNIXD": _environment.program("kernixd")}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    text = own_place.kernixctl("metrics").stdout
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")]
    assert {"kernix_builds_total", "kernix_upstream_turns_total", "kernix_placed_steps_total"} <= set(names)
    assert [name for name in names if f"`{name}`" not in page] == []


def test_counts_what_happened(used_daemon, families):
    read = families()
    counted = {name: family.samples[0].value for name, family in read.items() if len(family.samples) == 1}
    stats = used_daemon.stats()
    assert stats["builds"] == counted["kernix_builds"] == 1
    assert stats["hits"] == counted["kernix_cache_hits"] == 1
    assert stats["misses"] == counted["kernix_cache_misses"] == 2
    assert stats["failures"] == counted["kernix_failed_builds"] == 1
    assert stats["entries"] == counted["kernix_cache_tags"]
    assert stats["bytes"] == counted["kernix_cache_bytes"]
    assert stats["limit_bytes"] == counted["kernix_cache_limit_bytes"]
    steps = values(read["kernix_step_seconds"])
    assert steps["kernix_step_seconds_count", ("step", "compile")] == 2
    assert values(read["kernix_plain_links"])["kernix_plain_links_total", ("how", "stubs")] == 1
    assert steps["kernix_step_seconds_count", ("step", "link")] == 1
    steps_run = sum(count for (name, *_), count in steps.items() if name == "kernix_step_seconds_count")
    assert values(read["kernix_queue_wait_seconds"])[("kernix_queue_wait_seconds_count",)] == steps_run
    loads = values(read["kernix_load_seconds"])
    assert loads["kernix_load_seconds_count", ("outcome", "built")] == 1
    assert loads["kernix_load_seconds_count", ("outcome", "failed")] == 1
    lookups = values(read["kernix_quick_lookup_seconds"])
    assert lookups["kernix_quick_lookup_seconds_count", ("outcome", "hit")] == 1
    assert lookups["kernix_quick_lookup_seconds_count", ("outcome", "miss")] == 1  # the first load starts the daemon
    assert sum(values(read["kernix_refusals"]).values()) == 0


def test_files_of_a_toolchain_are_looked_at_once_and_then_watched(used_daemon, families, tmp_path):
    def files():
        counted = values(families()["kernix_lookup_files"])
        return [counted["kernix_lookup_files_total", ("way", way)] for way in ("looked_at", "watched")]

    assert files()[0] > 0
    for _ in range(20):  # a mount anywhere on the machine makes it look again
        looked_at, watched = files()
        assert run_compile(used_daemon, tmp_path / "good.cpp") == 0
        if files()[0] == looked_at:
            assert files()[1] > watched
            return
    pytest.fail("each lookup looked at files")


def test_totals_survive_a_restart_and_metrics_begin_anew(used_daemon, families, tmp_path):
    before = used_daemon.stats()
    used_daemon.kernixctl("shutdown")
    assert run_compile(used_daemon, tmp_path / "good.cpp") == 0
    after = used_daemon.stats()
    assert (after["builds"], after["hits"]) == (before["builds"], before["hits"] + 1)
    assert families()["kernix_builds"].samples[0].value == 0
