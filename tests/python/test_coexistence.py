# SPDX-License-Identifier: Apache-2.0
"""kernix in one process with PyPI's grpcio and protobuf, which bring other versions of the same libraries."""

import importlib.util
import subprocess

import pytest

from kernix import _core, _environment

needs_grpcio = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("grpc", "google")),
    reason="grpcio and protobuf are not installed",
)


@needs_grpcio
@pytest.mark.parametrize("order", ["kernix first", "grpc first", "kernix first, jax", "grpc first, jax"])
def test_one_process_with_grpcio_and_protobuf(run_python, order, fresh_name):
    assert run_python("coexist.py", order, fresh_name).splitlines() == ["echo", "loaded", "echo"]


@needs_grpcio
def test_forks_of_an_application_that_has_grpcio_open(run_python, own_place):
    assert run_python("fork_with_grpcio.py", where=own_place).splitlines() == [
        "before",
        "threads [0, 0, 0, 0]",
        "fork [300, 306, 307]",
        "forkserver [300, 306, 307]",
        "spawn [300, 306, 307]",
        "after",
    ]


def has_grpc(path):
    """Whether a library or a program is linked with gRPC, as a shared library or as an archive."""
    dynamic = subprocess.run(["readelf", "-dW", path], check=True, capture_output=True, text=True).stdout
    with open(path, "rb") as file:
        return "[libgrpc" in dynamic or b"src/core/lib/surface/" in file.read()


def test_no_client_program_has_grpc():
    assert has_grpc(_environment.program("kernixd"))
    assert not has_grpc(_core.__file__)
    assert not has_grpc(_environment.program("kernixctl"))
