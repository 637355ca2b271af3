# SPDX-License-Identifier: Apache-2.0
"""``python -m kernix bundle``: what Python packages load, by ``kernixctl record`` and ``kernixctl bundle make``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import takewhile

from kernix import _environment
from kernix._errors import KernelError

_EPILOG = """\
What follows -- are options of `kernixctl bundle make`, which compiles the kernels: -j, --verbose and so on. A bundle
that is there already takes no part: each kernel comes from the sources as they are now.

exit codes: 0 the bundle is there; the program's, if it fails; else those of `kernixctl bundle make`

example:
  python -m kernix bundle mypackage:warm_up --arch 8.0,9.0 -o mypackage/kernels.kernix
"""


class BundleError(Exception):
    """A command of ``kernixctl`` failed. What it printed says why."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


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
        make_bundle(
            chosen.package, chosen.output, architectures=chosen.arch, options=options, python_path=source_folders(".")
        )
    except BundleError as error:
        print(f"python -m kernix bundle: {error}", file=sys.stderr)
        return error.code
    return 0


def source_folders(root: str) -> list[str]:
    """Return ``["src"]`` if a project has its packages there, and the folder is no package itself."""
    folder = os.path.join(root, "src")
    has_packages = os.path.isdir(folder) and not os.path.exists(os.path.join(folder, "__init__.py"))
    return ["src"] if has_packages else []


def make_bundle(
    kernels: Sequence[str],
    output: str,
    *,
    architectures: str = "",
    options: Sequence[str] = (),
    python_path: Sequence[str] = (),
) -> None:
    """Write a bundle, and replace the one that is there.

    Parameters
    ----------
    kernels : list of str
        ``"package"``, ``"package:function"``, or paths of sources, of folders of them and of manifests. Text with a
        ``/`` is a path, and so is what exists as a file.
    output : str
        The folder of the bundle.
    architectures : str, optional
        Of the loads that name none: ``"8.0,9.0"``. Default: that of the GPU here.
    options : list of str, optional
        Further options of ``kernixctl bundle make``.
    python_path : list of str, optional
        Where packages are searched first.

    Raises
    ------
    BundleError
        If something does not load or compile.
    """
    paths = [kernel for kernel in kernels if "/" in kernel or os.path.isfile(kernel)]
    packages = [kernel for kernel in kernels if kernel not in paths]
    with tempfile.TemporaryDirectory(prefix="kernix-bundle-") as folder:
        if packages:
            manifest = os.path.join(folder, "kernels.manifest")
            _record(packages, manifest, architectures, python_path)
            paths.append(manifest)
        chosen = ["--arch", architectures] if architectures else []
        _kernixctl(["bundle", "make", *paths, "--output", output, *chosen, *options], _environment.for_kernixctl())


def needs_of(bundle: str) -> tuple[set[str], set[str]]:
    """Return what a bundle's artifacts need: symbol versions, ``{"GLIBC_2.34"}``, and libraries, ``{"libc.so.6"}``."""
    shown = _kernixctl(["bundle", "show", bundle, "--json"], _environment.for_kernixctl(), stdout=subprocess.PIPE)
    kernels = json.loads(shown)
    versions, libraries = ({text for kernel in kernels for text in kernel[field]} for field in ("needs", "libraries"))
    return versions, libraries


def has_gpu() -> bool:
    """Return whether the driver shows a GPU."""
    from kernix import _core  # not for the build of each package where kernix is installed

    try:
        return bool(_core.gpu_architecture())
    except KernelError:
        return False


def _record(packages: Sequence[str], manifest: str, architectures: str, python_path: Sequence[str]) -> None:
    # A bundle that is there already must not take part: it may be damaged, or of another format.
    environment = {**_environment.for_kernixctl(), "KERNIX_BUNDLES": "none"}
    if architectures and not has_gpu():
        environment["BRAINEVENT_COMPUTE_CAPABILITIES"] = architectures
    program = [sys.executable, "-m", "kernix.packaging.recorded", os.pathsep.join(python_path), *packages]
    _kernixctl(["record", "--output", manifest, "--", *program], environment)


def _kernixctl(arguments: Sequence[str], environment: Mapping[str, str], stdout: int | None = None) -> str:
    program = _environment.program("kernixctl")
    if not program:
        raise BundleError("this installation of kernix lacks kernixctl: install kernix again")
    done = subprocess.run([program, *arguments], env=environment, check=False, stdout=stdout, text=True)
    if done.returncode == 0:
        return done.stdout or ""
    # A negative code is a signal's.
    code = done.returncode if done.returncode > 0 else 128 - done.returncode
    if arguments[0] == "record":
        raise BundleError(f"the program whose kernels are recorded has failed with exit code {code}", code)
    raise BundleError(f"`kernixctl {' '.join(arguments[:2])}` has failed with exit code {code}", code)
