#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wheel.sh [PYTHON]
# Builds the self-contained wheel of kernix for PYTHON (default: .venv's) into dist/, and prints only its path on
# stdout. The wheel holds kernixd, kernix-spawn and kernixctl, linked from archives, and the extension. The extension's shared
# libraries lie beside it under names of their own, so that it does not meet another copy of gRPC or Protobuf in the
# same process.
set -euo pipefail
cd "$(dirname "$0")/.."
exec 3>&1 1>&2

python=${1:-.venv/bin/python}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The tools live in an environment of their own, made with the Python that the wheel is for.
"$python" -m venv "$scratch/tools"
"$scratch/tools/bin/python" -m pip install --quiet --disable-pip-version-check -r deploy/requirements-wheel.txt
export PATH="$scratch/tools/bin:$PATH"

# With the compiler's name and the pybind11 of `make build`, ccache finds all that was compiled there.
export CXX=${CXX:-c++}
settings=()
if pybind11=$(.venv/bin/python -m pybind11 --cmakedir 2>/dev/null); then
  settings+=("--config-setting=cmake.define.pybind11_DIR=$pybind11")
fi
python -m build --wheel --no-isolation "${settings[@]}" --outdir "$scratch/plain" .
auditwheel repair --strip --wheel-dir "$scratch/repaired" "$scratch"/plain/*.whl
wheels=("$scratch"/repaired/*.whl)
[ ${#wheels[@]} -eq 1 ] || { echo "wheel: expected one wheel, got: ${wheels[*]}"; exit 1; }
mkdir -p dist
cp "${wheels[0]}" dist/
echo "$PWD/dist/$(basename "${wheels[0]}")" >&3
