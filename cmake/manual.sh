#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# manual.sh SECTION SEE_ALSO VERSION NAME PROGRAM...
# Prints a page for man(1): what --help says of PROGRAM, which may begin with an emulator, and of its commands.
set -euo pipefail
section=$1 see_also=$2 version=$3 name=$4
program=("${@:5}")

# roff would take the first character of some lines for a request, and would print typographic signs.
escape() {
  sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/'/\\\\(aq/g" -e 's/`/\\(ga/g' -e 's/~/\\(ti/g' -e 's/\^/\\(ha/g' -e 's/^\./\\\&./'
}

# describe [COMMAND...]
describe() {
  local command
  "${program[@]}" "$@" --help | escape
  while read -r command; do
    printf '.fi\n.SH "%s"\n.nf\n' "$name${*:+ $*} $command"
    describe "$@" "$command"
  done < <("${program[@]}" "$@" --help | sed -n '/^subcommands:/I,/^$/s/^  \([a-z]\+\) .*/\1/p')
}

printf '.TH %s %s "" "kernix %s"\n.SH NAME\n%s \\- ' "${name^^}" "$section" "$version" "$name"
"${program[@]}" --help | awk '/./ && !seen++ { sub(/\.$/, ""); print }'
printf '.SH SYNOPSIS\n%s [options]\n.SH DESCRIPTION\n.nf\n' "$name"
describe
printf '.fi\n.SH "SEE ALSO"\n%s\n' "$see_also"
