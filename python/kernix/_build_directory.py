# SPDX-License-Identifier: Apache-2.0
"""The folder that ``build_directory=`` names: what was compiled, for its user to look at."""

from __future__ import annotations

import os

from kernix._errors import KernelResourceError
from kernix._module import CompiledModule
from kernix._request import Request

__all__ = ["write_build_directory"]

# Never the name of a source: the folder may be the one in which the user's own file lies.
_SUFFIX = {"cpp": ".kernix.cpp", "cuda": ".kernix.cu"}


def write_build_directory(directory: str | os.PathLike[str], request: Request, module: CompiledModule) -> None:
    """Write what `module` was made from and its library into `directory`.

    The files are ``<name>.kernix.cpp`` or ``<name>.kernix.cu`` (the generated translation unit) and ``<name>.so``.
    """
    import shutil

    stem = os.path.join(directory, request.name)
    temporary = f"{stem}.{os.getpid()}.tmp"
    try:
        os.makedirs(directory, exist_ok=True)
        with open(temporary, "wb") as source:
            source.write(module._core.generated_source)
        os.replace(temporary, stem + _SUFFIX[request.language])
        # Beside, then over: the earlier copy may be mapped by somebody, and is not to change under them.
        shutil.copyfile(module.path, temporary)
        os.replace(temporary, f"{stem}.so")
    except OSError as error:
        raise KernelResourceError(f"cannot write to build_directory {directory}: {error}") from error
