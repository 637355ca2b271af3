#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test_aarch64.sh BUILD
# Builds kernix for aarch64 (cross.sh) and uses it in qemu-user; BUILD is that of this machine. kernixd compiles for
# aarch64 with this machine's cross compiler and NVIDIA's nvcc for aarch64; programs open the kernels, and call those in
# C++. qemu-user has no namespaces and no seccomp: compilers run without an enclosure.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "test_aarch64: $*" >&2; exit 1; }

deploy/cross.sh kernixd kernix-spawn kernixctl kernix_example client_local_test
build=$PWD/build-aarch64
native=${1:?usage: test_aarch64.sh BUILD}
scratch=$(mktemp -d)
emulate() { qemu-aarch64-static -L "$build/sysroot" "$@"; }
trap 'emulate "$build/bin/kernixctl" shutdown >/dev/null || true; rm -rf --one-file-system "$scratch"' EXIT

# Makes SCRIPT start PROGRAM, since this machine's kernel may not start a program for aarch64.
wrap() {
  local program=$1 script=$2
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nexec qemu-aarch64-static -L "%s" -0 "$0" "%s" "$@"\n' "$build/sysroot" "$program" >"$script"
  chmod +x "$script"
}

# NVIDIA's wheels, as on aarch64. nvcc finds its parts beside the name by which it was called.
install_nvcc() {
  local site=$1 program real
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --platform manylinux2014_aarch64 --dest "$build/wheels" --requirement deploy/requirements-nvcc.txt
  for program in "$build"/wheels/*.whl; do python3 -m zipfile -e "$program" "$site"; done
  for program in "$site"/nvidia/cu13/{bin,nvvm/bin}/*; do
    if [ -d "$program" ] || ! grep -q '^.ELF' "$program"; then continue; fi
    real=$(dirname "$program")/aarch64/$(basename "$program")
    mkdir -p "$(dirname "$real")"
    mv "$program" "$real"
    chmod +x "$real"
    wrap "$real" "$program"
  done
}

# kernixd looks for kernix-spawn beside itself. It gets this machine's: qemu-user refuses to make a subreaper.
mkdir "$scratch/aarch64"
cp "$build/bin/kernixd" "$scratch/aarch64/"
cp "$native/bin/kernix-spawn" "$scratch/aarch64/"
wrap "$scratch/aarch64/kernixd" "$scratch/kernixd"
install_nvcc "$scratch/site"
export CXX=aarch64-linux-gnu-g++ KERNIXD="$scratch/kernixd" KERNIX_SANDBOX=none KERNIX_CACHE_DIR="$scratch/cache"
export KERNIX_SITE_PACKAGES="$scratch/site" BRAINEVENT_NVCC_PREFER=pip XDG_RUNTIME_DIR="$scratch"

emulate "$build/bin/kernixctl" doctor
for said in compiled "from the cache"; do
  numbers=$(emulate "$build/client/examples/kernix_example")
  [ "$numbers" = "$said: 5.5 11 16.5 22" ] || fail "the example printed '$numbers'"
done
emulate "$build/client/client_local_test" --gtest_brief=1 --gtest_filter='TrampolineTest.*:BindTarget*:CallFrameTest.*'
