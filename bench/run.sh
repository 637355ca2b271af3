#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The side-by-side benchmark with brainevent 0.3.0: builds the kernix wheel for Python 3.12, puts both into an environment of their own
# (build/bench-venv), and prints the table. Arguments go to bench/side_by_side.py.
#
#   PYTHON312=/path/to/python3.12 bench/run.sh --rounds 7
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON312:-}
if [ -z "$python" ]; then
  for candidate in python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3.12; do
    command -v "$candidate" >/dev/null 2>&1 && "$candidate" --version >/dev/null 2>&1 && { python=$candidate; break; }
  done
fi
[ -n "$python" ] || { echo "bench: needs Python 3.12 (the reference supports no older one): set PYTHON312" >&2; exit 1; }

environment=build/bench-venv
if [ ! -x "$environment/bin/python" ]; then
  "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
fi
make wheel PYTHON="$python" >&2
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/kernix-*cp312*.whl
exec "$environment/bin/python" bench/side_by_side.py "$@"
