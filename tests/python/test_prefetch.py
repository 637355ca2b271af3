# SPDX-License-Identifier: Apache-2.0
"""`kernixctl record` on one node, `kernixctl prefetch` on another: two stores, each with a daemon of its own."""

import base64
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import conftest
import kernels
import pytest

from kernix import _environment

SCRIPTS = pathlib.Path(__file__).parent / "scripts"
HEADER = "#pragma once\n#define ANSWER 42\n// not UTF-8: \udce4\n"
WITH_HEADER = kernels.constant("ANSWER").replace("// @BE", '#include "answer.h"\n// @BE')


class Node(conftest.Place):
    """A machine: kernixctl and Python there see its own store only."""

    def run(self, *command, **variables):
        """Run a command and return what it said."""
        environment = self.environment | {"KERNIXD": _environment.program("kernixd")} | variables
        return subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)

    def ctl(self, *arguments, **variables):
        """Run kernixctl."""
        return self.run(_environment.program("kernixctl"), *arguments, **variables)

    def record(self, manifest, *command):
        """Record a command that succeeds."""
        done = self.ctl("record", "-o", manifest, "--", *command)
        assert done.returncode == 0, done.stderr
        return done


@pytest.fixture(name="nodes")
def nodes_fixture(request):
    """Two of them."""
    both = (Node(), Node())
    before = request.session.testsfailed
    yield both
    for node in both:
        node.close(keep=request.session.testsfailed > before)


@pytest.fixture(name="program")
def program_fixture(tmp_path):
    """A program whose processes load six kernels, one of them twice, one with a header that no other node has."""
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "answer.h").write_bytes(HEADER.encode("utf-8", "surrogateescape"))
    return [sys.executable, SCRIPTS / "load_in_processes.py", tmp_path / "inc"]


def lines_of(manifest):
    """Return the lines of a manifest."""
    return [json.loads(line) for line in manifest.read_text().splitlines()]


NAMES = ["child", "forked", "killed", "parent", "spawned", "with_header"]


def test_what_one_node_loads_another_one_has(nodes, program, tmp_path):
    here, there = nodes
    manifest = tmp_path / "kernels.manifest"
    done = here.record(manifest, *program)
    assert "6 loads recorded" in done.stderr
    assert [line["load"]["request"]["name"] for line in lines_of(manifest) if "load" in line] == NAMES

    refused = there.run(*program, KERNIX_POLICY="cached")
    assert refused.returncode != 0
    assert "KernelNotCachedError" in refused.stderr

    ready = tmp_path / "ready"
    fetched = there.ctl("prefetch", manifest, "--ready-file", ready, "--json")
    assert fetched.returncode == 0, fetched.stderr
    reports = [json.loads(line) for line in fetched.stdout.splitlines()]
    assert sorted(report["name"] for report in reports) == NAMES
    assert all(report["key"] == report["recorded_key"] for report in reports)
    assert not any(report["cache_hit"] for report in reports)
    assert "6 modules: 6 built, in " in fetched.stderr
    assert ready.read_text() == "6 modules are there\n"

    served = there.run(*program, KERNIX_POLICY="cached")
    assert served.returncode == 0, served.stderr
    assert there.stats()["builds"] == 6

    again = there.ctl("prefetch", manifest, "--policy", "cached")
    assert again.returncode == 0
    assert "6 modules: 6 from the cache, in " in again.stderr


def test_a_manifest_is_the_same_each_time(nodes, program, tmp_path):
    here, there = nodes
    cold, warm, elsewhere = tmp_path / "cold", tmp_path / "warm", tmp_path / "elsewhere"
    here.record(cold, *program)
    here.record(warm, *program)
    there.record(elsewhere, *program)
    assert cold.read_bytes() == warm.read_bytes() == elsewhere.read_bytes()
    texts = [line["text"] for line in lines_of(cold) if "text" in line]
    assert len(texts) == 5  # three modules have one source
    assert sum("other" in text for text in texts) == 1


def test_what_is_missing_is_named_and_nothing_is_ready(nodes, program, tmp_path):
    here, there = nodes
    manifest, ready = tmp_path / "kernels.manifest", tmp_path / "ready"
    here.record(manifest, *program)
    ready.write_text("of an earlier run")
    done = there.ctl("prefetch", manifest, "--ready-file", ready, "--policy", "cached")
    assert done.returncode == 6
    assert "6 modules: 6 missing, in " in done.stderr
    for name in NAMES:
        assert f'module "{name}"' in done.stderr
    assert not ready.exists()
    assert there.stats()["builds"] == 0


def test_another_header_on_the_other_node_is_a_miss_there(nodes, program, tmp_path):
    here, there = nodes
    manifest = tmp_path / "kernels.manifest"
    here.record(manifest, *program)
    assert there.ctl("prefetch", manifest).returncode == 0
    (tmp_path / "inc" / "answer.h").write_text("#define ANSWER 43\n")
    done = there.run(*program, KERNIX_POLICY="cached")
    assert done.returncode != 0
    assert "differs: header answer.h changed" in done.stderr


def test_a_cache_that_is_too_small_is_not_ready(nodes, program, tmp_path):
    here, there = nodes
    manifest, ready = tmp_path / "kernels.manifest", tmp_path / "ready"
    here.record(manifest, *program)
    limit = 2 * max(path.stat().st_size for path in (here.store / "artifacts").glob("*.so"))
    done = there.ctl("prefetch", manifest, "--ready-file", ready, "-j", "1", KERNIX_CACHE_LIMIT_BYTES=str(limit))
    assert done.returncode == 6
    assert "cache_limit_bytes" in done.stderr
    assert not ready.exists()


