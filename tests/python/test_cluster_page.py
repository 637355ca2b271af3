# SPDX-License-Identifier: Apache-2.0
"""docs/cluster.md takes an administrator from nothing to two nodes that share: its commands and files, as it has them.

Folders and hosts have other names here, and both nodes and the engine are this machine.
"""

import contextlib
import re
import subprocess

import conftest
import engines
import grpc
import kernels
import pytest
import test_docs

from kernix import _environment

# nginx, for one user and below one folder.
MAIN = """
daemon off; pid {folder}/nginx.pid; error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t;
  uwsgi_temp_path {folder}/t; scgi_temp_path {folder}/t;
  {server}
}}
"""


def on_page(*info):
    """Return the one block of the page that begins with this behind its fence."""
    (text,) = [
        block.text for block in test_docs.blocks(info[0]) if block.page.name == "cluster.md" and block.info == [*info]
    ]
    return text


class Front(engines.Engine):
    """The page's engine: buildbox-casd behind nginx, with the page's certificates.

    `writers`: with what the page has nginx say about who may write. `executes`: with workers, which are this machine.
    """

    def __init__(self, writers=False, executes=False):
        super().__init__()
        self.executes = executes
        self.helpers = contextlib.ExitStack()
        self.certificates = self.folder / "etc"
        self.certificates.mkdir()
        subprocess.run(["sh", "-ec", self.moved(on_page("sh", "engine"))], check=True, capture_output=True)
        server = on_page("nginx")
        if writers:
            server, count = re.subn(r"^}$", on_page("nginx", "writers") + "}", server, flags=re.MULTILINE)
            assert count == 1
        pem = [(self.certificates / name).read_bytes() for name in ("ca.pem", "node1.key", "node1.pem")]
        credentials = grpc.ssl_channel_credentials(*pem)
        for _ in range(5):  # another process may take a port that was free a moment ago
            self.ports = {"8980": str(engines.free_port()), "8981": str(engines.free_port())}
            self.start_casd()
            (self.folder / "nginx.conf").write_text(MAIN.format(folder=self.folder, server=self.moved(server)))
            nginx = [engines.ENGINES / "nginx", "-e", "stderr", "-p", self.folder, "-c", self.folder / "nginx.conf"]
            if self.run(nginx, f"localhost:{self.ports['8980']}", credentials):
                return
            self.helpers.close()
        raise AssertionError(self.log())

    def start_casd(self):
        """Start the engine by the page's command, with less room."""
        (command,) = re.findall(r"^buildbox-casd .*", on_page("sh", "casd"), re.MULTILINE)
        words = self.moved(command).replace("--quota-high=40G", "--quota-high=1G --reserved=0").split()
        if self.executes:
            runner = self.folder / "run"
            runner.write_text(f'#!/bin/sh\necho run >>{self.folder}/runs\nexec {engines.RUNNER} "$@"\n')
            runner.chmod(0o755)
            words[1:1] = [f"--buildbox-run={runner}", "--shutdown-deadline=2"]
            words[1:1] = [f"--runner-arg={mount}" for mount in engines.TOOLS_IN_SANDBOX]
        with (self.folder / "log").open("ab") as log:
            environment = {"PATH": f"{engines.ENGINES / 'buildbox'}:/usr/bin:/bin", "HOME": str(self.folder)}
            casd = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], stdout=log, stderr=log, env=environment)
        self.helpers.callback(casd.wait)
        self.helpers.callback(casd.terminate if self.executes else casd.kill)  # killed, it would leave its runners

    def runs(self):
        """Return how many commands workers have run."""
        return (self.folder / "runs").read_text().count("\n")

    def moved(self, text):
        """Return a text of the page with this machine's folders and names."""
        places = {"/etc/kernix-engine": self.certificates, "/etc/kernix": self.certificates}
        places |= {"/var/cache/engine": self.folder / "cache", "engine.example": "localhost"}
        for place, here in places.items():
            text = text.replace(place, str(here))
        for port, here in getattr(self, "ports", {}).items():
            text = re.sub(rf"\b{port}\b", here, text)
        return text

    def end(self):
        """End nginx, which killed would leave its workers, and the engine."""
        self.channel.close()
        self.process.terminate()
        self.process.wait()
        self.helpers.close()


class Node(conftest.Place):
    """A node with the page's config file."""

    def __init__(self, front, name):
        super().__init__()
        self.config = self.root / "kernixd.toml"
        text = front.moved(on_page("toml", "nodes")).replace("node1.", f"{name}.")
        if front.executes:
            text = text.replace("write = true", 'read = false\nwrite = false\nsteps = "remote"')
        self.config.write_text(text)
        self.kernixd = None

    def daemon(self, *options):
        """Return the command of a kernixd with this config."""
        return [_environment.program("kernixd"), "--config", self.config, *options]

    def start(self):
        """Start kernixd, and return when it answers."""
        with (self.root / "log").open("ab") as log:
            self.kernixd = subprocess.Popen(self.daemon(), env=self.environment, stderr=log)
        while self.kernixctl("status", check=False).returncode != 0:
            assert self.kernixd.poll() is None, (self.root / "log").read_text()

    def stop(self):
        """End kernixd: everything is written then."""
        self.kernixd.terminate()
        self.kernixd.wait()

    def close(self, keep=False):
        if self.kernixd is not None:
            self.stop()
        super().close(keep)


