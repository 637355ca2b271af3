#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wheel.sh [PYTHON...]
# Builds the self-contained wheel of kernix for each PYTHON (default: every version that JAX has and this machine, too)
# into dist/, and prints only their paths on stdout. A wheel holds kernixd, kernix-spawn and kernixctl, which are built
# once, and the extension. All are linked from archives, so the extension does not meet another copy of gRPC or Protobuf
# in the same process (cmake/KernixStaticPrograms.cmake).
set -euo pipefail
cd "$(dirname "$0")/.."
exec 3>&1 1>&2

if [ $# -eq 0 ]; then
  for minor in {10..14}; do
    for python in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor."*/bin/python; do
      if "$python" -c '' 2>/dev/null; then set -- "$@" "$python"; break; fi
    done
  done
fi
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct || date +%s)}   # the same sources, the same bytes
export SOURCE_DATE_EPOCH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# With the compiler's name and the pybind11 of `make build`, ccache finds all that was compiled there.
export CXX=${CXX:-c++}
settings=()
if pybind11=$(.venv/bin/python -m pybind11 --cmakedir 2>/dev/null); then
  settings+=("--config-setting=cmake.define.pybind11_DIR=$pybind11")
fi

# The tools lie in the build's folder: scikit-build-core begins anew where it is called from another place.
tools=$PWD/build-wheel/tools
export PATH="$tools/bin:$PATH"
mkdir -p dist
for python in "$@"; do
  rm -rf "$tools" "$scratch/venv"
  "$python" -m venv "$scratch/venv"
  "$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check --target "$tools" -r deploy/requirements-wheel.txt
  export PYTHONPATH=$tools
  "$python" -m build --wheel --no-isolation "${settings[@]}" --outdir "$scratch/plain" .
  "$python" -m auditwheel repair --strip --wheel-dir "$scratch/repaired" "$scratch"/plain/*.whl   # checks and tags it
  wheels=("$scratch"/repaired/*.whl)
  [ ${#wheels[@]} -eq 1 ] || { echo "wheel: expected one wheel, got: ${wheels[*]}"; exit 1; }
  mv "${wheels[0]}" dist/
  rm "$scratch"/plain/*.whl
  unset PYTHONPATH
  echo "$PWD/dist/$(basename "${wheels[0]}")" >&3
done
