# SPDX-License-Identifier: Apache-2.0
"""Load a kernel whose compilation does not end. Says ``compiling`` once the daemon works on it; Ctrl-C ends it.

With the argument ``verbose`` the load is verbose; with ``many`` it is one of two.
"""

import signal
import sys
import threading

import kernels

import kernix
from kernix.loading import connection


def say_when_compiling():
    """Ask the daemon until it runs a job. Python runs here while the main thread waits in the load."""
    while True:
        try:
            if connection.client().info(start=False).running_jobs >= 1:
                break
        except kernix.KernelDaemonError:
            pass  # it is being started
    print("compiling", flush=True)


# A shell has what it starts in the background ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=say_when_compiling, daemon=True).start()
endless = {
    "name": "endless",
    "cpp_sources": kernels.ENDLESS,
    "extra_cflags": kernels.ENDLESS_FLAGS,
    "auto_register": False,
    "verbose": sys.argv[1:] == ["verbose"],
}
if sys.argv[1:] == ["many"]:
    kernix.load_many([endless, {"name": "one", "cpp_sources": kernels.constant(1)}], auto_register=False)
else:
    kernix.load_cpp_inline(**endless)
