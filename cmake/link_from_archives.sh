#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# link_from_archives.sh LINKER ARGUMENT...
# Links as usual, but takes each library from its archive if the distribution has one. It is a linker launcher (see
# KernixStaticPrograms.cmake), because CMake packages name only shared libraries, by their full paths.
set -euo pipefail

arguments=()
in_group=false
for argument in "$@"; do
  case $argument in
    -lre2) argument=-l:libre2.a ;;   # its CMake package says no more
    */lib*.so | */lib*.so.*)
      archive=${argument%%.so*}.a
      if [ -f "$archive" ]; then argument=$archive; fi ;;
  esac
  # Archives depend on each other in any order.
  case $argument in
    *.a) if ! $in_group; then arguments+=("-Wl,--start-group"); in_group=true; fi ;;
  esac
  arguments+=("$argument")
done
if $in_group; then arguments+=("-Wl,--end-group"); fi

exec "${arguments[@]}"