@pytest.fixture(name="cluster")
def cluster_fixture(request):
    """A function that makes the page's engine and its two nodes."""
    before = request.session.testsfailed
    with contextlib.ExitStack() as made:

        def make(**options):
            front = Front(**options)
            made.callback(front.close)
            nodes = {}
            for name in ("node1", "node2"):
                nodes[name] = Node(front, name)
                made.callback(lambda node=nodes[name]: node.close(keep=request.session.testsfailed > before))
            return front, nodes

        yield make


def key_on(node):
    """Return the key of the one entry."""
    return re.search(r'"key": "(\w+)"', node.kernixctl("cache", "list", "--json").stdout)[1]


def test_a_node_cannot_pose_as_the_engine(cluster):
    front, _ = cluster()

    def is_the_engines(name):
        ca, certificate = front.certificates / "ca.pem", front.certificates / f"{name}.pem"
        server = ["-purpose", "sslserver", "-verify_hostname", "localhost"]
        return subprocess.run(["openssl", "verify", "-CAfile", ca, *server, certificate], check=False).returncode == 0

    assert [is_the_engines(name) for name in ("engine", "node1", "node2")] == [True, False, False]


def test_two_nodes_share_by_the_pages_commands(cluster, tmp_path, monkeypatch):
    front, nodes = cluster()
    (tmp_path / "add_one.cpp").write_text(kernels.ADD_ONE)
    monkeypatch.chdir(tmp_path)
    for node in nodes.values():
        subprocess.run(node.daemon("--check-config"), check=True, env=node.environment)
        node.start()
    steps = re.findall(r"^kernixctl (.*?) +# (node\d): (.*)$", on_page("sh", "nodes"), re.MULTILINE)
    assert len(steps) == 5
    for command, name, shown in steps:
        words = [key_on(nodes[name]) if word == "KEY" else word for word in command.split()]
        said = nodes[name].kernixctl(*words).stdout
        for text in re.findall(r'"([^"]*)"', shown):
            pattern = r"\s+".join(map(re.escape, front.moved(text).split()))
            assert re.search(pattern, said), f"{command}\n{said}"
        if command.startswith("compile") and name == "node1":
            nodes[name].stop()
    metrics = nodes["node2"].kernixctl("metrics").stdout
    value = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in metrics.splitlines() if line[0] != "#"}
    served = {
        outcome: value.get(f'kernix_load_seconds_count{{outcome="{outcome}"}}', 0)
        for outcome in ("hit", "upstream", "built")
    }
    assert served == {"hit": 0, "upstream": 1, "built": 0}
    assert value['kernix_upstream_lookups_total{result="found"}'] == 1
    assert value["kernix_upstream_results_written_total"] == 0
    assert value["kernix_upstream_breaker_openings_total"] == 0
    assert value['kernix_upstream_bytes_total{direction="received"}'] > len(kernels.ADD_ONE)
    failed = [sample for sample in value if sample.startswith("kernix_upstream_calls_total") and '"failed"' in sample]
    assert sum(value[sample] for sample in failed) == 0


def test_only_named_nodes_write(cluster, tmp_path):
    _, nodes = cluster(writers=True)
    for name in ("first", "second"):
        (tmp_path / f"{name}.cpp").write_text(f"{kernels.ADD_ONE}// {name}\n")

    def said(node, *names):
        nodes[node].start()
        done = [nodes[node].kernixctl("compile", str(tmp_path / f"{name}.cpp")).stdout for name in names]
        nodes[node].stop()
        return done

    assert "(built in " in said("node2", "first")[0]
    assert all("(built in " in line for line in said("node1", "first", "second"))  # node2 may not write
    assert "(from another node)" in said("node2", "second")[0]  # and node1 may


def test_workers_alone_fill_the_cache(cluster, tmp_path):
    engines.need_sandbox()
    front, nodes = cluster(executes=True)
    source = tmp_path / "add_one.cpp"
    source.write_text(kernels.ADD_ONE)
    ran = []
    for node in nodes.values():
        node.start()
        assert "(built in " in node.kernixctl("compile", str(source)).stdout
        ran.append(front.runs())
    assert ran[0] >= 2, "a compile and a link"
    assert ran[1] == ran[0], "the second node was answered from the cache"
    assert key_on(nodes["node1"]) == key_on(nodes["node2"])
