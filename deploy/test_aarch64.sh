#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds kernix for aarch64 (cross.sh) and uses it in qemu-user: kernixd compiles kernels for aarch64 with this machine's
# cross compiler, and programs open and call them. qemu-user has neither namespaces nor seccomp, so compilers run without
# an enclosure.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "test_aarch64: $*" >&2; exit 1; }

deploy/cross.sh kernixd kernix-spawn kernixctl kernix_example client_local_test
build=$PWD/build-aarch64
scratch=$(mktemp -d)
emulate=(qemu-aarch64-static -L "$build/sysroot")
trap '"${emulate[@]}" "$build/bin/kernixctl" shutdown || true; rm -rf --one-file-system "$scratch"' EXIT

# A program that the kernel can start, though it may know no emulator.
wrap() {
  printf '#!/bin/sh\nexec %s %s "$@"\n' "${emulate[*]}" "$1" >"$2"
  chmod +x "$2"
}
cp "$build/bin/kernixd" "$scratch/emulated"          # which looks for kernix-spawn beside itself
wrap "$scratch/emulated" "$scratch/kernixd"
wrap "$build/bin/kernix-spawn" "$scratch/kernix-spawn"

export KERNIXD=$scratch/kernixd KERNIX_SANDBOX=none KERNIX_CACHE_DIR=$scratch/cache XDG_RUNTIME_DIR=$scratch
export CXX=aarch64-linux-gnu-g++
for said in compiled "from the cache"; do
  numbers=$("${emulate[@]}" "$build/client/examples/kernix_example")
  [ "$numbers" = "$said: 5.5 11 16.5 22" ] || fail "the example printed '$numbers'"
done
file "$scratch"/cache/*/* 2>/dev/null | grep -q 'ELF.*aarch64' || fail "there is no kernel for aarch64"
"${emulate[@]}" "$build/bin/client_local_test" --gtest_filter='TrampolineTest.*:BindTarget*:CallFrameTest.*'
