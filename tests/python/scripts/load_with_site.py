# SPDX-License-Identifier: Apache-2.0
"""Load a kernel that needs libkxfake, with one more folder of packages.

Prints whether it was in the cache, and which library was opened.

load_with_site.py SITE SOURCE BUILD_DIRECTORY
"""

import pathlib
import sys

import kernix

site, source, build_directory = sys.argv[1:]
sys.path.insert(0, site)
module = kernix.load_cuda_file(
    source,
    extra_ldflags=["-lkxfake"],
    compute_capability="sm_90",
    auto_register=False,
    build_directory=build_directory,
)
maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
print(module.cache_hit, *{line.split()[-1] for line in maps if "libkxfake" in line})
