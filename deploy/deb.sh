#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deb.sh BUILD
# Makes Debian packages of what `make build` has built in BUILD, for this distribution: kernixd, libkernix-dev and
# python3-kernix, in dist/. Prints their paths.
set -euo pipefail
cd "$(dirname "$0")/.."
exec 3>&1 1>&2

BUILD=$(realpath "${1:?usage: deb.sh BUILD}")
export BUILD
cached() { sed -n "s/^$1:[A-Z]*=//p" "$BUILD/CMakeCache.txt"; }
python=$(cached Python_EXECUTABLE)
[ "$("$python" -c 'import sys; print(sys.version_info[:2])')" = "$(/usr/bin/python3 -c 'import sys; print(sys.version_info[:2])')" ] ||
  { echo "deb: $BUILD is built for $python, and packages are for /usr/bin/python3: build with PYTHON=/usr/bin/python3"; exit 1; }
# shellcheck source=/dev/null
version=$(cached CMAKE_PROJECT_VERSION)-1~$(. /etc/os-release && echo "$ID$VERSION_ID")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/kernix"
cp -r deploy/debian "$scratch/kernix/debian"
cd "$scratch/kernix"
cat >debian/changelog <<CHANGELOG
kernix ($version) unstable; urgency=medium

  * Built from its sources: docs/changelog.md says what is new.

 -- kernix maintainers <maintainers@kernix.invalid>  $(date -Rud "@$SOURCE_DATE_EPOCH")
CHANGELOG
DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage --build=binary --no-sign --no-check-builddeps
cd - >/dev/null
mkdir -p dist
for package in "$scratch"/*.deb; do
  cp "$package" dist/
  echo "$PWD/dist/$(basename "$package")" >&3
done
