#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets this Python use the build folder of its argument, as if the wheel were installed: package, programs, hooks."""

import pathlib
import re
import shutil
import sys
import sysconfig
import tomllib

build = pathlib.Path(sys.argv[1]).resolve()
source = pathlib.Path(__file__).resolve().parents[1]
packages = pathlib.Path(sysconfig.get_path("purelib"))
packages.joinpath("kernix.pth").write_text(f"{build}/python\n")
for program in ("kernixd", "kernixctl"):
    script = pathlib.Path(sysconfig.get_path("scripts"), program)
    script.write_text(f"#!{sys.executable}\nfrom kernix._environment import {program}\n\n{program}()\n")
    script.chmod(0o755)

# The hooks for builds of wheels are found by the package's metadata.
for old in packages.glob("kernix-*.dist-info"):
    shutil.rmtree(old)
(version,) = re.findall(r"project\(kernix VERSION ([0-9.]+)", source.joinpath("CMakeLists.txt").read_text())
metadata = packages / f"kernix-{version}.dist-info"
metadata.mkdir()
metadata.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: kernix\nVersion: {version}\n")
groups = tomllib.loads(source.joinpath("pyproject.toml").read_text())["project"]["entry-points"]
lines = [f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in of.items()) for group, of in groups.items()]
metadata.joinpath("entry_points.txt").write_text("\n".join(lines))
