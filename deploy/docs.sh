#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the documentation site into build/site, with MkDocs in an environment of its own (.venv-docs). A link that leads
# nowhere, or a page that is missing in the navigation, fails the build.
#
#   deploy/docs.sh [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}

stamp=.venv-docs/kernix-docs
wanted=$({ "$python" --version; cat deploy/requirements-docs.txt; } | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  echo "docs: setting up .venv-docs" >&2
  rm -rf .venv-docs
  "$python" -m venv .venv-docs
  .venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -r deploy/requirements-docs.txt
  echo "$wanted" >"$stamp"
fi

export NO_MKDOCS_2_WARNING=1   # the theme's advertisement
.venv-docs/bin/python -m mkdocs build --strict   # not --quiet: it then counts no warnings
echo "docs: read build/site/index.html, or with search: $python -m http.server --directory build/site"
