#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets this Python use the build folder of its argument, as if the wheel were installed: package and programs."""

import pathlib
import sys
import sysconfig

build = pathlib.Path(sys.argv[1]).resolve()
pathlib.Path(sysconfig.get_path("purelib"), "kernix.pth").write_text(f"{build}/python\n")
for program in ("kernixd", "kernixctl"):
    script = pathlib.Path(sysconfig.get_path("scripts"), program)
    script.write_text(f"#!{sys.executable}\nfrom kernix._environment import {program}\n\n{program}()\n")
    script.chmod(0o755)
