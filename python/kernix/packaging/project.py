# SPDX-License-Identifier: Apache-2.0
"""The part of a wheel's build that each build backend has in common: from ``[tool.kernix]`` to a bundle and a tag."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from kernix.packaging.bundle import BundleError, make_bundle, needs_of, source_folders

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: manylinux2014, the oldest tag that today's pips see in the wild.
_OLDEST = 17

#: What the tag manylinux_2_N allows, by library: the newest version, and N. As auditwheel has it for both processors.
_NEWEST = {
    "GLIBCXX": {
        (3, 4, 19): 17,
        (3, 4, 22): 24,
        (3, 4, 24): 27,
        (3, 4, 28): 31,
        (3, 4, 29): 34,
        (3, 4, 30): 35,
        (3, 4, 33): 39,
    },
    "CXXABI": {(1, 3, 7): 17, (1, 3, 10): 24, (1, 3, 11): 27, (1, 3, 12): 31, (1, 3, 13): 34, (1, 3, 15): 39},
    "GCC": {(4, 8, 0): 17, (7, 0, 0): 27, (12, 0, 0): 35, (14, 0, 0): 39},
}

#: What each manylinux tag promises, of what g++ and nvcc link, and NVIDIA's, which come with the driver or its wheels.
_LIBRARIES = re.compile(
    r"(ld-linux-.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|resolv|util|nsl)"
    r"|lib(cuda|cudart|cublas|cudnn|cufft|cufile|cupti|curand|cusolver|cusparse|cutensor|nccl|npp|nvrtc|nvJitLink|nvjpeg"
    r"|nvToolsExt|nvshmem|nvidia|nvvm)[\w-]*)\.so\.\d+"
)


class Settings(NamedTuple):
    """The table ``[tool.kernix]`` of a ``pyproject.toml``."""

    load: list[str]  # as for make_bundle(); paths are relative to the project
    bundle: str  # its path inside the wheel
    architectures: list[str]
    python_path: list[str]  # where the packages of `load` are
    sign_with_env: str  # the environment variable that names the file of the signing key


_TYPES: dict[str, type[str] | type[list[str]]] = {
    "load": list,
    "bundle": str,
    "architectures": list,
    "python-path": list,
    "sign-with-env": str,
}


def read_settings(root: str) -> Settings | None:
    """Return the settings of the project in this folder, or None if it has none.

    Raises
    ------
    ValueError
        If the table has something that kernix does not know.
    """
    try:
        with open(os.path.join(root, "pyproject.toml"), "rb") as file:
            table = tomllib.load(file).get("tool", {}).get("kernix")
    except FileNotFoundError:
        return None
    if table is None:
        return None
    _check(table)
    return Settings(
        load=table["load"],
        bundle=os.path.normpath(table["bundle"]),
        architectures=table.get("architectures", []),
        python_path=table.get("python-path", source_folders(root) or ["."]),
        sign_with_env=table.get("sign-with-env", ""),
    )


def build_bundle(root: str, settings: Settings, output: str) -> str:
    """Write the project's bundle to the folder `output`, and return the tag of a wheel that has it.

    Raises
    ------
    RuntimeError
        If a kernel does not compile, or cannot be in a wheel. It says what to do.
    """
    try:
        make_bundle(
            [_path_below(root, kernel) for kernel in settings.load],
            output,
            architectures=",".join(settings.architectures),
            options=_signing(settings),
            python_path=[os.path.join(root, folder) for folder in settings.python_path],
        )
        versions, libraries = needs_of(output)
        others = [name for name in sorted(libraries) if not _LIBRARIES.fullmatch(name)]
        if others:
            print(
                f"kernix: warning: the kernels need {', '.join(others)}, which other machines may lack: users must "
                "have installed it, or your package must bring and load it",
                file=sys.stderr,
            )
        return f"py3-none-{platform_tag(versions)}"
    except (BundleError, ValueError) as error:
        sys.stderr.flush()
        raise RuntimeError(f"[tool.kernix]: {error}") from error


def platform_tag(needs: Iterable[str]) -> str:
    """Return the tag of the oldest systems like this one that have these symbol versions: ``"manylinux_2_28_x86_64"``.

    Parameters
    ----------
    needs : iterable of str
        ``"GLIBC_2.34"``, ``"GLIBCXX_3.4.30"``.

    Raises
    ------
    ValueError
        If no tag is known to promise one of them.
    """
    minor = max((_minor_for(need) for need in needs), default=_OLDEST)
    return f"manylinux_2_{max(minor, _OLDEST)}_{platform.machine()}"


def _minor_for(need: str) -> int:
    library, _, text = need.partition("_")
    if need == "GLIBC_ABI_DT_RELR":
        return 36
    if re.fullmatch(r"\d+(\.\d+)*", text):
        version = tuple(int(part) for part in text.split("."))
        if library == "GLIBC":
            return version[1]
        for newest, minor in _NEWEST.get(library, {}).items():
            if version <= newest:
                return minor
    raise ValueError(f"no manylinux tag promises {need}, which the compiled kernels need")


def _check(table: dict[str, Any]) -> None:
    for name, value in table.items():
        if name not in _TYPES:
            raise ValueError(f"[tool.kernix] has {name!r}; it may have {', '.join(_TYPES)}")
        if not isinstance(value, _TYPES[name]) or any(not isinstance(each, str) for each in value):
            wanted = "a list of strings" if _TYPES[name] is list else "a string"
            raise ValueError(f"{name} of [tool.kernix] must be {wanted}")
    for name in ("load", "bundle"):
        if not table.get(name):
            raise ValueError(f"[tool.kernix] lacks {name!r}")
    path = table["bundle"]
    if os.path.isabs(path) or os.path.normpath(path).split("/")[0] in (".", ".."):
        raise ValueError(f"bundle of [tool.kernix] is a path inside the wheel, not {path}")


def _path_below(root: str, kernel: str) -> str:
    path = os.path.join(root, kernel)
    return path if "/" in kernel or os.path.isfile(path) else kernel


def _signing(settings: Settings) -> list[str]:
    if not settings.sign_with_env:
        return []
    key = os.environ.get(settings.sign_with_env, "")
    if not key:
        raise ValueError(f"${settings.sign_with_env} must name the file of the signing key")
    return ["--sign-with", key]
