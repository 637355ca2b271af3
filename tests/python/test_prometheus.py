# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes `kernixctl web`, and runs the queries of deploy/prometheus and deploy/grafana."""

import contextlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
import test_web
from conftest import Place

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "kernix.rules.yml"
DASHBOARD = json.loads((DEPLOY / "grafana" / "kernix.json").read_text())
PATIENCE = 60  # seconds


def program(name):
    """Return the path of a program of Debian's package prometheus."""
    found = shutil.which(name)
    assert found, f"there is no {name}: make setup installs it"
    return found


class Prometheus:
    """A running server."""

    def __init__(self, port):
        self.api = f"http://127.0.0.1:{port}/api/v1/"

    def ask(self, path, **query):
        """Return the data of an answer, which must be a success."""
        with urllib.request.urlopen(f"{self.api}{path}?{urllib.parse.urlencode(query)}", timeout=PATIENCE) as answer:
            answer = json.load(answer)
        assert answer["status"] == "success", answer
        return answer["data"]

    def value(self, query):
        """Return the value of the one series of a query, or None."""
        result = self.ask("query", query=query)["result"]
        return float(result[0]["value"][1]) if result else None

    def wait_for(self, query, value):
        """Wait until a query has this value."""
        end = time.monotonic() + PATIENCE
        found = "not answered"
        while found != value:
            assert time.monotonic() < end, f"{query} is {found}, not {value}"
            time.sleep(0.1)
            with contextlib.suppress(urllib.error.URLError):
                found = self.value(query)


@pytest.fixture(name="prometheus", scope="module")
def prometheus_fixture(tmp_path_factory):
    """A Prometheus that has scraped a daemon with one build and one hit."""
    folder = tmp_path_factory.mktemp("prometheus")
    place = Place()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for _ in range(2):
        test_web.compile_source(place, folder / "value.cpp", test_web.CPP)
    with test_web.serving(place, "--listen", "127.0.0.1:0") as web:
        target = web.root.removeprefix("http://").rstrip("/")
        (folder / "prometheus.yml").write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(RULES)],
                    "scrape_configs": [{"job_name": "kernix", "static_configs": [{"targets": [target]}]}],
                }
            )
        )
        options = {"config.file": folder / "prometheus.yml", "storage.tsdb.path": folder / "data"}
        options["web.listen-address"] = f"127.0.0.1:{port}"
        command = [program("prometheus"), *(f"--{name}={value}" for name, value in options.items())]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                yield Prometheus(port)
            finally:
                process.terminate()
    place.close()


def test_it_scrapes_all(prometheus):
    prometheus.wait_for('up{job="kernix"}', 1)
    prometheus.wait_for("kernix_builds_total", 1)
    prometheus.wait_for("kernix_cache_hits_total", 1)
    prometheus.wait_for('kernix_load_seconds_count{outcome="built"}', 1)
    (target,) = prometheus.ask("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")


def test_the_alerts_are_well_and_silent(prometheus):
    prometheus.wait_for('up{job="kernix"}', 1)
    (group,) = prometheus.ask("rules")["groups"]
    rules = {rule["name"]: rule for rule in group["rules"]}
    assert len(rules) > 5
    assert {name for name, rule in rules.items() if rule.get("lastError")} == set()
    assert {name: rule["state"] for name, rule in rules.items() if rule["state"] != "inactive"} == {}


def queries_of_dashboard():
    """Return all queries of the dashboard, with values for its variables."""
    queries = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    for name, value in [("$instance", ".*"), ("$__rate_interval", "1m"), ("$__range", "1h")]:
        queries = [query.replace(name, value) for query in queries]
    assert not [query for query in queries if "$" in query]
    return queries


@pytest.mark.parametrize("query", queries_of_dashboard())
def test_the_dashboard_asks_what_prometheus_understands(prometheus, query):
    prometheus.wait_for('up{job="kernix"}', 1)
    prometheus.ask("query", query=query)


def test_annotations_name_settings_that_exist():
    page = (DEPLOY.parent / "docs" / "reference.md").read_text()
    named = set(re.findall(r"`([a-z_]+)`", RULES.read_text()))
    assert "jobs" in named
    assert {name for name in named if f"| `{name}` |" not in page} == set()


