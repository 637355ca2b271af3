#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test_wheel_roots.sh WHEEL...
# Uses the wheels in clean roots of releases of Debian and Ubuntu, old and new, with their g++ and Python. Where that is
# too old, it uses the programs alone (SUITES: only some). Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "test_wheel_roots: $*" >&2; exit 1; }

# test_programs WHEEL
test_programs() {
  local printed
  python3 -m zipfile -e "$1" /opt/kernix
  chmod +x /opt/kernix/kernix/bin/*
  export PATH=/opt/kernix/kernix/bin:$PATH XDG_RUNTIME_DIR=/run/kernix-test
  mkdir -m 700 "$XDG_RUNTIME_DIR"
  cat >kernel.cpp <<'CPP'
#include "brainevent/common.h"

// @BE add_one
void add_one(BE::In<float> x, BE::Out<float> y) {
  for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i] + 1.0f;
}
CPP
  for expected in '(built in ' '(from the cache'; do
    printed=$(kernixctl compile kernel.cpp)
    echo "$printed"
    [[ $printed == *"$expected"* ]] || fail "there is no '$expected'"
  done
  kernixctl shutdown
}

wheel_of() {
  local found
  mapfile -t found < <(find dist -name "kernix-*-$("$1" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')-*.whl")
  echo "${found[0]:-}"
}

check_root() {
  local release python=python3 wheels=(dist/*.whl)
  # shellcheck source=/dev/null
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  export CXX=g++
  if [ "$release" = bionic ]; then CXX=g++-8; fi   # g++ is 7 there
  apt-get -qq update
  apt-get -qq install --no-install-recommends $CXX python3 python3-venv >install.log 2>&1 || fail "$(tail -20 install.log)"
  $CXX --version | sed -n 1p
  ldd --version | sed -n 1p
  if [ -z "$(wheel_of $python)" ]; then
    (test_programs "${wheels[0]}")
    return
  fi
  bash deploy/test_wheel.sh "$(wheel_of $python)" $python
}

if [ "$1" = check ]; then
  check_root
  exit
fi
scratch=$(mktemp -d)
chmod 755 "$scratch"
trap 'rm -rf --one-file-system "$scratch"' EXIT
mapfile -t wheels < <(realpath --relative-to=. "$@")
for suite in ${SUITES:-bionic focal bullseye jammy bookworm noble trixie}; do
  echo "== $suite"
  deploy/in_root.sh "$suite" "$scratch/root" 'bash deploy/test_wheel_roots.sh check' "${wheels[@]}" README.md \
    deploy/test_wheel{,_roots}.sh deploy/test_wheel.py deploy/requirements{,-tests}.txt
  rm -rf --one-file-system "$scratch/root"
done
