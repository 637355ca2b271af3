# SPDX-License-Identifier: Apache-2.0
"""kernix.report(): what the loads of a process were."""

import kernels
import pytest

import kernix
from kernix.loading import report as reports
from kernix.loading.report import LoadReport


@pytest.fixture(name="noted")
def noted_fixture(monkeypatch):
    """What a process of its own would have noted."""
    monkeypatch.setattr(reports, "_of_process", reports._Loads())
    return reports._of_process


def test_counts_loads_by_origin_also_of_many_threads_and_anew_in_a_child(run_python, own_place):
    lines = run_python("report.py", where=own_place).splitlines()
    assert lines[0] == "nothing []"
    assert lines[1] == "all [('built', 1), ('cache', 1), ('failed', 1), ('process', 4001)]"
    assert lines[2] == "[('report_a', 'built', True), ('report_a', 'cache', False), ('report_b', 'failed', False)]"
    assert lines[3].startswith("4004 loads in ")
    assert any("KernelCompilationError: " in line for line in lines[4:])
    assert lines[-1] == "child [('process', 1)]"


def test_a_load_is_noted_as_a_batch_reports_it(noted, fresh_name):
    loads = [{"name": f"{fresh_name}{value}", "cpp_sources": kernels.constant(value)} for value in (641, 642)]
    batch = kernix.load_many(loads, auto_register=False)
    assert sorted(kernix.report().loads) == sorted(batch.report)
    assert kernix.report().builds == 2
    assert kernix.report().build_ms == sum(module.build_ms for module in batch)
    assert kernix.report().seconds == pytest.approx(sum(one.seconds for one in batch.report))


def test_what_it_holds_is_bounded(noted):
    for i in range(5000):
        reports.note(LoadReport(f"m{i}", "cache", 0.5, reason="x" * 10_000))
        reports.note(LoadReport(f"m{i}", "process", 0.5))
    report = kernix.report()
    assert (len(report.loads), report.loads[0].name) == (4096, "m904")
    assert (report.counts, report.seconds) == ({"cache": 5000, "process": 5000}, 5000)
    assert max(len(one.reason) for one in report.loads) <= 500


def test_text_and_html_show_the_loads_that_took_longest(noted):
    for i in range(30):
        reports.note(LoadReport(f"<m{i}>", "built", i, 1000 * i, "new source"))
    lines = str(kernix.report()).splitlines()
    assert lines[0] == "30 loads in 435.00 s, 30 built"
    assert lines[2].split() == ["module", "origin", "seconds", "build", "ms", "why"]
    assert lines[3].split() == ["<m29>", "built", "29.00", "29000", "new", "source"]
    assert lines[-1] == "and 10 that took less time"
    html = kernix.report()._repr_html_()
    assert "<td>&lt;m29&gt;</td>" in html
    assert "m9&gt" not in html