def with_source(manifest, name, source):
    """Give a recorded load another source."""
    lines = [line for line in lines_of(manifest) if "text" not in line or line["text"].get("utf8") != source]
    lines.insert(1, {"text": {"utf8": source}})
    (load,) = [line["load"] for line in lines if "load" in line and line["load"]["request"]["name"] == name]
    load["source_digest"] = [base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()]
    lines[0]["kernix_manifest"]["texts"] = sum("text" in line for line in lines)
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_kernel_that_does_not_compile_here_does_not_keep_the_others(nodes, program, tmp_path):
    here, there = nodes
    manifest = tmp_path / "kernels.manifest"
    here.record(manifest, *program)
    with_source(manifest, "child", kernels.constant("nonsense"))
    done = there.ctl("prefetch", manifest)
    assert done.returncode == 4
    assert "6 modules: 5 built, 1 failed, in " in done.stderr
    assert "kernixctl: child:\n" in done.stderr
    assert "'nonsense' was not declared" in done.stderr


def test_another_key_than_the_recorded_one_is_said(nodes, program, tmp_path):
    """As on a node with other compilers."""
    here, there = nodes
    manifest = tmp_path / "kernels.manifest"
    here.record(manifest, *program)
    loads = [line["load"] for line in lines_of(manifest) if "load" in line]
    (key,) = [load["key"] for load in loads if load["request"]["name"] == "child"]
    manifest.write_text(manifest.read_text().replace(key, "0" * 64))
    done = there.ctl("prefetch", manifest)
    assert done.returncode == 0
    assert f"{key}, recorded as {'0' * 64}\n" in done.stdout
    assert done.stdout.count("recorded as") == 1


def test_recorded_commands_keep_their_exit_code(nodes, tmp_path):
    here, _ = nodes
    manifest = tmp_path / "kernels.manifest"

    def record(*command):
        return here.ctl("record", "-o", manifest, "--", *command)

    assert record("sh", "-c", "exit 7").returncode == 7
    assert lines_of(manifest) == [{"kernix_manifest": {"version": 1}}]
    assert record("sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    assert record("/no/such/program").returncode == 127
    assert record(tmp_path).returncode == 126
    assert "no/such/folder" in here.ctl("record", "-o", "/no/such/folder/x", "--", "false").stderr
    assert here.ctl("record", "-o", manifest).returncode == 2
    said = record("sh", "-c", "echo out; echo err >&2; cat", "--flag")
    assert (said.returncode, said.stdout) == (0, "out\n")
    assert said.stderr.startswith("err\n")


def test_signals_reach_the_recorded_command(nodes, tmp_path):
    here, _ = nodes
    manifest = tmp_path / "kernels.manifest"
    script = "trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done"
    command = [_environment.program("kernixctl"), "record", "-o", manifest, "--", "sh", "-c", script]
    with subprocess.Popen(command, env=here.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGINT)  # as if not from a terminal: the command is not told
        process.terminate()
        assert process.wait(timeout=60) == 9
    assert manifest.exists()


def test_a_manifest_that_cannot_be_written_is_an_error_of_its_own(nodes, tmp_path):
    here, _ = nodes
    folder = tmp_path / "folder"
    folder.mkdir()
    done = here.ctl("record", "-o", folder / "kernels.manifest", "--", "rmdir", folder)
    assert done.returncode == 1
    assert "kernels.manifest" in done.stderr


def test_loads_go_on_where_they_cannot_be_recorded(nodes, tmp_path):
    here, _ = nodes
    source = tmp_path / "value.cpp"
    source.write_text(kernels.constant(653))
    done = here.ctl("compile", source, KERNIX_RECORD=str(tmp_path / "none"))
    assert done.returncode == 0
    assert "loads are not recorded: " in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: this is not a manifest"),
        ("kernels\n", ":1: this is not a manifest"),
        ('{"kernix_manifest": {"version": 2}}\n', ":1: this manifest has version 2"),
        ('{"kernix_manifest": {"version": 1, "loads": 2}}\n', ":1: the manifest ends after"),
        ('{"kernix_manifest": {"version": 1}}\n{"load": {"a": 1}}\n', ":2: no line of a manifest"),
    ],
    ids=["empty", "other", "newer", "cut", "damaged"],
)
def test_bad_manifests_are_named_with_their_line(content, message, nodes, tmp_path):
    manifest = tmp_path / "kernels.manifest"
    manifest.write_text(content)
    ready = tmp_path / "ready"
    ready.write_text("")
    done = nodes[0].ctl("prefetch", manifest, "--ready-file", ready)
    assert done.returncode == 1
    assert f"kernixctl: {manifest}{message}" in done.stderr
    assert not ready.exists()


def test_a_manifest_that_is_not_there_is_named(nodes, tmp_path):
    done = nodes[0].ctl("prefetch", tmp_path / "none")
    assert done.returncode == 1
    assert str(tmp_path / "none") in done.stderr


def test_without_a_daemon_there_is_one_error(nodes, program, tmp_path):
    here, there = nodes
    manifest = tmp_path / "kernels.manifest"
    here.record(manifest, *program)
    done = there.ctl("--address", f"unix:{tmp_path}/nobody", "prefetch", manifest)
    assert done.returncode == 3
    assert done.stderr.count("nobody") == 1
    assert os.listdir(there.root) == ["run"]
