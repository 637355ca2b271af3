#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test_deb.sh PACKAGE.deb...
# Checks Debian packages: by lintian, and in a clean root of this distribution, which debootstrap makes. There they are
# installed, the service is set up and upgraded, two users share a build, and a purge leaves nothing. Needs root.
set -euo pipefail

fail() { echo "test_deb: $*" >&2; exit 1; }

make_root() {
  # shellcheck source=/dev/null
  debootstrap --variant=minbase "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" >"$scratch/debootstrap.log" ||
    fail "debootstrap: $(tail -5 "$scratch/debootstrap.log")"
  cp /etc/resolv.conf "$root/etc/"
  echo "127.0.0.1 localhost" >"$root/etc/hosts"
  mkdir -p "$root"/test/{packages,docs,tests/integration}
  cp "$@" "$root/test/packages/"
  cp docs/cluster.md "$root/test/docs/"
  cp tests/integration/systemd_test.sh "$root/test/tests/integration/"
  cp deploy/test_deb.sh "$root/test/"
}

# Makes the root that of this process. In a chroot, nobody could make namespaces.
enter_root() {
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mkdir "$root/test/outside"
  cd "$root"
  pivot_root . test/outside
  exec chroot . bash -c 'umount --lazy /test/outside && exec bash /test/test_deb.sh check'
}

of_kernix() { find / -xdev -iname '*kernix*' -not -path '/test/*' -not -path '/tmp/*' -not -path '/var/lib/apt/*'; }

check_root() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install /test/packages/*.deb g++ systemd >/test/install.log 2>&1 || fail "$(tail -20 /test/install.log)"
  python3 -c 'import kernix' || fail "python3-kernix does not work"
  KERNIX_TEST_AS_ROOT=1 bash /test/tests/integration/systemd_test.sh /test/packages

  dpkg --install /test/packages/*.deb >/test/again.log   # what was removed there is so outside of /var, too
  systemd-sysusers kernix.conf
  systemd-tmpfiles --create kernix.conf
  mkdir /etc/kernix
  kernixctl setup --dry-run >/etc/kernix/kernixd.toml
  apt-get -qq purge kernixd libkernix-dev python3-kernix >/test/purge.log 2>&1 || fail "$(</test/purge.log)"
  [ -z "$(of_kernix)" ] || fail "a purge leaves $(of_kernix)"
  ! getent passwd kernix || fail "a purge leaves the user kernix"
}

case ${1:?usage: test_deb.sh PACKAGE.deb...} in
  enter) root=$2 && enter_root ;;
  check) check_root ;;
  *)
    cd "$(dirname "$0")/.."
    lintian --fail-on error "$@"
    scratch=$(mktemp -d)
    root=$scratch/root
    chmod 755 "$scratch"
    trap 'rm -rf --one-file-system "$scratch"' EXIT
    make_root "$@"
    unshare --mount --fork bash "$0" enter "$root"
    echo ok ;;
esac
