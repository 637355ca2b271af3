# SPDX-License-Identifier: Apache-2.0
"""Load kernels one after the other, and print their origins: ``load_one_by_one.py COUNT [BUILDS] [FREEZE]``.

After the first load, it waits until kernixd has made this many builds since its start. With FREEZE, it begins frozen.
"""

import json
import sys
import time

import kernels

import kernix
from kernix.loading import connection

count, builds = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
if len(sys.argv) > 3:
    kernix.freeze(sys.argv[3])
origins = []
for number in range(count):
    origins.append(kernix.load_cpp_inline(f"k{number}", kernels.constant(number), auto_register=False).origin)
    deadline = time.monotonic() + 120
    while connection.client().stats().builds < builds and time.monotonic() < deadline:
        time.sleep(0.01)
print(json.dumps(origins))
