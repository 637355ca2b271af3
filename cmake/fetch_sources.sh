#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fetch_sources.sh FOLDER PACKAGE...
# Unpacks the source of each installed Debian package into FOLDER/PACKAGE. It comes from where the package came from, and
# apt verifies it in the same way.
set -euo pipefail

folder=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
apt_options=(-qq -o Dir::State::lists="$scratch/lists" -o Dir::Etc::sourcelist=/dev/null
  -o Dir::Etc::sourceparts="$scratch/lines" -o APT::Sandbox::User=)

update_lists() {
  local file
  mkdir -p "$scratch"/{lists/partial,lines}
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    [ ! -f "$file" ] || sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" >"$scratch/lines/$(basename "$file")"
  done
  apt-get "${apt_options[@]}" update
}

# Another version of the release if there is no longer that of the package.
download() {
  local name=$1 version
  for version in "$2" $(apt-cache "${apt_options[@]}" showsrc "$name" | sed -n 's/^Version: //p'); do
    if (cd "$scratch" && apt-get "${apt_options[@]}" source --download-only "$name=$version"); then
      [ "$version" = "$2" ] || echo "fetch_sources: $name $2 is no longer there; $version takes its place" >&2
      return
    fi
    rm -f "$scratch/$name"_*
  done
  return 1
}

mkdir -p "$folder"
for package in "$@"; do
  read -r name version < <(dpkg-query --show --showformat '${source:Package} ${source:Version}\n' "$package")
  [ "$(cat "$folder/$package.version" 2>/dev/null)" != "$version" ] || continue
  [ -d "$scratch/lists" ] || update_lists
  download "$name" "$version"
  rm -rf "${folder:?}/$package"
  dpkg-source -q --no-check --no-copy --extract "$scratch/$name"_*.dsc "$folder/$package"
  echo "$version" >"$folder/$package.version"
done
