# SPDX-License-Identifier: Apache-2.0
"""Commands of setuptools, for each project whose ``pyproject.toml`` has ``[tool.kernix]``.

setuptools calls :func:`finalize_distribution_options` for every project that is built where kernix is installed.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

from kernix.packaging.project import Settings, build_bundle, read_settings

if TYPE_CHECKING:
    from setuptools import Distribution


def finalize_distribution_options(distribution: Distribution) -> None:
    """Let a project with ``[tool.kernix]`` put its bundle into its wheel."""
    root = distribution.src_root or os.curdir
    settings = read_settings(root)
    if settings is None:
        return
    from setuptools.command.bdist_wheel import bdist_wheel
    from setuptools.command.build_py import build_py

    commands = distribution.cmdclass
    builder = commands.get("build_py", build_py)
    commands["build_py"] = _with_bundle(builder, os.path.abspath(root), settings)
    has_modules = bool(distribution.ext_modules)
    distribution.has_ext_modules = lambda: True  # the wheel is for one platform
    commands["bdist_wheel"] = _with_tag(commands.get("bdist_wheel", bdist_wheel), has_modules)


def _with_bundle(base: Any, root: str, settings: Settings) -> Any:
    class BuildWithBundle(base):  # type: ignore[misc]
        def run(self) -> None:
            super().run()
            if not self.editable_mode:
                output = os.path.join(self.build_lib, settings.bundle)
                shutil.rmtree(output, ignore_errors=True)  # one that lies among the sources
                os.makedirs(os.path.dirname(output), exist_ok=True)
                self.distribution.kernix_tag = build_bundle(root, settings, output)

    return BuildWithBundle


def _with_tag(base: Any, has_modules: bool) -> Any:
    class WheelWithTag(base):  # type: ignore[misc]
        def get_tag(self) -> tuple[str, ...]:
            tag = getattr(self.distribution, "kernix_tag", None)  # an editable wheel has none
            if has_modules:  # which are for one Python
                python, abi, platform = super().get_tag()
                return python, abi, tag.split("-")[2] if tag else platform
            return ("py3", "none", "any") if tag is None else tuple(tag.split("-"))

    return WheelWithTag
