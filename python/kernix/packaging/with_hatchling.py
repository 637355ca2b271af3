# SPDX-License-Identifier: Apache-2.0
"""A build hook for hatchling, which asks for it by ``[tool.hatch.build.targets.wheel.hooks.kernix]``."""

from __future__ import annotations

import tempfile
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from kernix.packaging.project import build_bundle, read_settings


class KernixBuildHook(BuildHookInterface[BuilderConfig]):
    """Puts the bundle of ``[tool.kernix]`` into a wheel. An editable one compiles as its sources change."""

    PLUGIN_NAME = "kernix"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the bundle."""
        if self.target_name != "wheel" or version == "editable":
            return
        settings = read_settings(self.root)
        if settings is None:
            raise RuntimeError("pyproject.toml lacks the table [tool.kernix]")
        self._folder = tempfile.TemporaryDirectory(prefix="kernix-wheel-")  # until the wheel is written
        output = f"{self._folder.name}/bundle"
        build_data["tag"] = build_bundle(self.root, settings, output)
        build_data["pure_python"] = False
        build_data["force_include"][output] = settings.bundle
        # It replaces what lies there among the sources, such as an earlier bundle.
        config = self.build_config
        config.target_config["exclude"] = [
            *config.target_config.get("exclude", config.build_config.get("exclude", [])),
            f"**/{settings.bundle}",
        ]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the wheel has a copy of."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


@hookimpl
def hatch_register_build_hook() -> type[KernixBuildHook]:
    """Tell hatchling of the hook."""
    return KernixBuildHook
