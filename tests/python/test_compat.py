# SPDX-License-Identifier: Apache-2.0
"""The layer for brainevent, with a stand-in for the package. bench/reference_kernels.py tries it on the real one."""

import copy
import functools
import importlib
import importlib.util
import inspect
import os
import pathlib
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import kernels
import numpy as np
import pytest

import kernix

STAND_IN = pathlib.Path(__file__).parent / "stand_in"

pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture(name="routed")
def routed_fixture(brainevent_stand_in):
    """The stand-in with the layer installed."""
    from kernix.compat import brainevent as compat

    compat.install()
    return brainevent_stand_in


def test_an_operator_that_imported_its_loader_before(routed):
    np.testing.assert_array_equal(routed.add_one(jnp.arange(3, dtype=jnp.float32)), [1, 2, 3])


def test_loaders_keep_their_signatures(routed):
    from kernix.compat import brainevent as compat

    now = {name: inspect.signature(getattr(routed, name)) for name in routed.__all__ if name.startswith("load_")}
    assert len(now) == 5
    assert routed.load_cpp_inline.__doc__ == "Compile inline C++ source."
    compat.uninstall()
    assert now == {name: inspect.signature(getattr(routed, name)) for name in now}


@pytest.mark.parametrize("by_keyword", [True, False])
def test_load_cpp(routed, tmp_path, fresh_name, by_keyword):
    file = tmp_path / f"{fresh_name}.cpp"
    file.write_text(kernels.ADD_ONE)
    modules = [
        routed.load_cpp_file(filepath=file) if by_keyword else routed.load_cpp_file(file, ["add_one"]),
        routed.load_cpp_inline(fresh_name, kernels.ADD_ONE, {"add_one": ["arg", "ret"]}, target_prefix="stand_in_b"),
    ]
    x = jnp.zeros(2, jnp.float32)
    for module, target in zip(modules, [f"{fresh_name}.add_one", "stand_in_b.add_one"], strict=True):
        assert isinstance(module, routed.CompiledModule)
        assert module.function_names == ["add_one"]
        np.testing.assert_array_equal(jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(x.shape, x.dtype))(x), [1, 1])
        assert target in routed.list_registered_targets()
    assert "of_the_package" in routed.list_registered_targets()


def test_a_module_is_of_both_kinds(routed, fresh_name):
    module = routed.load_cpp_inline(fresh_name, kernels.ADD_ONE, auto_register=False)
    assert os.path.exists(module.path)
    assert module.content_hash == f"sha256:{module.kernix.content_hash[:16]}"
    assert repr(module).startswith("CompiledModule(path=")
    assert module.arg_spec("add_one") == ["arg", "ret"]
    assert module.add_one(np.zeros(2, np.float32)).tolist() == [1, 1]
    assert copy.copy(module).function_names == ["add_one"]
    assert module["add_one"] is module.add_one
    assert list(module) == ["add_one"]
    assert "add_one" in dir(module)
    jax.ffi.register_ffi_target(fresh_name, jax.ffi.pycapsule(module.get_handler("add_one")), platform="cpu")
    with pytest.raises(KeyError):
        module.get_handler("add_two")


def test_register_ffi_target(routed, fresh_name):
    module = routed.load_cpp_inline(fresh_name, kernels.ADD_ONE, auto_register=False)
    routed.register_ffi_target(f"{fresh_name}.by_hand", module, "add_one", platform="cpu", content_id="any")
    assert f"{fresh_name}.by_hand" in kernix.list_registered_targets()
    with pytest.raises(routed._op.Reached):
        routed.register_ffi_target("other", routed.CompiledModule("x.so", ["f"]), "f")


def cuda_source(name):
    """Return a CUDA source whose function says which GPU it was compiled for when it does not compile."""
    return f'#include "brainevent/common.h"\n// @BE {name} ret stream\nvoid {name}(BE::Tensor y, cudaStream_t) {{}}\n'


def test_load_cuda(routed, tmp_path, fresh_name, monkeypatch):
    (tmp_path / "a.cu").write_text(cuda_source("a"))
    (tmp_path / "b.cu").write_text(cuda_source("b"))
    given = routed.load_cuda_file(tmp_path / "a.cu", compute_capability="compute_80", auto_register=False)
    assert (given.function_names, given.name) == (["a"], "a")
    routed.config.set_compute_capability(["sm_80", "sm_90"])
    pinned = routed.load_cuda_dir(tmp_path, name=fresh_name, auto_register=False)
    assert pinned.function_names == ["a", "b"]
    both = kernix.load_cuda_dir(tmp_path, name=fresh_name, compute_capability="sm_80,sm_90", auto_register=False)
    assert both.key == pinned.kernix.key
    assert os.environ["BRAINEVENT_NVCC_PREFER"] == "pip"
    monkeypatch.setattr(routed._op.kernix_toolchain, "discovery", "system")
    routed.load_cuda_inline(fresh_name, cuda_source("c"), auto_register=False, optimization_level=1)
    assert os.environ["BRAINEVENT_NVCC_PREFER"] == "system"
    with pytest.raises(TypeError, match="no_such"):
        routed.load_cuda_file(tmp_path / "a.cu", no_such=1)


