#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# systemd_test.sh BUILD_FOLDER | systemd_test.sh FOLDER_OF_PACKAGES
# The units as a real systemd runs them, installed as docs/operations.md says, or from packages that are installed. Two managers, each in namespaces of its own
# and over copies of /etc, /usr/local and /var that vanish with it: nothing of this machine is touched.
#   system: its socket starts kernixd, which compiles under the unit's restrictions; members share a cache, a stranger
#           stays out; it reaches an engine by the network only with what docs/cluster.md changes in the unit
#   user:   ready when it says so, started again after a kill, ends cleanly
# Exit code 77 (CTest: skipped) where that cannot be: not root, no systemd, a kernel that has no such namespaces.
set -euo pipefail

skip() { echo "skipped: $*"; exit 77; }
# Root has every right (see tests/support/need_right.h).
lacks_right() { [ -z "${KERNIX_TEST_AS_ROOT:-}" ] || fail "$*"; skip "$*"; }
fail() { echo "systemd_test: $*" >&2; exit 1; }
# expect PATTERN TEXT
# shellcheck disable=SC2053
expect() { [[ $2 == $1 ]] || fail "expected '$1', got '$2'"; }
property() { systemctl "${@:3}" show "$1" -p "$2" --value; }      # UNIT PROPERTY [--user]

# Polls until a command succeeds.
await() {
  local try
  for try in {1..300}; do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  fail "gave up after $try tries: $*"
}

# A machine in little: an empty /run, cgroups of this namespace, and folders in which what is written is not kept.
enter_machine() {
  local folder layers=/run/layers
  mount -t tmpfs tmpfs /run
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  for folder in etc usr/local var; do
    mkdir -p "$layers/$folder/upper" "$layers/$folder/work"
    mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$layers/$folder/upper,workdir=$layers/$folder/work" "/$folder"
  done
  mkdir -p /run/systemd/system   # systemctl takes this for a machine that runs systemd
}

# --- the machine's service -------------------------------------------------------------------------------------------
# as UID GROUPS COMMAND...: as a user who has logged in.
as() {
  mkdir -p "$scratch/home-$1"
  chown "$1" "$scratch/home-$1"
  env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$scratch/home-$1" setpriv --reuid "$1" --regid "$1" --groups "$2" "${@:3}"
}

# Where the product is: what its packages have put there, or what this installs.
prefix() { if is_package; then echo /usr; else echo /usr/local; fi; }
is_package() { compgen -G "$build/*.deb" >/dev/null; }
install_product() { is_package || cmake --install "$build" >/dev/null; }

check_system() {
  trap 'echo $? >"$scratch/verdict"' EXIT
  local members
  await systemctl show
  SECONDS=0
  kernixctl setup --user member1 --user member2 >"$scratch/setup.log" 2>&1 || fail "setup: $(<"$scratch/setup.log")"
  members=$(getent group kernix | cut -d: -f3)
  expect '*ok * C++ kernel *compiled in*To undo it:*' "$(<"$scratch/setup.log")"
  expect '*name = "g++"*host_compiler = *' "$(</etc/kernix/kernixd.toml)"
  expect '*kernix*' "$(id -Gn member1)"
  expect '*/kernixd.socket' "$(readlink /etc/systemd/system/sockets.target.wants/kernixd.socket)"
  expect '*/kernix-spawn.socket' "$(readlink /etc/systemd/system/sockets.target.wants/kernix-spawn.socket)"
  expect '*kernixd.toml stays as it is*The service runs*' "$(kernixctl setup 2>&1)"
  systemctl stop kernixd
  expect inactive "$(property kernixd ActiveState)"
  expect '*built in*' "$(as 2001 "$members" kernixctl compile "$scratch/kernel.cpp")"
  expect '*from the cache*' "$(as 2002 "$members" kernixctl compile "$scratch/kernel.cpp")"
  echo "kernixctl setup twice, a build and a hit: $SECONDS s"
  expect '[1-9]*' "$(property 'kernix-spawn@*' MemoryMax)"   # not infinity
  expect '[1-9]*' "$(<"/sys/fs/cgroup$(property 'kernix-spawn@*' ControlGroup)/spawn/cgroup.procs")"
  ! grep 'jobs have no cgroup' "$scratch/services.log" || fail "jobs have no cgroups"
  expect '*"shared": true*' "$(as 2002 "$members" kernixctl status --json)"
  expect '*Permission denied*' "$(as 2003 2003 kernixctl --address /run/kernix/kernixd.sock status 2>&1 || true)"
  expect active "$(property kernixd ActiveState)"
  expect "$(id -u kernix)" "$(stat -c %u "/proc/$(property kernixd MainPID)")"

  check_web

  kill -KILL "$(property kernixd MainPID)"
  expect '*from the cache*' "$(as 2001 "$members" kernixctl compile "$scratch/kernel.cpp")"
  if is_package; then check_upgrade "$members"; fi
  systemctl stop kernixd
  expect success "$(property kernixd Result)"
  expect active "$(property kernixd.socket ActiveState)"
  check_network "$members"
  if is_package; then check_removal; else check_undo; fi
}

