#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The side-by-side benchmark with brainevent 0.3.0. Builds the kernix wheel for Python 3.12, installs both packages in a
# separate environment, and prints the table. Passes its arguments to bench/side_by_side.py.
#
#   PYTHON312=/path/to/python3.12 bench/run.sh --rounds 7
#
# BENCH_ENVIRONMENT: the folder of that environment (default: build/bench-venv). It is created again if its contents
# must change.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON312:-}
if [ -z "$python" ]; then
  for candidate in python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3.12; do
    if "$candidate" --version >/dev/null 2>&1; then python=$candidate; break; fi
  done
fi
[ -n "$python" ] || { echo "bench: needs Python 3.12 (the reference supports no older one): set PYTHON312" >&2; exit 1; }

environment=${BENCH_ENVIRONMENT:-build/bench-venv}
stamp=$environment/kernix-bench
wanted=$({ "$python" -c 'import sys; print(sys.executable, sys.version)'; cat bench/requirements.txt; } | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  echo "bench: setting up $environment" >&2
  rm -rf "$environment"
  "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
  echo "$wanted" >"$stamp"
fi

deploy/setup.sh packages
wheel=$(deploy/wheel.sh "$python")
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheel"
exec "$environment/bin/python" bench/side_by_side.py "$@"
