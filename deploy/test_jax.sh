#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Calls kernels by other versions of JAX than the one in .venv: what a call passes, checks and raises (test_call.py), jit,
# vmap and gradients (test_transformations.py), and what a check that fails in a first call raises on every path
# (test_mistakes.py).
#
#   deploy/test_jax.sh WHEEL PYTHON VERSION...
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$1 python=$2
shift 2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for version in "$@"; do
  echo "== JAX $version"
  "$python" -m venv --clear "$scratch/venv"
  "$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
    "$wheel" "jax==$version" "jaxlib==$version" "$(grep ^pytest== deploy/requirements-tests.txt)" \
    -r deploy/requirements-nvcc.txt
  JAX_PLATFORMS=cpu "$scratch/venv/bin/python" -m pytest -q -p no:cacheprovider \
    tests/python/test_call.py tests/python/test_transformations.py \
    tests/python/test_mistakes.py::test_a_check_that_fails_in_a_first_call_is_jaxs_error_on_every_path
done
