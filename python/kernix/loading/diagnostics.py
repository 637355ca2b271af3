# SPDX-License-Identifier: Apache-2.0
"""What ``kernixctl doctor`` finds, for users and for bug reports."""

from __future__ import annotations

from kernix import _environment
from kernix.jax.targets import list_registered_targets
from kernix.loading.connection import store_override

__all__ = ["doctor", "print_diagnostics"]


def print_diagnostics() -> None:
    """Print to ``sys.stdout`` what ``kernixctl doctor`` finds, and the targets that JAX knows.

    It examines compilers, GPU, daemon and store, and compiles small kernels. It starts a daemon if none is running.
    ``python -m kernix`` examines Python and JAX, too.
    """
    print(doctor()[1], end="")
    print(f"{'':<6}{'targets':<14}{', '.join(list_registered_targets()) or 'none registered'}")


def doctor() -> tuple[int, str]:
    """Run ``kernixctl doctor`` for the store of this process. Return its exit code and its lines."""
    import subprocess  # here: it would make `import kernix` slower

    program = _environment.program("kernixctl")
    if not program:
        return 1, "fail  kernixctl     this installation of kernix lacks it: install kernix again\n"
    environment = _environment.for_kernixctl()
    if store := store_override():
        environment["KERNIX_CACHE_DIR"] = store
    done = subprocess.run([program, "doctor"], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout
