#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# release.sh BUILD PYTHON...
# Makes all packages of a release in dist/, which it empties first: a wheel for each PYTHON, Debian packages of what is
# built in BUILD, those of Ubuntu 24.04, an .spdx.json for each, and their checksums. Prints what it has made.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1
shift
rm -rf dist
mapfile -t packages < <(deploy/wheel.sh "$@" && deploy/deb.sh "$build")
wait $!
deploy/sbom.sh "${packages[@]}"
deploy/deb_of.sh noble
cd dist
sha256sum -- * >SHA256SUMS
cat SHA256SUMS
