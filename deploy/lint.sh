#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy (see .clang-tidy) with Clang's thread-safety analysis, over the sources that CMake compiles. A file that was clean is not looked at
# again until it, a header of ours, or the settings change.
#
#   deploy/lint.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: deploy/lint.sh BUILD_FOLDER}
[ -f "$build/compile_commands.json" ] || { echo "lint: no $build/compile_commands.json: run make build first" >&2; exit 1; }

stamps=$build/lint
mkdir -p "$stamps"
common=$( { cat .clang-tidy deploy/lint.sh; git ls-files '*.h' '*.proto' | sort | xargs cat; } | sha256sum | cut -c1-16)

lint_one() {
  local source=$1 stamp
  stamp=$stamps/$(printf '%s %s' "$common" "$(sha256sum <"$source")" | sha256sum | cut -c1-32)
  [ -e "$stamp" ] && return 0
  clang-tidy --quiet -p "$build" --extra-arg=-Wthread-safety --extra-arg=-Wno-unknown-warning-option "$source" 2>/dev/null || {
    echo "lint: $source" >&2
    return 1
  }
  touch "$stamp"
}
export -f lint_one
export stamps build common
sources=$(git ls-files 'daemon/*.cc' 'client/*.cc' 'python/*.cc' 'tests/*.cc' | grep -v '^client/examples/')
printf '%s\n' "$sources" | xargs -P "$(nproc)" -I{} bash -c 'lint_one {}'
echo "lint: $(printf '%s\n' "$sources" | wc -l) files clean"
