# SPDX-License-Identifier: Apache-2.0
"""``python -m kernix bundle``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import takewhile

from kernix.packaging.bundle import BundleError, make_bundle

_EPILOG = """\
What follows -- are options of `kernixctl bundle make`, which compiles the kernels: -j, --verbose and so on. A bundle
that is there already takes no part: each kernel comes from the sources as they are now.

exit codes: 0 the bundle is there; the program's, if it fails; else those of `kernixctl bundle make`

example:
  python -m kernix bundle mypackage:warm_up --arch 8.0,9.0 -o mypackage/kernels.kernix
"""


def bundle(arguments: Sequence[str]) -> int:
    """Make the bundle that `arguments` ask for. Return an exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m kernix bundle",
        description="Compile the kernels that Python packages load, into a bundle: a folder from which programs load "
        "them without a compiler and without kernixd.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "package",
        nargs="+",
        metavar="PACKAGE[:FUNCTION]",
        help="import this package, and call this function of it, which loads kernels; or a path of a source file",
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="write the bundle to this folder")
    parser.add_argument(
        "--arch",
        default="",
        help="GPU architectures of the loads that name none: 8.0,9.0 (default: this machine's GPU)",
    )
    parser.add_argument("--sign-with", metavar="KEY", help="sign each kernel with this Ed25519 key")
    own = list(takewhile(lambda argument: argument != "--", arguments))
    chosen = parser.parse_args(own)
    signing = ["--sign-with", chosen.sign_with] if chosen.sign_with else []
    options = [*signing, *arguments[len(own) + 1 :]]
    try:
        make_bundle(chosen.package, chosen.output, architectures=chosen.arch, options=options)
    except BundleError as error:
        print(f"python -m kernix bundle: {error}", file=sys.stderr)
        return error.code
    return 0
