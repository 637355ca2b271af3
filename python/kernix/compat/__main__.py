# SPDX-License-Identifier: Apache-2.0
"""Run a Python program with another package's loaders routed to kernixd.

``python -m kernix.compat brainevent script.py [arguments]``, or ``... brainevent -m module [arguments]``.
"""

from __future__ import annotations

import os
import runpy
import sys

from kernix.compat import brainevent

_USAGE = "usage: python -m kernix.compat brainevent (SCRIPT | -m MODULE) [ARGUMENT ...]"


def main() -> None:
    """Install the layer that the command line names, and run the program as Python itself would."""
    package, *program = sys.argv[1:] or [""]
    as_module = program[:1] == ["-m"]
    program = program[as_module:]
    if package != "brainevent" or not program:
        print(_USAGE, file=sys.stderr)
        raise SystemExit(2)
    sys.argv = program
    # `-m kernix.compat` has put the working folder first in the path; a script expects its own folder there.
    if not getattr(sys.flags, "safe_path", False):  # -P, since Python 3.11: Python has put nothing first
        sys.path[0] = os.getcwd() if as_module else os.path.dirname(os.path.abspath(program[0]))
    brainevent.install()
    if as_module:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main()
