# SPDX-License-Identifier: Apache-2.0
"""The package itself: what it exports, what its import drags in, that it is typed."""

import ast
import contextlib
import importlib.machinery
import importlib.metadata
import inspect
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import kernels
import pytest

import kernix
from kernix import _environment

PACKAGE = pathlib.Path(kernix.__file__).parent


def test_public_names():
    assert sorted(kernix.__all__) == kernix.__all__
    for name in kernix.__all__:
        assert inspect.getdoc(getattr(kernix, name)), name


def places_for_type_checkers():
    """Return where ``kernix/__init__.py`` tells type checkers that its names are."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return [(node.module, alias.name, alias.asname) for node in imports for alias in node.names]


def test_names_are_where_type_checkers_look():
    places = [(place, name, name) for place, names in kernix._PLACES.items() for name in names]
    assert sorted(places_for_type_checkers()) == sorted(places)


def test_dir_names_what_is_public():
    """Before anything is imported, too."""
    script = "import kernix; print(*(name for name in dir(kernix) if not name.startswith('_')))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == kernix.__all__
    assert "__version__" in dir(kernix)
    with pytest.raises(AttributeError, match="module 'kernix' has no attribute 'load_cpp_inlin'"):
        _ = kernix.load_cpp_inlin


def test_what_is_not_used_is_not_imported():
    script = """
import sys
import kernix
ours = lambda: {name for name in sys.modules if name.startswith("kernix.")}
assert not ours(), ours()
kernix.load_cpp_inline
assert "kernix._core" in ours()
assert not {"kernix.calling.function", "kernix.loading.watch", "kernix.notebook"} & ours(), ours()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def copy_of_package(folder):
    """Make a copy of the package without its extension."""
    copy = folder / "kernix"
    shutil.copytree(PACKAGE, copy, symlinks=True, ignore=shutil.ignore_patterns("_core*.so", "__pycache__"))
    return copy


