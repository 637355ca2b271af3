# SPDX-License-Identifier: Apache-2.0
"""``python -m kernix``: check this Python and JAX, and all else by ``kernixctl doctor``; make bundles; tune kernels."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

# A look at the devices must not take most of a GPU's memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from kernix import _core, _environment
from kernix.loading.connection import doctor
from kernix.packaging.bundle import bundle, has_gpu
from kernix.packaging.image import image
from kernix.tuning.command import tune

_SOURCE = """#include "brainevent/common.h"
// @BE add_one
void add_one(BE::In<float> x, BE::Out<float> y) {
  for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] + 1;
}
"""

Finding = tuple[str, str]


def main() -> int:
    """Do what the arguments say. Return an exit code."""
    command = {"bundle": bundle, "image": image, "tune": tune}.get(sys.argv[1]) if len(sys.argv) > 1 else None
    try:
        return command(sys.argv[2:]) if command is not None else _examine()
    except KeyboardInterrupt:
        return 130  # as kernixctl


def _examine() -> int:
    """Print one line for each finding. Return 1 if something failed, 0 otherwise."""
    parser = argparse.ArgumentParser(
        prog="python -m kernix",
        description="Examine Python, JAX, compilers, GPU, daemon and store, and compile and call a kernel.",
        epilog="Each line begins with ok, warn or fail; the text below a problem says what to do. There are more "
        "commands: `python -m kernix bundle` compiles the kernels of a package for machines without a compiler, "
        "`image` makes an OCI image of a bundle, and `tune` finds the fastest variant of a kernel.",
    )
    parser.parse_args()
    failed = False
    for subject, check in (("Python", _python), ("JAX", _jax), ("nvcc wheels", _wheels), ("call", _call)):
        state, text = _guarded(check)
        indented = text.rstrip().replace("\n", "\n" + " " * 20)
        print(f"{state:<6}{subject:<14}{indented}", flush=True)
        failed |= state == "fail"
    code, findings = doctor()
    print(findings, end="")
    return int(code != 0 or failed)


def _guarded(check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except Exception as error:  # whatever is broken here must not hide the other lines
        return "fail", f"{type(error).__name__}: {error}"


def _python() -> Finding:
    folder = os.path.dirname(os.path.abspath(__file__))
    return "ok", f"{sys.version.split()[0]} at {sys.executable}; kernix {_core.version()} in {folder}"


def _jax() -> Finding:
    try:
        installed = f"jax {version('jax')}, jaxlib {version('jaxlib')}"
    except PackageNotFoundError:
        return "warn", "not installed: kernels can be called on NumPy, PyTorch and CuPy arrays only\npip install jax"
    import jax

    platforms = sorted({device.platform for device in jax.devices()})
    text = f"{installed}, platforms: {', '.join(platforms)}"
    if platforms == ["cpu"] and has_gpu():
        return "warn", f"{text}\nThe driver shows a GPU that JAX does not use: pip install 'jax[cuda13]' (or cuda12)."
    return "ok", text


def _wheels() -> Finding:
    folders = _environment.site_packages()
    if not folders:
        return "ok", "none: nvcc must be installed on the machine"
    return "ok", f"looked for in {', '.join(folders)}"


def _call() -> Finding:
    import numpy

    import kernix

    module = kernix.load_cpp_inline("kernix_doctor", _SOURCE)
    x = numpy.arange(3, dtype=numpy.float32)
    y = numpy.asarray(module.add_one(x))
    kernix.clear_cache(name="kernix_doctor")
    if y.tolist() != [1.0, 2.0, 3.0]:
        return "fail", f"add_one([0, 1, 2]) gave {y.tolist()}: please report that"
    return "ok", "add_one([0, 1, 2]) = [1, 2, 3]"


if __name__ == "__main__":
    sys.exit(main())
