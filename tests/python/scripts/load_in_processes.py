# SPDX-License-Identifier: Apache-2.0
"""Load kernels in this process and in its children: forked, spawned, started as programs, and killed."""

import multiprocessing
import os
import signal
import sys

import kernels

import kernix


def load(name, source=None, **options):
    """Load a module, each from another source, without JAX."""
    return kernix.load_cpp_inline(name, source or kernels.constant(len(name)), auto_register=False, **options)


def load_and_die(name):
    """End as a process does that the kernel kills for lack of memory."""
    load(name)
    os.kill(os.getpid(), signal.SIGKILL)


def main(include):
    """Load all."""
    load("parent")
    source = kernels.constant("ANSWER").replace("// @BE", '#include "answer.h"\n// @BE')
    load("with_header", source, extra_include_paths=[include])
    pid = os.fork()
    if pid == 0:
        load("parent")  # which this process has already
        load("forked")
        os._exit(0)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]
    for method, target, name in [("spawn", load, "spawned"), ("spawn", load_and_die, "killed")]:
        process = multiprocessing.get_context(method).Process(target=target, args=(name,))
        process.start()
        process.join()
        codes.append(process.exitcode)
    codes.append(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, include, "child"]))
    assert codes == [0, 0, -signal.SIGKILL, 0], codes


if __name__ == "__main__":
    if len(sys.argv) > 2:
        load(sys.argv[2])
    else:
        main(sys.argv[1])
