# SPDX-License-Identifier: Apache-2.0
"""Steps run on the workers of a second implementation, BuildGrid, as far as it takes their input roots.

It takes no link to an absolute path, and so none to a worker's tools: what remains are device compiles whose tools
travel.
"""

import pathlib
import re
import sysconfig

import engines
import kernels
import pytest
from nodes import Node

TOOLKIT = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13"


@pytest.fixture(name="workers", scope="module")
def workers_fixture():
    engines.need_workers()
    engine = engines.Workers()
    yield engine
    engine.close()


@pytest.fixture(name="node")
def node_fixture(request, workers):
    """A function that makes a node with a store of its own."""
    made = []

    def make(**upstream):
        variables = {"PATH": f"{TOOLKIT / 'bin'}:/usr/local/bin:/usr/bin:/bin"}
        made.append(Node(variables, address=workers.address, instance="kernix", read="false", **upstream))
        return made[-1]

    before = request.session.testsfailed
    yield make
    for each in made:
        each.close(keep=request.session.testsfailed > before)


def number(node, sample):
    """Return the value of a metric."""
    return int(re.search(rf"^{re.escape(sample)} (\d+)$", node.kernixctl("metrics").stdout, re.MULTILINE)[1])


def write(folder, name, text):
    """Return the path of a source file."""
    path = folder / name
    path.write_text(text)
    return path


def test_device_compiles_travel_with_their_tools(node, tmp_path):
    if not (TOOLKIT / "bin" / "nvcc").exists():
        pytest.skip("needs the wheels of nvcc, which deploy/setup.sh installs where there is no other toolkit")
    source = write(tmp_path, "vector_add.cu", kernels.VECTOR_ADD)
    here, there = node(), node(device_compiles="remote", shipped_folders=TOOLKIT)
    for each in (here, there):
        assert not each.compile(source, "--arch", "sm_90")["cache_hit"]
    assert there.artifact() == here.artifact()
    assert there.key() == here.key()
    assert number(there, 'kernix_placed_steps_total{place="remote"}') == 4, "cudafe++, cicc, ptxas, fatbinary"


def test_what_needs_a_workers_own_tools_runs_here(node, tmp_path):
    source = write(tmp_path, "add_one.cpp", kernels.ADD_ONE)
    prefers = node(steps="prefer-remote")
    assert not prefers.compile(source)["cache_hit"]
    assert number(prefers, 'kernix_steps_run_here_instead_total{why="engine"}') >= 2, "a compile and a link"


def test_what_may_run_nowhere_else_says_why_it_does_not(node, tmp_path):
    source = write(tmp_path, "add_one.cpp", kernels.ADD_ONE)
    failed = node(steps="remote").kernixctl("compile", str(source), check=False)
    assert failed.returncode != 0
    assert "takes no links to its workers' tools" in failed.stderr