def run_in(folder, script):
    return subprocess.run(
        [sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True, text=True
    )


def test_an_import_without_the_extension_fails(tmp_path):
    copy_of_package(tmp_path)
    done = run_in(tmp_path, "import kernix")
    assert "ImportError: kernix is installed without its extension" in done.stderr


def test_a_broken_extension_is_an_import_error_at_its_first_use(tmp_path):
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    (copy_of_package(tmp_path) / f"_core{suffix}").write_text("no library")
    done = run_in(tmp_path, "import kernix; print(hasattr(kernix, 'load_cpp_inline'))")
    assert done.stdout == ""
    assert "ImportError: " in done.stderr
    assert "_core" in done.stderr


def test_public_functions_are_annotated():
    for name in kernix.__all__:
        value = getattr(kernix, name)
        if callable(value) and not inspect.isclass(value):
            signature = inspect.signature(value)
            assert signature.return_annotation is not signature.empty, name
            for parameter in signature.parameters.values():
                assert parameter.annotation is not parameter.empty, (name, parameter)


def test_marked_as_typed():
    assert (PACKAGE / "py.typed").exists()
    assert (PACKAGE / "_core.pyi").exists()


USER = """
from __future__ import annotations

import kernix
from kernix import CompiledModule, KernelFunction, load_cpp_inline


def load() -> CompiledModule:
    return load_cpp_inline("user", "source", {"f": ["arg", "ret"]}, extra_cflags=["-O2"], replace=True)


def later() -> kernix.LoadFuture[CompiledModule]:
    return load_cpp_inline("user", "source", wait=False)


def many_later() -> kernix.LoadFuture[kernix.LoadedModules]:
    return kernix.load_many(["k.cpp"], wait=False)


def frozen() -> dict[str, int]:
    with kernix.freeze("warn"):
        print(load().origin, kernix.report().loads[-1].reason)
    kernix.unfreeze()
    return kernix.report().after_freeze


async def many() -> list[CompiledModule]:
    modules = kernix.load_many(["k.cpp", {"name": "a", "cpp_sources": "x"}], debug=True)
    print(modules.report[0].origin, later().progress)
    return [await later(), later().result(timeout=3), *modules, *await many_later()]


def call(x: object) -> list[str]:
    module = load()
    function: KernelFunction = module.f
    result: tuple[float, ...] = module["f"](x, x, factor=3, out=[x], attributes={"out": 3})
    try:
        function.with_vjp("g", argnums=0)(x, stream=None)
    except kernix.KernelCallError as error:
        print(error, result)
    kernix.register_ffi_target("name", module, "f", platform="cpu")
    return [*module, *module.function_names, *module.arg_spec("f"), *kernix.list_registered_targets()]


number: int = load().path
load().f(1, has_side_effect="yes")
load().f.with_vjp("g")(1, vmap_method=3)
load_cpp_inline("a", 3)
load_cpp_inline("a", "b", no_such_option=1)
"""


def test_programs_of_users_type_check(tmp_path):
    """What is right passes ``mypy --strict``, and what is wrong is seen."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "user.py").write_text(USER)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", "user.py"],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(PACKAGE.parent)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.stderr == ""
    errors = [line.partition(": error: ") for line in result.stdout.splitlines() if ": error: " in line]
    first = USER.splitlines().index("number: int = load().path") + 1
    assert {place for place, _, _ in errors} == {f"user.py:{first + i}" for i in range(5)}, result.stdout
    kinds = [message.rpartition("[")[2] for _, _, message in errors]
    assert kinds == ["assignment]", *["arg-type]"] * 2, *["call-overload]"] * 2]


def test_kernixctl_finds_its_kernixd_from_any_place(own_place, tmp_path):
    """Through a link to it, with nothing in PATH, it starts a daemon and compiles."""
    link = tmp_path / "ctl"
    link.symlink_to(_environment.program("kernixctl"))
    (tmp_path / "k.cpp").write_text(kernels.ADD_ONE)
    variables = own_place.environment | {"PATH": "/usr/bin:/bin"}
    done = subprocess.run([link, "compile", "k.cpp"], cwd=tmp_path, env=variables, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert own_place.stats()["builds"] == 1


def names_in(body):
    """Return what the statements of a stub declare."""
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, (ast.AnnAssign, ast.Assign)):
            yield ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])


def test_stub_names_what_the_extension_has():
    from kernix import _core

    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    of_stub_alone = {"Observer"}
    assert set(names_in(tree.body)) - of_stub_alone == {name for name in dir(_core) if not name.startswith("_")}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name not in of_stub_alone:
            for name in names_in(node.body):
                assert hasattr(getattr(_core, node.name), name), f"{node.name}.{name}"


def test_import_does_not_drag_others_in():
    others = {"IPython", "argparse", "ctypes", "jax", "jaxlib", "numpy"}
    script = f"import sys, kernix; print(sorted({others} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("modules", ["kernix, jax", "jax, kernix"])
def test_import_in_any_order_from_any_folder(modules):
    script = f"import {modules}; print(kernix.__version__, jax.devices('cpu')[0].platform)"
    command = [sys.executable, "-c", script]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    said = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=True).stdout
    assert said == f"{kernix.__version__} cpu\n"


def test_extension_shows_nothing_but_its_entry():
    from kernix import _core

    symbols = subprocess.run(["nm", "-D", "--defined-only", _core.__file__], capture_output=True, text=True, check=True)
    assert [line.split()[-1].partition("@")[0] for line in symbols.stdout.splitlines()] == ["PyInit__core"]


def test_version():
    assert kernix.__version__.count(".") == 2
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # not installed from a wheel
        assert importlib.metadata.version("kernix") == kernix.__version__


def test_exception_tree():
    assert issubclass(kernix.KernelRequestError, ValueError)
    for name in kernix.__all__:
        value = getattr(kernix, name)
        if inspect.isclass(value) and issubclass(value, Exception) and value is not kernix.KernelWarning:
            assert issubclass(value, kernix.KernelError)


@pytest.mark.parametrize(
    "error",
    [
        kernix.KernelCompilationError("no", "x:1: error", "g++ x"),
        kernix.KernelDaemonError("nobody"),
    ],
)
def test_exceptions_travel_between_processes(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_compilation_error_says_everything_once_and_keeps_the_command():
    error = kernix.KernelCompilationError("does not compile:\nx:1: error", "x:1: error\n", "g++ x")
    assert str(error) == "does not compile:\nx:1: error"
    assert (error.compiler_output, error.command) == ("x:1: error\n", "g++ x")
