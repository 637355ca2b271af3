#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# sbom.sh PACKAGE...
# Runs sbom.py in an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/tools"
"$scratch/tools/bin/python" -m pip install --quiet --disable-pip-version-check -r deploy/requirements-sbom.txt
"$scratch/tools/bin/python" deploy/sbom.py "$@"
