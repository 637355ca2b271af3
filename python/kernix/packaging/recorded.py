# SPDX-License-Identifier: Apache-2.0
"""The program that is recorded: it imports packages, and calls functions of them.

``python -m kernix.packaging.recorded FOLDERS PACKAGE[:FUNCTION]...`` searches FOLDERS first, which a ``:`` separates.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from operator import attrgetter


def main() -> None:
    """Import each package, and call the functions that are named."""
    _, folders, *targets = sys.argv
    sys.path[:0] = filter(None, folders.split(os.pathsep))
    for target in targets:
        _load(*target.split(":", 1))


def _load(name: str, function: str = "") -> None:
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # a module that the package itself lacks
        sys.exit(f"kernix: there is no module {error.name!r} in {', '.join(filter(None, sys.path))}")
    if not function:
        return
    try:
        found = attrgetter(function)(module)
    except AttributeError as error:
        sys.exit(f"kernix: {error}")
    found()


if __name__ == "__main__":
    main()