# What `setup` has said that undoes it. Members are in the group.
check_undo() {
  sed -n '/^To undo it:$/,$ s/^  //p' "$scratch/setup.log" >"$scratch/undo"
  bash -e "$scratch/undo" || fail "what undoes setup: $(<"$scratch/undo")"
  expect inactive "$(property kernixd.socket ActiveState)"
  [ -z "$(getent passwd kernix kernix-web)$(getent group kernix kernix-web)" ] || fail "to undo setup leaves a user or group"
}

# The page's user sees that there are entries, and not whose.
check_web() {
  systemctl start kernixd-web
  await fetch /readyz
  expect '*kernix_builds_total 1*' "$(fetch /metrics)"
  expect '*"hidden_entries": 2*' "$(fetch /api/status.json)"
  expect '[[]]' "$(fetch /api/entries.json)"
  expect kernix-web "$(stat -c %U "/proc/$(property kernixd-web MainPID)")"
  systemctl stop kernixd-web
}
fetch() { python3 -c 'import sys, urllib.request as u; print(u.urlopen("http://127.0.0.1:9464" + sys.argv[1]).read().decode())' "$1"; }

check_removal() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq purge kernixd
  expect inactive "$(property kernixd ActiveState)"
  expect 0 "$(property kernixd MainPID)"
  [ ! -e /var/cache/kernix ] || fail "a purge leaves the cache"
  [ -z "$(getent passwd kernix kernix-web)$(getent group kernix kernix-web)" ] || fail "a purge leaves a user or group"
}

check_upgrade() {
  local before
  before=$(property kernixd MainPID)
  dpkg --install "$build"/kernixd_*.deb
  [ "$(property kernixd MainPID)" != "$before" ] || fail "the old kernixd runs on after an upgrade"
  expect '*from the cache*' "$(as 2001 "$1" kernixctl compile "$scratch/kernel.cpp")"
}

