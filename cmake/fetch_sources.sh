#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fetch_sources.sh FOLDER PACKAGE...
# Unpacks the source of each installed Debian package into FOLDER/PACKAGE. It comes from where the package came from, and
# apt checks it alike.
set -euo pipefail

folder=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{lists/partial,lines} "$folder"
apt_get() {
  apt-get -qq -o Dir::State::lists="$scratch/lists" -o Dir::Etc::sourcelist=/dev/null \
    -o Dir::Etc::sourceparts="$scratch/lines" -o APT::Sandbox::User= "$@"
}

for package in "$@"; do
  source=$(dpkg-query --show --showformat '${source:Package}=${source:Version}' "$package")
  [ "$(cat "$folder/$package.version" 2>/dev/null)" != "$source" ] || continue
  if [ -z "$(ls "$scratch/lines")" ]; then
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
      [ ! -f "$file" ] || sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" >"$scratch/lines/$(basename "$file")"
    done
    apt_get update
  fi
  # A version that an update has replaced is gone.
  (cd "$scratch" && { apt_get source --download-only "$source" || apt_get source --download-only "${source%%=*}"; })
  rm -rf "${folder:?}/$package"
  dpkg-source -q --no-check --no-copy --extract "$scratch/${source%%=*}"_*.dsc "$folder/$package"
  echo "$source" >"$folder/$package.version"
done
