# SPDX-License-Identifier: Apache-2.0
"""Load a kernel that needs libkxfake, with one more folder of packages.

Prints whether it was in the cache, and which library was opened.

load_with_site.py SITE SOURCE BUILD_DIRECTORY
"""

import pathlib
import sys

from kernix import _environment

site, source, build_directory = sys.argv[1:]
sites = [site, *_environment.site_packages()]
_environment.site_packages = lambda: sites

import kernix  # noqa: E402  the folder has to be known before

module = kernix.load_cuda_file(
    source,
    extra_ldflags=["-lkxfake"],
    compute_capability="sm_90",
    auto_register=False,
    build_directory=build_directory,
)
maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
print(module.cache_hit, *{line.split()[-1] for line in maps if "libkxfake" in line})
