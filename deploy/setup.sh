#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what this machine lacks to build, test and run kernix: Debian packages (Debian 12 and Ubuntu 24.04 name them
# alike) and a Python environment in .venv. You can repeat it: it leaves alone what is there.
#
#   PYTHON=python3.12 deploy/setup.sh    # another Python than python3 (3.11 or newer)
#   deploy/setup.sh product              # only what building and running kernix takes, without its tests
#   deploy/setup.sh packages             # the Debian packages alone
#   deploy/setup.sh deb                  # these, and what makes and tries packages for Debian
#   deploy/setup.sh cross                # these, and what builds for aarch64 and tries it
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

what=${1:-all}
case $what in all | product | packages | deb | cross) ;; *) die "there is no '$what' to set up" ;; esac
case $(uname -sm) in
  "Linux x86_64" | "Linux aarch64") ;;
  *) die "kernix supports Linux on x86-64 and aarch64; this is $(uname -sm)." ;;
esac

# --- Python: which one -----------------------------------------------------------------------------------------------
python=${PYTHON:-python3}
check_python() {
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "kernix needs Python 3.11 or newer; $python is $("$python" --version). Name another: PYTHON=python3.12 make ..."
}
python_path=$(command -v "$python" || true)
if [ -n "$python_path" ]; then
  check_python   # before anything is installed
elif [ "$python" != python3 ]; then
  die "there is no $python; PYTHON names the Python to use, 3.11 or newer."
fi

# --- Debian packages -------------------------------------------------------------------------------------------------
packages=(
  build-essential cmake ninja-build ccache pkg-config git
  libgrpc++-dev libminizip-dev libnghttp2-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev
  libsqlite3-dev libssl-dev libseccomp-dev libcli11-dev libevent-dev libtomlplusplus-dev libc-ares-dev libre2-dev zlib1g-dev
  libgtest-dev libgmock-dev   # CMake asks for them before it builds anything
)
if [ "$what" != product ]; then
  packages+=(clang libclang-rt-dev clang-format clangd shellcheck systemd zsh groff-base)
  packages+=(bubblewrap openssl libpcre2-8-0)   # what the tests run around an engine (tests/support/engine)
  packages+=(skopeo)   # reads the images that bundles become
  packages+=(prometheus)   # scrapes `kernixctl web`
  # Opens its page, and the documentation site. Ubuntu has it only as a snap.
  if grep -qx 'ID=debian' /etc/os-release; then packages+=(chromium); fi
fi
case $python_path in
  "" | /usr/bin/python3* | /bin/python3*)   # the distribution's own Python, in packages of its own
    name=$(basename "$python")
    packages+=("$name" "$name-venv" "$name-dev") ;;
esac
if [ "$what" = deb ]; then packages+=(debhelper dh-python lintian debootstrap buildah); fi
if [ "$what" = cross ]; then packages+=(g++-aarch64-linux-gnu qemu-user-static); fi

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || die "these Debian packages are missing, and there is no apt-get: ${missing[*]}"
  sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "need root or sudo to install: ${missing[*]}"
    sudo=(sudo)
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  "${sudo[@]}" apt-get update -q
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
  # Its package starts it; tests start their own.
  case " ${missing[*]} " in *" prometheus "*) "${sudo[@]}" systemctl disable --now prometheus 2>/dev/null || true ;; esac
fi

case $what in packages | deb | cross) exit 0 ;; esac

# --- Python environment ----------------------------------------------------------------------------------------------
check_python

# Whether there is a CUDA toolkit that kernix can use: 12 or newer (Debian 12's own package is 11.8).
have_nvcc() {
  local nvcc release
  for nvcc in ${CUDA_HOME:+"$CUDA_HOME/bin/nvcc"} ${CUDA_PATH:+"$CUDA_PATH/bin/nvcc"} nvcc /usr/local/cuda/bin/nvcc; do
    release=$("$nvcc" --version 2>/dev/null | sed -nE 's/.*release ([0-9]+)\..*/\1/p')
    [ "${release:-0}" -lt 12 ] || return 0
    [ -z "$release" ] || say "$nvcc is of CUDA $release, which is too old. Set BRAINEVENT_NVCC_PREFER=pip for the one in .venv."
  done
  return 1
}
files=(deploy/requirements.txt)
if compgen -G '/dev/nvidia[0-9]*' >/dev/null || [ -e /dev/dxg ]; then
  files+=(deploy/requirements-gpu.txt)   # a GPU: JAX's plugin for it
fi
have_nvcc || files+=(deploy/requirements-nvcc.txt)   # the compiler as PyPI wheels
if [ "$what" = all ]; then files+=(deploy/requirements-tests.txt); fi

stamp=.venv/kernix-setup-$what
wanted=$({ echo "${files[*]}"; "$python" --version; cat "${files[@]}"; } | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  say "setting up the Python environment in .venv"
  # The environment was made with another Python: make a new one.
  if [ -x .venv/bin/python ] && [ "$(.venv/bin/python --version)" != "$("$python" --version)" ]; then rm -rf .venv; fi
  .venv/bin/python -m pip --version >/dev/null 2>&1 || { rm -rf .venv; "$python" -m venv .venv; }
  # Python compiles what it imports; pip would compile everything.
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile "${files[@]/#/--requirement=}"
  echo "$wanted" >"$stamp"
fi

if [ "$what" = all ]; then tests/support/engine/install.sh; fi