def test_flags_for_the_linker(routed, tmp_path, fresh_name):
    """As the package's own cuBLAS operator passes them: a library by its path, and the folder where it will be."""
    build = ["g++", "-shared", "-fPIC", "-x", "c++", "-o"]
    for name in ("by_path", "by_name"):
        command = [*build, tmp_path / f"lib{name}.so", f"-Wl,-soname,lib{name}.so", "-"]
        subprocess.run(command, input=f'extern "C" int {name}() {{ return 1; }}', text=True, check=True)
    calls = 'extern "C" int by_path();\nextern "C" int by_name();\n'
    source = calls + cuda_source("f").replace("{}", "{ by_path(); by_name(); }")
    flags = [str(tmp_path / "libby_path.so"), f"-L{tmp_path}", "-lby_name", "-rpath", "/no/such", f"-rpath={tmp_path}"]
    module = routed.load_cuda_inline(
        fresh_name, source, extra_ldflags=[*flags, "-z", "now"], compute_capability="sm_90", auto_register=False
    )
    assert module.function_names == ["f"]
    with pytest.raises(routed.CompilationError) as refused:
        routed.load_cuda_inline(fresh_name, source, extra_ldflags=["--no_such_flag"], compute_capability="sm_90")
    assert "unrecognized option '--no_such_flag'" in refused.value.compiler_output


def test_exceptions_are_the_packages_own(routed, fresh_name, monkeypatch):
    with pytest.raises(routed.CompilationError) as failed:
        routed.load_cpp_inline(fresh_name, kernels.ADD_ONE + "\nnonsense;")
    assert "nonsense" in failed.value.compiler_output
    assert failed.value.command
    assert isinstance(failed.value.__cause__, kernix.KernelCompilationError)
    with pytest.raises(routed.KernelError, match="No functions|no function|@BE") as refused:
        routed.load_cpp_inline(fresh_name, "int nothing;")
    assert isinstance(refused.value, ValueError)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    with pytest.raises(routed.UnsupportedArchError, match="sm_20"):
        routed.load_cuda_inline(fresh_name, cuda_source("f"), compute_capability="sm_20")
    routed.load_cpp_inline(fresh_name, kernels.constant(1))
    with pytest.raises(routed.KernelRegistrationError):
        routed.load_cpp_inline(fresh_name, kernels.constant(2))
    with pytest.raises(FileNotFoundError):
        routed.load_cpp_file("no/such/file.cpp")
    with pytest.raises(TypeError):
        routed.load_cpp_inline(fresh_name)


HEADER = '#include "brainevent/common.h"\n'
F = f"{HEADER}void f(const BE::Tensor x, BE::Tensor y) {{}}\n"


@pytest.mark.parametrize(
    ("source", "functions", "phrase"),
    [
        (F, {"f": ["arg", "bogus"]}, "Invalid arg_spec token 'bogus' for function 'f'"),
        (F, {"f": ["arg", "ret", "attr.x:foo"]}, "Invalid arg_spec token 'attr.x:foo' for function 'f'"),
        (F, {"f": ["arg", "ret", "attr.a-b:int32"]}, "Invalid attribute name 'a-b': must be a valid C++ identifier"),
        (f"// @BE f arg nonsense\n{F}", None, "Invalid arg_spec token 'nonsense' for function 'f'"),
        (F, {"1f": ["arg", "ret"]}, "Invalid function name '1f': must be a valid C++ identifier"),
        (F, {"f": ["arg", "ret", "stream", "stream"]}, "Duplicate 'stream' token in arg_spec for f"),
        (F, {"f": ["arg", "arg"]}, "arg_spec for 'f' must contain at least one 'ret' token"),
        (f"// @BE f arg\n{F}", None, "arg_spec for 'f' must contain at least one 'ret' token"),
        (f"{HEADER}void f(const BE::Tensor x) {{}}\n", ["f"], "No non-const Tensor output found in 'f'"),
        (f"{HEADER}void f(int n) {{}}\n", ["f"], "No Tensor parameters found in 'f'"),
        (F, ["g"], "Cannot find 'void g(...)' in source"),
        (F, {"g": ["arg", "ret", "attr.k"]}, "Cannot find 'void g(...)' in source"),
        (
            F.replace("y)", "y, float* s)"),
            {"f": ["arg", "ret", "attr.s"]},
            "Cannot map C++ type 'float*' of 's' in 'f' to a BE attr type",
        ),
        (F, {"f": ["arg", "ret", "attr.k"]}, "Parameter 'k' not found in signature of 'f'"),
        (F, None, "No '// @BE <function_name>' annotations found in source"),
        (f"// @BE f arg ret\n// @BE f arg ret\n{F}", None, "Duplicate @BE annotation for 'f'"),
        (F, {}, "No functions found. Pass functions={...} or add '// @BE <name>' annotations"),
        (F, [], "No functions found. Pass functions={...} or add '// @BE <name>' annotations"),
    ],
    ids=str,
)
def test_requests_are_refused_in_the_packages_words(routed, source, functions, phrase):
    with pytest.raises(routed.KernelError) as refused:
        routed.load_cpp_inline("refused", source, functions)
    assert phrase in str(refused.value)
    assert str(refused.value.__cause__) in str(refused.value)


