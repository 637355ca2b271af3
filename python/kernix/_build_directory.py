# SPDX-License-Identifier: Apache-2.0
"""The folder that ``build_directory=`` names: what was compiled, for its user to look at."""

from __future__ import annotations

import os

from kernix import _core
from kernix._errors import KernelLoadError, KernelResourceError
from kernix._module import CompiledModule
from kernix._request import Request

__all__ = ["write_build_directory"]

# Never the name of a source: the folder may be the one in which the user's own file lies.
_SUFFIX = {_core.Language.CPP: ".kernix.cpp", _core.Language.CUDA: ".kernix.cu"}


def _generated_files(name: str, module: CompiledModule) -> dict[str, bytes]:
    units = module._core.generated_units
    if len(units) == 1:
        return {name + _SUFFIX[units[0].language]: units[0].text}
    return {f"{name}.{number}{_SUFFIX[unit.language]}": unit.text for number, unit in enumerate(units)}


def write_build_directory(directory: str | os.PathLike[str], request: Request, module: CompiledModule) -> None:
    """Write what `module` was made from and its library into `directory`.

    The files are ``<name>.kernix.cpp`` or ``<name>.kernix.cu`` (the generated translation unit; of separate units
    ``<name>.0.kernix.cu`` and so on) and ``<name>.so``.
    """
    import tempfile  # here: it would double the time of `import kernix`

    try:
        with open(module.path, "rb") as file:
            library = file.read()
    except OSError as error:
        raise KernelLoadError(
            f"cannot copy the compiled library {module.path} to build_directory: {error.strerror or error}. If it was "
            "evicted from the cache meanwhile, load again."
        ) from error
    files = {**_generated_files(request.name, module), f"{request.name}.so": library}
    try:
        os.makedirs(directory, exist_ok=True)
        # Beside, then over: whoever has the earlier files mapped or open keeps them as they were.
        with tempfile.TemporaryDirectory(prefix=".kernix-", dir=directory) as beside:
            for name, content in files.items():
                with open(os.path.join(beside, name), "wb") as file:
                    file.write(content)
                os.replace(os.path.join(beside, name), os.path.join(directory, name))
    except OSError as error:
        raise KernelResourceError(f"cannot write to build_directory {directory}: {error}") from error