def test_queries_name_metrics_that_exist():
    page = (DEPLOY.parent / "docs" / "reference.md").read_text()
    documented = set(re.findall(r"`(kernix_\w+)`", page))
    named = set(re.findall(r"\bkernix_\w+", " ".join([RULES.read_text(), *queries_of_dashboard()])))
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in named}
    assert families
    assert families - documented == set()


ALERTS = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'up{{job="kernix", instance="a"}}', values: '0x30'}}
      - {{series: 'kernix_steps_queued{{instance="a"}}', values: '50x30'}}
      - {{series: 'kernix_steps_running{{instance="a"}}', values: '2x30'}}
      - {{series: 'kernix_steps_queued{{instance="b"}}', values: '5x30'}}
      - {{series: 'kernix_steps_running{{instance="b"}}', values: '0x30'}}
      - {{series: 'kernix_builds_after_freeze_total{{instance="a", outcome="built"}}', values: '0x10 1x20'}}
      - {{series: 'kernix_upstream_breaker_openings_total{{instance="a"}}', values: '0+1x30'}}
      - {{series: 'kernix_cache_evictions_total{{instance="a"}}', values: '0+9x120'}}
      - {{series: 'kernix_builds_total{{instance="a"}}', values: '0+10x120'}}
      - {{series: 'kernix_cache_evictions_total{{instance="b"}}', values: '0+1x120'}}
      - {{series: 'kernix_builds_total{{instance="b"}}', values: '0+10x120'}}
      - {{series: 'kernix_sandbox{{instance="a", rung="landlock"}}', values: '1x120'}}
      - {{series: 'kernix_sandbox{{instance="b", rung="wall"}}', values: '1x120'}}
      - {{series: 'kernix_refusals_total{{instance="a", reason="loads"}}', values: '0+20x120'}}
      - {{series: 'kernix_refusals_total{{instance="a", reason="draining"}}', values: '0+20x120'}}
    alert_rule_test:
      - {{alertname: KernixdDown, eval_time: 4m, exp_alerts: []}}
      - {{alertname: KernixBuildsAfterFreeze, eval_time: 9m, exp_alerts: []}}
    promql_expr_test:
      - expr: count(ALERTS{{alertname="KernixdDown", alertstate="firing", instance="a"}})
        eval_time: 6m
        exp_samples: [{{labels: '{{}}', value: 1}}]
      - expr: count(ALERTS{{alertname="KernixQueueLong", alertstate="firing", instance="a"}})
        eval_time: 15m
        exp_samples: [{{labels: '{{}}', value: 1}}]
      - expr: count(ALERTS{{alertname="KernixQueueLong", instance="b"}})
        eval_time: 15m
        exp_samples: []
      - expr: count(ALERTS{{alertname="KernixBuildsAfterFreeze", alertstate="firing"}})
        eval_time: 12m
        exp_samples: [{{labels: '{{}}', value: 1}}]
      - expr: count by (instance) (ALERTS{{alertname="KernixCacheThrashes", alertstate="firing"}})
        eval_time: 90m
        exp_samples: [{{labels: '{{instance="a"}}', value: 1}}]
      - expr: count by (instance) (ALERTS{{alertname="KernixNotEnclosed", alertstate="firing"}})
        eval_time: 90m
        exp_samples: [{{labels: '{{instance="a"}}', value: 1}}]
      - expr: count by (reason) (ALERTS{{alertname="KernixRefuses", alertstate="firing"}})
        eval_time: 60m
        exp_samples: [{{labels: '{{reason="loads"}}', value: 1}}]
      - expr: count(ALERTS{{alertname="KernixUpstreamBroken", alertstate="firing"}})
        eval_time: 28m
        exp_samples: [{{labels: '{{}}', value: 1}}]
"""


def test_alerts_fire_when_they_should(tmp_path):
    """By promtool, which simulates the time."""
    (tmp_path / "alerts.yml").write_text(ALERTS.format(rules=RULES))
    result = subprocess.run(
        [program("promtool"), "test", "rules", tmp_path / "alerts.yml"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