def test_compilations_fail_in_the_packages_words(routed, fresh_name, own_place, run_python):
    spec = {"f": ["arg", "ret"]}
    with pytest.raises(routed.CompilationError, match=r"^C\+\+ compilation failed: .*nonsense"):
        routed.load_cpp_inline(fresh_name, f"{F}nonsense;", spec)
    with pytest.raises(routed.CompilationError, match=r"^C\+\+ compilation failed at the link: .*nosuch"):
        routed.load_cpp_inline(fresh_name, F, spec, extra_ldflags=["-lnosuch"])
    with pytest.raises(routed.CompilationError, match="^compilation failed: .*error"):
        routed.load_cuda_inline(fresh_name, f"{cuda_source('f')}nonsense;", compute_capability="sm_90")
    said = run_python("load_too_long.py", "routed", where=own_place, KERNIX_JOB_TIMEOUT="1s")
    assert said.startswith("CompilationError compilation timed out after 1s: ")


def test_names_and_files_are_refused_in_the_packages_words(routed, fresh_name, tmp_path):
    routed.load_cpp_inline(fresh_name, kernels.constant(1))
    target = f"{fresh_name}.value"
    with pytest.raises(
        routed.KernelRegistrationError, match=f"FFI target '{target}' is already registered to different"
    ):
        routed.load_cpp_inline(fresh_name, kernels.constant(2))
    on_gpu = functools.partial(routed.load_cuda_inline, fresh_name, kernels.VECTOR_ADD, compute_capability="sm_90")
    on_gpu()
    with pytest.raises(routed.KernelRegistrationError, match=f"Cannot replace FFI target '{fresh_name}.vector_add'"):
        on_gpu(allow_cuda_graph=False, replace=True)
    module = routed.load_cpp_inline(fresh_name, kernels.constant(1))
    missing = "Function 'other' not found in module"
    with pytest.raises(KeyError, match=missing):
        module.get_handler("other")
    with pytest.raises(KeyError, match=missing):
        routed.register_ffi_target("t", module, "other", platform="cpu")
    with pytest.raises(routed.KernelError, match=r"No source files matching \[\*\.cu\] found in "):
        routed.load_cuda_dir(tmp_path)
    with pytest.raises(ValueError, match='invalid compute capability: "bogus"'):
        routed.load_cuda_inline(fresh_name, cuda_source("f"), compute_capability="bogus")
    undefined = F.replace("{}", "{ gone(); }").replace("void f", 'extern "C" void gone();\nvoid f')
    with pytest.raises(routed.KernelLoadError, match=r"^Failed to load shared library .*: .*gone"):
        routed.load_cpp_inline(fresh_name, undefined, {"f": ["arg", "ret"]}, extra_ldflags=["-Wl,-z,undefs"])


