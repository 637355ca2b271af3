#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test_deb.sh SUITE PACKAGE.deb...
# Checks Debian packages: by lintian, and in a clean root of the release that they are for. There they are installed, the
# service is set up and upgraded, two users share a build, and a purge leaves nothing. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "test_deb: $*" >&2; exit 1; }

of_kernix() { find / -xdev -iname '*kernix*' -not -path '/test/*' -not -path '/tmp/*' -not -path '/var/lib/apt/*'; }

# Ubuntu's packages bring it, and work without AppArmor, which comes after them here.
check_profile() {
  local profile=/etc/apparmor.d/kernix-spawn
  # shellcheck source=/dev/null
  if [ "$(. /etc/os-release && echo "$ID")" = debian ]; then
    [ ! -e $profile ] || fail "Debian 12 cannot read $profile"
    return
  fi
  apt-get -qq install apparmor >apparmor.log 2>&1 || fail "$(tail -20 apparmor.log)"
  apparmor_parser --skip-kernel-load --skip-cache $profile || fail "AppArmor refuses $profile"
}

check_root() {
  apt-get -qq update
  SECONDS=0
  apt-get -qq install ./dist/*.deb g++ systemd >install.log 2>&1 || fail "$(tail -20 install.log)"
  echo "apt install: $SECONDS s"
  python3 -c 'import kernix' || fail "python3-kernix does not work"
  check_profile
  KERNIX_TEST_AS_ROOT=1 bash tests/integration/systemd_test.sh "$PWD/dist"

  dpkg --install dist/*.deb >again.log   # what was removed there is so outside of /var, too
  systemd-sysusers kernix.conf
  systemd-tmpfiles --create kernix.conf
  mkdir /etc/kernix
  kernixctl setup --dry-run >/etc/kernix/kernixd.toml
  apt-get -qq purge kernixd libkernix-dev python3-kernix >purge.log 2>&1 || fail "$(<purge.log)"
  [ -z "$(of_kernix)" ] || fail "a purge leaves $(of_kernix)"
  [ -z "$(getent passwd kernix kernix-web)$(getent group kernix kernix-web)" ] || fail "a purge leaves a user or group"
}

suite=${1:?usage: test_deb.sh SUITE PACKAGE.deb...}
shift
if [ "$suite" = check ]; then
  check_root
  exit
fi
# Ubuntu compresses with zstd, which the lintian of Debian 12 takes for an error.
tags=()
[ "$suite" != noble ] || tags=(--suppress-tags malformed-deb-archive)
lintian --fail-on error "${tags[@]}" "$@"
scratch=$(mktemp -d)
chmod 755 "$scratch"
trap 'rm -rf --one-file-system "$scratch"' EXIT
mapfile -t packages < <(realpath --relative-to=. "$@")
deploy/in_root.sh "$suite" "$scratch/root" 'bash deploy/test_deb.sh check' "${packages[@]}" \
  deploy/test_deb.sh docs/cluster.md tests/integration/systemd_test.sh
echo ok
