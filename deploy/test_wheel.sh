#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test_wheel.sh WHEEL [PYTHON]
# Installs a wheel into a bare environment outside the repository and uses it from there: kernels on NumPy arrays
# before JAX is installed, programs, kernels through JAX, and a process that it shares with PyPI's grpcio and
# protobuf, imported before and after it. Then it runs the README's example by the README's three commands.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(realpath "$1")
python=$(realpath "$(command -v "${2:-$repository/.venv/bin/python}")")

scratch=$(mktemp -d)
stop() {
  "$scratch/venv/bin/kernixctl" shutdown >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap stop EXIT
# Uses nothing of this machine's kernix: it has a home, a runtime folder and a search path of its own.
export HOME="$scratch/home" XDG_RUNTIME_DIR="$scratch/run"
unset KERNIX_ADDRESS KERNIX_CACHE_DIR KERNIXD XDG_CACHE_HOME PYTHONPATH LD_LIBRARY_PATH
mkdir -m 700 "$HOME" "$XDG_RUNTIME_DIR"
cd "$scratch"

"$python" -m venv venv
grep -hE '^(jax|jaxlib|numpy|grpcio|protobuf)==' "$repository"/deploy/requirements{,-tests}.txt >requirements.txt
# Python 3.10 has older versions only.
if "$python" -c 'import sys; sys.exit(sys.version_info >= (3, 11))'; then sed -i 's/==.*//' requirements.txt; fi
venv/bin/python -m pip install --quiet --disable-pip-version-check "$wheel" "$(grep ^numpy requirements.txt)"

echo '== a kernel, where JAX is not installed'
venv/bin/python "$repository/deploy/test_wheel.py" without-jax

venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt

echo '== programs'
venv/bin/kernixd --version
venv/bin/kernixctl --version
# Nothing but what every Linux with GCC's runtime has.
system='linux-vdso|ld-linux-[a-z0-9-]+|libc|libm|libdl|libpthread|libgcc_s'
for program in venv/lib/python*/site-packages/kernix/{bin/*,_core.*.so}; do
  foreign=$(ldd "$program" | grep -vE "^[[:space:]]*([^[:space:]]*/)?($system)\.so\.[0-9]+ (=> /|\()" || true)
  if [[ -n "$foreign" ]]; then
    printf '%s needs what is not part of every system:\n%s\n' "$program" "$foreign" >&2
    exit 1
  fi
done
for order in before after never; do
  echo "== a kernel, with grpcio and protobuf imported: $order"
  venv/bin/python "$repository/deploy/test_wheel.py" "$order"
done
venv/bin/kernixctl cache stats --json

echo "== the README's three commands"
awk '/^...python$/ { inside = 1; next } /^...$/ { inside = 0 } inside' "$repository/README.md" >hello.py
commands=$(awk '/^python3 -m venv env$/ { inside = 1 } /^...$/ { inside = 0 } inside' "$repository/README.md")
echo "$commands"
cp "$wheel" .
python3() { command "$python" "$@"; }
export PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=requirements.txt
venv/bin/kernixctl shutdown >/dev/null
started=$SECONDS
eval "$commands" >printed
echo "$((SECONDS - started)) s"
diff printed - <<<$'[1. 2. 3. 4. 5.]\n15.0'