def program(path, text):
    """Write a program, and return its path."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_tools_fail_in_the_packages_words(routed, fresh_name, monkeypatch, tmp_path):
    def refusal(kind, **variables):
        load, options = routed.load_cuda_inline, {"compute_capability": "sm_20"}
        if "PATH" in variables:
            load, options = routed.load_cpp_inline, {}
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            with pytest.raises(kind) as refused:
                load(fresh_name, cuda_source("f"), auto_register=False, **options)
        return str(refused.value)

    assert "the target GPU architecture is not supported by this nvcc" in refusal(routed.UnsupportedArchError)
    assert "C++ compiler not found" in refusal(routed.HostCompilerNotFoundError, PATH="/nowhere")
    missing = refusal(routed.NvccNotFoundError, BRAINEVENT_NVCC_PATH="/no/such/nvcc")
    assert "CUDA compiler nvcc not found" in missing
    for text, phrase in {
        "exit 3": "nvcc exited with status",
        "echo hello": "nvcc exists but its version could not be determined",
    }.items():
        broken = program(tmp_path / "nvcc", text)
        assert phrase in refusal(routed.NvccNotFoundError, BRAINEVENT_NVCC_PATH=broken)
    (tmp_path / "nvcc").write_text("no program")
    assert "nvcc could not be executed" in refusal(
        routed.NvccNotFoundError, BRAINEVENT_NVCC_PATH=str(tmp_path / "nvcc")
    )


def test_missing_tools_are_the_packages_own_exceptions(routed, fresh_name, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setenv("CXX", "/no/such/g++")
        with pytest.raises(routed.HostCompilerNotFoundError, match="/no/such/g"):
            routed.load_cpp_inline(fresh_name, kernels.ADD_ONE)
    with monkeypatch.context() as patch:
        patch.setenv("BRAINEVENT_NVCC_PATH", "/no/such/nvcc")
        with pytest.raises(routed.NvccNotFoundError, match="/no/such/nvcc"):
            routed.load_cuda_inline(fresh_name, cuda_source("f"), compute_capability="sm_90")
    if not list(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        with pytest.raises(routed.GpuArchDetectionError, match="Could not detect a GPU compute capability.*no GPU"):
            routed.load_cuda_inline(fresh_name, cuda_source("f"))


def test_the_cache_is_kernixs(routed, fresh_name, capsys):
    routed.load_cpp_inline(fresh_name, kernels.ADD_ONE)
    assert routed.get_cache_dir() == kernix.get_cache_dir()
    assert routed.clear_cache(fresh_name) == 1
    routed.print_diagnostics()
    assert "      brainevent    0.3.0, its kernels routed to kernixd" in capsys.readouterr().out


def test_brainevent_kernix_can_be_imported(routed):
    from brainevent.kernix import CompilationError, CompiledModule, load_cuda_file

    assert load_cuda_file is routed.load_cuda_file
    assert (CompiledModule, CompilationError) == (routed.CompiledModule, routed.CompilationError)
    with pytest.raises(ImportError):
        exec("from brainevent.kernix import no_such_name")
    made = importlib.import_module("brainevent.kernix")
    assert importlib.util.find_spec("brainevent.kernix") is made.__spec__
    assert "load_cuda_file" in dir(made)
    with pytest.raises(ModuleNotFoundError):  # no package: not another copy of the package's own
        importlib.import_module("brainevent.kernix.config")


def test_uninstall_leaves_nothing_behind(brainevent_stand_in):
    from kernix.compat import brainevent as compat

    def names():
        loaded = {name: module for name, module in sys.modules.items() if name.startswith("brainevent")}
        return {name: dict(vars(module)) for name, module in loaded.items()}

    environment = dict(os.environ)
    before = names()
    compat.install()
    compat.install()
    assert names() != before
    assert brainevent_stand_in.get_cache_dir() == kernix.get_cache_dir()
    compat.uninstall()
    compat.uninstall()
    assert names() == before
    assert dict(os.environ) == environment
    with pytest.raises(brainevent_stand_in._op.Reached):
        brainevent_stand_in.get_cache_dir()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("brainevent.kernix")


def test_without_the_package():
    from kernix.compat import brainevent as compat

    assert "brainevent" not in sys.modules
    with pytest.raises(ImportError, match="brainevent"):
        compat.install()


SCRIPT = """
import sys, os
import jax.numpy as jnp
from brainevent import add_one
from brainevent.kernix import load_cpp_file
import beside
print(__name__, os.path.basename(sys.argv[0]), sys.argv[1:], add_one(jnp.zeros(1, jnp.float32)))
"""


def compat_command(*arguments, where, folder):
    """Run ``python -m kernix.compat`` with the stand-in on the path."""
    path = os.pathsep.join([str(STAND_IN), where.environment["PYTHONPATH"]])
    environment = where.environment | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "kernix.compat", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("as_module", [False, True])
def test_a_script_is_run_routed(place, tmp_path, as_module):
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "script.py").write_text(SCRIPT)
    (scripts / "beside.py").write_text("")
    program = ["-m", "script"] if as_module else ["scripts/script.py"]
    done = compat_command("brainevent", *program, "a", "-b", where=place, folder=scripts if as_module else tmp_path)
    assert (done.stdout, done.returncode) == ("__main__ script.py ['a', '-b'] [1.]\n", 0), done.stderr


@pytest.mark.parametrize("arguments", [[], ["brainevent"], ["other", "script.py"], ["brainevent", "-m"]], ids=str)
def test_the_command_says_how_it_is_used(place, tmp_path, arguments):
    done = compat_command(*arguments, where=place, folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m kernix.compat brainevent")
