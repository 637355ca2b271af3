#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deb_of.sh SUITE
# Builds kernix in a clean root of a release of Debian or Ubuntu, and makes its packages there, each with its
# .spdx.json, in dist/. Prints the packages' paths. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
exec 3>&1 1>&2

suite=${1:?usage: deb_of.sh SUITE}
scratch=$(mktemp -d)
chmod 755 "$scratch"
trap 'rm -rf --one-file-system "$scratch"' EXIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mapfile -t files < <(git ls-files)
# shellcheck disable=SC2016
deploy/in_root.sh "$suite" "$scratch/root" '
  apt-get -qq update
  apt-get -qq install --no-install-recommends python3 python3-dev python3-venv pybind11-dev >/dev/null
  PYTHON=/usr/bin/python3 deploy/setup.sh deb
  cmake -S . -B build -G Ninja -DKERNIX_BUILD_TESTS=OFF -DPython_EXECUTABLE=/usr/bin/python3
  cmake --build build
  deploy/sbom.sh $(deploy/deb.sh build)' "${files[@]}"
mkdir -p dist
cp "$scratch"/root/test/dist/* dist/
for package in "$scratch"/root/test/dist/*.deb; do echo "$PWD/dist/$(basename "$package")" >&3; done
