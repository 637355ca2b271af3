#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# verify.sh UNIT_DIR KERNIXD
# Has systemd check the units in UNIT_DIR as they will be installed, with KERNIXD in place of the installed program.
# Exits with 77 (CTest: skipped) if systemd's tools are not installed.
set -eu
units=$1
kernixd=$2
here=$(dirname "$0")

command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze"; exit 77; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/system" "$scratch/user"

# Units under their installed names, and a program that is there.
install_unit() {
  sed -E "s|^(Exec[A-Za-z]+)=[^ ]+|\\1=$kernixd|" "$1" >"$2"
}
install_unit "$units/kernixd.service" "$scratch/system/kernixd.service"
install_unit "$units/kernixd.socket" "$scratch/system/kernixd.socket"
install_unit "$units/kernix-spawn.socket" "$scratch/system/kernix-spawn.socket"
install_unit "$units/kernixd-web.service" "$scratch/system/kernixd-web.service"
install_unit "$units/kernix-spawn@.service" "$scratch/system/kernix-spawn@.service"
install_unit "$units/kernixd-user.service" "$scratch/user/kernixd.service"

# systemd-analyze prints its findings to stderr, and nothing for a clean unit. Where there is no D-Bus (a container, a
# chroot), systemd 255 says so, and checks the unit all the same.
check() {
  said=$("$@" 2>&1) || { printf '%s\n' "$said"; echo "failed: $*"; exit 1; }
  said=$(printf '%s' "$said" | sed '/^Failed to connect to [a-z]* bus: /d')
  [ -z "$said" ] || { printf '%s\n' "$said"; echo "not clean: $*"; exit 1; }
}
check systemd-analyze verify --man=no "$scratch/system/kernixd.service" "$scratch/system/kernixd.socket" \
  "$scratch/system/kernix-spawn.socket" "$scratch/system/kernix-spawn@.service" "$scratch/system/kernixd-web.service"

# What kernixd's own unit leaves open, by systemd's measure from 0 (nothing) to 100.
systemd-analyze security --offline=true --threshold=15 --no-pager "$scratch/system/kernixd.service" >/dev/null ||
  { echo "systemd-analyze security says that kernixd.service leaves more open than 1.5"; exit 1; }

# With the change for an engine that docs/cluster.md has: of settings that the unit has, and as systemd takes it.
change=$scratch/system/kernixd.service.d/change.conf
mkdir "$scratch/system/kernixd.service.d"
sed -n '/ini service$/,/^$/{/^[[A-Z]/p}' "$here/../../docs/cluster.md" >"$change"
settings=$(sed -n 's/=.*//p' "$change")
[ -n "$settings" ] || { echo "docs/cluster.md has no change of the unit"; exit 1; }
for setting in $settings; do
  grep -q "^$setting=" "$units/kernixd.service" || { echo "docs/cluster.md: the unit has no $setting"; exit 1; }
done
check systemd-analyze verify --man=no "$scratch/system/kernixd.service"

XDG_RUNTIME_DIR=$scratch check systemd-analyze verify --user --man=no "$scratch/user/kernixd.service"

# The user and the folders, made in an empty root.
root=$scratch/root
mkdir -p "$root/etc" "$root/usr/lib/sysusers.d" "$root/usr/lib/tmpfiles.d"
cp "$here/kernix.sysusers.conf" "$root/usr/lib/sysusers.d/kernix.conf"
cp "$here/kernix.tmpfiles.conf" "$root/usr/lib/tmpfiles.d/kernix.conf"
systemd-sysusers --root="$root" kernix.conf >/dev/null
grep -q '^kernix:' "$root/etc/passwd"
grep -q '^kernix:' "$root/etc/group"
if [ "$(id -u)" = 0 ]; then
  systemd-tmpfiles --root="$root" --create kernix.conf
  [ "$(stat -c %a "$root/var/cache/kernix")" = 750 ]
  [ -d "$root/run/kernix" ]
fi
echo "ok"
