# SPDX-License-Identifier: Apache-2.0
"""kernix in one process with PyPI's grpcio and protobuf, which bring other versions of the same libraries."""

import importlib.util

import pytest

needs_grpcio = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("grpc", "google")),
    reason="grpcio and protobuf are not installed",
)


@needs_grpcio
@pytest.mark.parametrize("order", ["kernix first", "grpc first", "kernix first, jax", "grpc first, jax"])
def test_one_process_with_grpcio_and_protobuf(run_python, order, fresh_name):
    assert run_python("coexist.py", order, fresh_name).splitlines() == ["echo", "loaded", "echo"]
