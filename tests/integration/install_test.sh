#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# install_test.sh BUILD_FOLDER SOURCE_FOLDER: installs what was built below an empty DESTDIR, as a package is made, builds
# client/examples against it as a user would, and runs the program twice: the first run compiles, the second is served from
# the cache.
set -euo pipefail
build=$1
source=$2

scratch=$(mktemp -d)
prefix=$scratch/prefix
# A daemon, a store and a home that nobody else uses.
export HOME=$scratch/home XDG_RUNTIME_DIR=$scratch/run XDG_CACHE_HOME=$scratch/cache
mkdir -m 700 "$HOME" "$XDG_RUNTIME_DIR"
unset KERNIX_ADDRESS KERNIX_CACHE_DIR KERNIXD
export PATH=$prefix/bin:$PATH

# Stops the daemon; the scratch folder of a failed test stays.
finish() {
  local status=$?
  kernixctl shutdown >"$scratch/shutdown.log" 2>&1 || true
  if ((status == 0)); then rm -rf "$scratch"; else echo "install_test: failed; see $scratch" >&2; fi
}
trap finish EXIT

fail() {
  echo "install_test: $*" >&2
  exit 1
}

# run LOG COMMAND...: shows the log of a step that fails.
run() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "this failed: $*"; }
}

run "$scratch/install.log" env DESTDIR="$scratch" cmake --install "$build" --prefix /prefix
[[ -x $prefix/bin/kernixd && -x $prefix/bin/kernixctl ]] || fail "no programs in $prefix/bin"
for header in "$source"/client/include/kernix/*.h; do
  [[ -f $prefix/include/kernix/${header##*/} ]] || fail "no ${header##*/} in $prefix/include/kernix"
done
for document in LICENSE SECURITY.md docs/cli.md docs/images/kernix.svg; do
  [[ -f $prefix/share/doc/kernix/$document ]] || fail "no $document in $prefix/share/doc/kernix"
done
share=$prefix/share
cmp <(kernixctl completion bash) "$share/bash-completion/completions/kernixctl" || fail "no completion for bash"
cmp <(kernixctl completion zsh) "$share/zsh/site-functions/_kernixctl" || fail "no completion for zsh"

# Each page has its sections, an option and a variable, and groff warns of nothing.
for page in man1/kernixctl.1 man8/kernixd.8; do
  groff -man -Tascii -P-cbou -ww "$share/man/$page" >"$scratch/page" 2>"$scratch/groff.log" || fail "groff cannot read $page"
  [[ ! -s $scratch/groff.log ]] || { cat "$scratch/groff.log" >&2; fail "groff warns of $page"; }
  for text in SYNOPSIS 'Exit codes:' Examples: -help KERNIX_; do
    grep -q -e "$text" "$scratch/page" || fail "no $text in $page"
  done
done

grep -qx 'ExecStart=/prefix/bin/kernixd --config .*' "$prefix/lib/systemd/system/kernixd.service" ||
  fail "the unit does not start the installed kernixd"
[[ $(grep '^ExecStart=' "$prefix/lib/systemd/user/kernixd.service") == ExecStart=/prefix/bin/kernixd ]] ||
  fail "the user's unit does not start the installed kernixd"

cp -r "$source/client/examples" "$scratch/source"  # nothing of the repository lies around it
run "$scratch/configure.log" cmake -S "$scratch/source" -B "$scratch/example" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_BUILD_TYPE=Debug
run "$scratch/build.log" cmake --build "$scratch/example"

# The same program with pkg-config. The prefix lies below DESTDIR here.
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name kernix.pc)")
export PKG_CONFIG_PATH
flags=$(pkg-config --define-variable=prefix="$prefix" --cflags --libs kernix) || fail "pkg-config does not know kernix"
# shellcheck disable=SC2086
run "$scratch/pkg-config.log" g++ -std=c++20 "$scratch/source/example.cc" -o "$scratch/with-pkg-config" $flags

first=$("$scratch/example/kernix_example") || fail "the first run failed"
[[ $first == "compiled: 5.5 11 16.5 22" ]] || fail "the first run printed: $first"
second=$("$scratch/example/kernix_example") || fail "the second run failed"
[[ $second == "from the cache: 5.5 11 16.5 22" ]] || fail "the second run printed: $second"
third=$("$scratch/with-pkg-config") || fail "the program that pkg-config linked failed"
[[ $third == "$second" ]] || fail "the program that pkg-config linked printed: $third"
echo "install_test: $first; then $second"
