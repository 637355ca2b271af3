# SPDX-License-Identifier: Apache-2.0
"""Fork while loads go on in the background: the child learns that it does not have them, and loads by itself."""

import os
import time
from concurrent.futures import CancelledError

import kernels
import numpy as np

import kernix
from kernix.loading import connection

options = {"extra_cflags": kernels.ENDLESS_FLAGS, "auto_register": False, "wait": False}
future = kernix.load_cpp_inline("endless", kernels.ENDLESS, **options)
loads = [{"name": "endless0", "cpp_sources": kernels.ENDLESS}, {"name": "six", "cpp_sources": kernels.constant(6)}]
many = kernix.load_many(loads, **options)
while "/" not in future.progress:  # "compile (0/3)"
    time.sleep(0.01)
if (child := os.fork()) == 0:
    for lost in (future, many):
        try:
            lost.result()
        except kernix.KernelDaemonError as error:
            print(f"child: KernelDaemonError: {str(error).partition(',')[0]}", flush=True)
    module = kernix.load_cpp_inline("seven", kernels.constant(7), auto_register=False, wait=False).result()
    print("child: loaded", int(module.value(np.zeros((), np.float32), out=np.zeros((), np.float32))), flush=True)
    os._exit(0)
os.waitpid(child, 0)
for kept in (future, many):
    assert kept.cancel()
    try:
        kept.result()
    except CancelledError:
        print("parent: cancelled")
while connection.client().info(start=False).running_jobs:
    pass