# The port of an engine on this machine that says nothing: prints its number, and then that somebody has connected.
listen() {
  python3 -uc 'import socket as s; e = s.create_server(("localhost", 0)); print(e.getsockname()[1]); e.accept(); print("met")'
}
failed_to_reach_it() { [[ $(as 2001 "$1" kernixctl status --json) =~ \"last_error\":\ \"[^\"] ]]; }

check_network() {
  local change=/run/stubs/kernixd.service.d/change.conf
  systemctl reset-failed kernixd   # systemd counts the starts, and refuses the sixth one in ten seconds
  listen >"$scratch/engine" &
  await test -s "$scratch/engine"
  printf '[upstream]\naddress = "grpc://localhost:%s"\n' "$(<"$scratch/engine")" >>/etc/kernix/kernixd.toml
  await failed_to_reach_it "$1"
  systemctl stop kernixd
  expect 1 "$(wc -l <"$scratch/engine")"

  sed -n '/ini service$/,/^$/{/^[[A-Z]/p}' "${here%/tests/*}/docs/cluster.md" >"$change"
  systemctl daemon-reload
  as 2001 "$1" kernixctl status >/dev/null
  await grep -qx met "$scratch/engine"
}

run_system() {
  enter_machine
  install_product
  printf 'member%s:x:%s:%s::/:/bin/false\n' 1 2001 2001 2 2002 2002 >>/etc/passwd
  mkdir /run/stubs /run/units
  ln -s "$(prefix)"/lib/systemd/system/kernix* /run/units/   # of this machine's own units none may run here
  cat >"$scratch/kernel.cpp" <<'KERNEL'
#include "brainevent/common.h"
// @BE one arg ret
void one(const BE::Tensor x, BE::Tensor y) { *y.data_ptr<float>() = 1; }
KERNEL
  local unit
  for unit in kernixd kernix-spawn@; do
    mkdir -p "/run/stubs/$unit.service.d"
    printf '[Service]\nStandardError=append:%s\n' "$scratch/services.log" >"/run/stubs/$unit.service.d/log.conf"
  done
  local target
  for target in sysinit basic sockets shutdown multi-user; do
    printf '[Unit]\nDefaultDependencies=no\n' >"/run/stubs/$target.target"
  done
  check_system </dev/null &
  SYSTEMD_UNIT_PATH=/run/stubs:/run/units container=kernix \
    exec /usr/lib/systemd/systemd --system --unit=basic.target --log-target=console </dev/null >"$scratch/system.log" 2>&1
}

# --- the user's service ----------------------------------------------------------------------------------------------
restarted() { [[ $(property kernixd NRestarts --user) == 1 && $(property kernixd ActiveState --user) == active ]]; }

run_user() {
  enter_machine
  install_product
  local units
  units=$(prefix)/lib/systemd/user:/usr/lib/systemd/user
  export HOME=$scratch/home XDG_RUNTIME_DIR=/run/user SYSTEMD_UNIT_PATH=$units
  mkdir -m 700 "$HOME" "$XDG_RUNTIME_DIR" "$XDG_RUNTIME_DIR/systemd"
  /usr/lib/systemd/systemd --user </dev/null >"$scratch/user.log" 2>&1 &
  await systemctl --user show
  systemctl --user start kernixd
  expect active "$(property kernixd ActiveState --user)"
  expect "*process *$(property kernixd MainPID --user)*" "$("$(prefix)/bin/kernixctl" status)"   # the client finds it
  kill -KILL "$(property kernixd MainPID --user)"
  await restarted
  systemctl --user stop kernixd
  expect success "$(property kernixd Result --user)"
}

# --- outside ---------------------------------------------------------------------------------------------------------
# in_namespaces WHAT: runs it in a cgroup and namespaces of its own. Takes the place of the shell that it is called in.
in_namespaces() { exec unshare --mount bash "$here" enter "$build" "$scratch" "$1"; }

enter_cgroup() {
  mount -t cgroup2 cgroup2 "$scratch/cgroups"
  mkdir -p "$group"
  echo $$ >"$group/cgroup.procs"
  exec unshare --mount --cgroup --uts --pid --fork --kill-child=KILL --mount-proc bash "$here" "$1" "$build" "$scratch"
}

remove_cgroup() {
  mount -t cgroup2 cgroup2 "$scratch/cgroups"
  [ -d "$group" ] || return 0
  await find "$group" -depth -type d -exec rmdir {} +   # as soon as what was killed is gone
}

leave() {
  if [ -e "$scratch/probe.log" ]; then unshare --mount bash "$here" remove "$build" "$scratch" || true; fi
  rm -rf "$scratch"
}

run_outside() {
  [ "$(id -u)" = 0 ] || lacks_right "needs root, to make namespaces"
  [ -x /usr/lib/systemd/systemd ] || skip "no systemd here"
  is_package || grep -qx 'CMAKE_INSTALL_PREFIX:PATH=/usr/local' "$build/CMakeCache.txt" || skip "not configured for /usr/local"
  (in_namespaces probe) >"$scratch/probe.log" 2>&1 || lacks_right "no such namespaces here: $(<"$scratch/probe.log")"

  mkfifo "$scratch/verdict"
  in_namespaces system &
  local machine=$! verdict=1
  read -r -t 120 verdict <>"$scratch/verdict" || true
  kill -KILL "$machine"
  wait "$machine" 2>/dev/null || true
  ((verdict == 0)) || fail "the machine's service failed: $(cat "$scratch/system.log" "$scratch/services.log")"
  if is_package; then echo ok && return; fi   # they are removed now
  (in_namespaces user) || fail "the user's service failed: $(cat "$scratch/user.log")"
  echo ok
}

here=$(readlink -f "$0")
case ${1:?usage: systemd_test.sh BUILD_FOLDER} in
  enter | remove | probe | system | user)
    build=$2 scratch=$3 group=$3/cgroups/kernix-${3##*.}
    case $1 in
      enter) enter_cgroup "$4" ;;
      remove) remove_cgroup ;;
      probe) enter_machine ;;
      *) "run_$1" ;;
    esac ;;
  *)
    build=$1 scratch=$(mktemp -d)
    mkdir "$scratch/cgroups"
    chmod 755 "$scratch"
    trap leave EXIT
    run_outside ;;
esac
