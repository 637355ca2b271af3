#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# in_root.sh SUITE ROOT COMMAND FILE...
# Makes ROOT, a new folder, a clean root of a release of Debian or Ubuntu by debootstrap, and runs a bash command in
# it. FILEs and folders, named relative to the repository, lie in its /test, where the command starts. Needs root.
set -euo pipefail

fail() { echo "in_root: $*" >&2; exit 1; }

make_root() {
  local suite=$1 root=$2 options=()
  case $suite in
    bionic | focal | jammy | noble)   # one script, gutsy, fits all of them; their key is not in Debian 12
      options=('--components=main,universe' "--keyring=$PWD/deploy/ubuntu-archive.gpg" "$suite" "$root" '' gutsy) ;;
    *) options=("$suite" "$root") ;;
  esac
  debootstrap --variant=minbase "${options[@]}" >"$root.log" || fail "debootstrap: $(tail -5 "$root.log")"
  cp /etc/resolv.conf "$root/etc/"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/machine.crt"   # whom this machine trusts
  echo "127.0.0.1 localhost" >"$root/etc/hosts"
}

# Makes the root that of this process. In a chroot, nobody could make namespaces.
enter_root() {
  local root=$1 command=$2
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mkdir "$root/test/outside"
  cd "$root"
  pivot_root . test/outside
  export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 {PIP_CERT,REQUESTS_CA_BUNDLE}=/etc/machine.crt
  # shellcheck disable=SC2016
  exec chroot . bash -c 'umount --lazy /test/outside && rmdir /test/outside && cd /test && exec bash -euo pipefail -c "$1"' \
    bash "$command"
}

if [ "$1" = enter ]; then enter_root "$2" "$3"; fi
script=$(realpath "$0")
cd "$(dirname "$script")/.."
suite=$1 root=$(realpath "$2") command=$3
shift 3
make_root "$suite" "$root"
mkdir "$root/test"
cp -a --parents "$@" "$root/test/"
exec unshare --mount --fork bash "$script" enter "$root" "$command"
