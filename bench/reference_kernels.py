# SPDX-License-Identifier: Apache-2.0
"""Load every CUDA file of an installed brainevent with the package's own loader, with the compat layer installed.

Prints one line per file. Exits with 1 if a file that the package can load itself does not load through kernixd, does
not register the same names, or has another spec for one of them. A file that does not load is also loaded with the
package's own loader: if that fails, too, the fault is not in kernix. Needs nvcc, but no GPU.

``PYTHONPATH=build/python python bench/reference_kernels.py`` in an environment that has brainevent.
"""

import argparse
import os
import pathlib
import tempfile
import time
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import brainevent
from brainevent._op import kernix_codegen

import kernix
from kernix.compat import brainevent as compat

ROOT = pathlib.Path(brainevent.__file__).parent


def module_name(file: pathlib.Path) -> str:
    """Return a name that no other file of the package has."""
    return "_".join(file.relative_to(ROOT).with_suffix("").parts)


def expected_specs(file: pathlib.Path) -> dict[str, list[str]]:
    """Return the functions of a file with their tokens, as the package reads them."""
    source = file.read_text(encoding="utf-8")
    return {
        name: kernix_codegen.resolve_bare_attr_types(kernix_codegen.normalize_tokens(tokens), name, source)
        for name, tokens in kernix_codegen.parse_annotations(source).items()
    }


def difference(file: pathlib.Path, module: Any) -> str:
    """Return the difference from the package's own behaviour, or an empty string."""
    specs = expected_specs(file)
    loaded = {name: module.arg_spec(name) for name in module.function_names}
    wrong = [name for name in specs.keys() | loaded.keys() if specs.get(name) != loaded.get(name)]
    if wrong:
        return f"{wrong[0]}: the package has {specs.get(wrong[0])}, kernix has {loaded.get(wrong[0])}"
    missing = {f"{module_name(file)}.{name}" for name in specs} - set(brainevent.list_registered_targets())
    return f"not registered: {', '.join(sorted(missing))}" if missing else ""


def load(file: pathlib.Path, architecture: str) -> Any:
    """Load a file with the package's current loader."""
    return brainevent.load_cuda_file(file, name=module_name(file), compute_capability=architecture)


def reference_fails(file: pathlib.Path, architecture: str) -> bool:
    """Return whether the package itself cannot load a file."""
    compat.uninstall()
    try:
        load(file, architecture)
        return False
    except brainevent.KernelError:
        return True
    finally:
        compat.install()


def check(file: pathlib.Path, architecture: str) -> tuple[str, str]:
    """Load a file. Return "ok", "FAIL" or "neither", and a message."""
    try:
        module = load(file, architecture)
    except brainevent.KernelError as error:
        state = "neither" if reference_fails(file, architecture) else "FAIL"
        return state, next(line for line in str(error).splitlines() if line)
    problem = difference(file, module)
    return ("FAIL", problem) if problem else ("ok", f"{len(module.function_names)} functions")


def main() -> int:
    """Check the files that the command line names, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="files of the package (default: all)")
    parser.add_argument("--architecture", default="sm_90")
    options = parser.parse_args()
    files = [file.resolve() for file in options.files] or sorted(ROOT.rglob("*.cu"))
    counts = {"ok": 0, "FAIL": 0, "neither": 0}
    with tempfile.TemporaryDirectory() as cache:
        brainevent.set_cache_dir(cache)  # the package's own
        compat.install()
        for file in files:
            start = time.monotonic()
            state, said = check(file, options.architecture)
            counts[state] += 1
            print(f"{state:<8}{time.monotonic() - start:7.2f} s  {file.relative_to(ROOT)}: {said}", flush=True)
    print(
        f"brainevent {brainevent.__version__}, kernix {kernix.__version__}: {counts['ok']} of {len(files)} files load "
        f"through kernixd with the same names and specs, {counts['neither']} load with neither, {counts['FAIL']} fail"
    )
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
