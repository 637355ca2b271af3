# SPDX-License-Identifier: Apache-2.0
"""The functions that load kernels, and what each does: from a request to a module whose functions JAX can call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypeVar, cast

from kernix import _core, _environment
from kernix._errors import (
    KernelCompilationError,
    KernelError,
    KernelNotCachedError,
    KernelRequestError,
    short_errors,
)
from kernix.jax.targets import jax_is_installed
from kernix.loading import connection
from kernix.loading.console import LoadConsole
from kernix.loading.module import CompiledModule, hidden_functions, module_of, origin_in_words
from kernix.loading.report import LoadReport, freeze_load, in_a_line, note
from kernix.loading.request import (
    Defines,
    Functions,
    bundle_paths,
    check_text,
    define_flags,
    encoded,
    file_source,
    file_sources,
    folder_path,
    function_list,
    inline_sources,
    is_cuda_file,
    module_name,
    path_list,
    stem,
    string_list,
)

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

#: Whether a load may compile what the cache does not have.
Policy = Literal["build", "cached"]

_Path = str | os.PathLike[str]
_Paths = _Path | Sequence[_Path]

#: What a load of a folder compiles by default.
CUDA_PATTERNS = ("*.cu",)
CPP_PATTERNS = ("*.cpp", "*.cc", "*.cxx")

#: The parameters that say what to compile, of which a load has one.
WHAT = ("cuda_sources", "cpp_sources", "path", "directory")

#: Options that are attributes of the request, under the same names.
_CPP_ATTRIBUTES = ("separate", "debug")
_CUDA_ATTRIBUTES = (*_CPP_ATTRIBUTES, "optimization_level", "use_fast_math", "allow_cuda_graph", "keep")

if TYPE_CHECKING:  # what only annotations name
    from typing import Protocol, TypedDict, overload

    from typing_extensions import Unpack

    from kernix.loading.background import LoadFuture

    class _CommonOptions(TypedDict, total=False):
        """Keyword parameters of every load."""

        extra_ldflags: Sequence[str] | None
        extra_include_paths: Sequence[_Path] | None
        defines: Defines
        separate: bool
        debug: bool
        build_directory: _Path | None
        verbose: bool
        force_rebuild: bool
        policy: Policy | None
        bundle: _Path | Sequence[_Path] | None
        replace: bool
        auto_register: bool
        target_prefix: str | None

    class CppOptions(_CommonOptions, total=False):
        """Keyword parameters of :func:`load_cpp_inline`."""

        extra_cflags: Sequence[str] | None

    class CudaOptions(_CommonOptions, total=False):
        """Keyword parameters of :func:`load_cuda_inline`."""

        extra_cuda_cflags: Sequence[str] | None
        compute_capability: str | None
        ninja_workers: int | None
        optimization_level: int
        use_fast_math: bool
        allow_cuda_graph: bool
        keep: bool

    class _Loader(Protocol[_Parameters, _Result]):
        """How type checkers see a function that loads: with ``wait=False``, it returns a future."""

        @overload
        def __call__(self, *args: Any, wait: Literal[False], **options: Any) -> LoadFuture[_Result]: ...
        @overload
        def __call__(self, *args: _Parameters.args, **options: _Parameters.kwargs) -> _Result: ...


def public_load(function: Callable[_Parameters, _Result | LoadFuture[_Result]]) -> _Loader[_Parameters, _Result]:
    """Wrap a public function that loads."""
    return cast("_Loader[_Parameters, _Result]", short_errors(function))


@public_load
def load_cuda_inline(
    name: str,
    cuda_sources: str | Sequence[str],
    functions: Functions = None,
    *,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[_Path] | None = None,
    build_directory: _Path | None = None,
    verbose: bool = False,
    compute_capability: str | None = None,
    force_rebuild: bool = False,
    policy: Policy | None = None,
    bundle: _Path | Sequence[_Path] | None = None,
    replace: bool = False,
    auto_register: bool = True,
    target_prefix: str | None = None,
    ninja_workers: int | None = None,
    optimization_level: int = 3,
    use_fast_math: bool = False,
    allow_cuda_graph: bool = True,
    separate: bool = False,
    debug: bool = False,
    keep: bool = False,
    defines: Defines = None,
    wait: bool = True,
) -> CompiledModule | LoadFuture[CompiledModule]:
    """Compile CUDA source text and load the result.

    Parameters
    ----------
    name : str
        Name of the module: the prefix of its target names, and its name (tag) in the cache and in messages.
    cuda_sources : str or list of str
        CUDA C++. Several texts form one translation unit, in order; with `separate`, each is its own unit.
    functions : dict, list or None
        ``{"vector_add": ["arg", "arg", "ret", "stream"]}``: the tokens of each function, in the order of its parameters
        (``arg``, ``ret``, ``stream``, ``attr.<name>:<type>``, or ``attr.<name>`` with the type of the signature).
        ``["vector_add"]``: kernix infers all tokens from the signatures. ``None``: the ``// @BE name [tokens]`` lines
        of the source decide.
    extra_cuda_cflags : list of str, optional
        Additional flags for nvcc.
    extra_ldflags : list of str, optional
        Additional flags for the linker.
    extra_include_paths : list of str or path-like, optional
        Folders to search for headers, before all others.
    build_directory : str or path-like, optional
        Folder that receives the generated source, ``<name>.kernix.cu``, the library, ``<name>.so``, and, with `keep`,
        the kept files (``<name>.sm_90.ptx``, ...). After a compile error, it receives ``<name>.failed``, a folder with
        what the failed command needs, and ``run.sh``, which runs it again.
    verbose : bool, default False
        Print commands and compiler output to ``sys.stderr`` as they arrive.
    compute_capability : str, optional
        ``"sm_86"``, ``"8.6"``, or several separated by commas. The library then has code for all of them, and PTX for
        the newest. Default: the compute capability of this machine's first GPU.
    force_rebuild : bool, default False
        Compile even if the cache has the result, by whole calls of the compilers. Changed code becomes live, as with
        `replace`.
    policy : {"build", "cached"}, optional
        What to do if the cache does not have the result: ``"build"`` compiles; ``"cached"`` is an error, which names
        the nearest kernel that the cache has. Default: the environment variable ``KERNIX_POLICY``, else ``"build"``.
    bundle : str or path-like, or a list of them, optional
        Folders of kernels that were compiled elsewhere, which are asked first: no compiler and no kernixd is needed for
        a kernel that one of them has. kernix also asks the bundles of ``KERNIX_BUNDLES``, and ``<name>.kernix`` beside
        a source file. A bundle that does not exist is skipped.
    replace : bool, default False
        Make the new code live under target names that other code has now, also inside functions that ``jax.jit`` has
        already compiled. Without `replace`, such a load fails. Signatures may change,
        `allow_cuda_graph` may not. Static variables begin anew, also if the code is the same.
    auto_register : bool, default True
        Register each function with JAX as ``<target_prefix or name>.<function>``. If JAX is not installed, nothing is
        registered, but the functions of the module can still be called.
    target_prefix : str, optional
        Prefix of the target names. Default: `name`.
    ninja_workers : int, optional
        The most compile jobs of this load that run at a time. Default: the daemon's limit.
    optimization_level : int, default 3
        ``-O`` level, 0 to 3, of host and device code.
    use_fast_math : bool, default False
        Trade floating-point precision for speed (nvcc's ``--use_fast_math``).
    allow_cuda_graph : bool, default True
        Let XLA capture the functions into CUDA graphs. Use False for functions whose host code must always run.
    separate : bool, default False
        Make each source a separate translation unit. The units are compiled in parallel and linked once. A function is
        exported from the unit that defines it. To link device code across units, pass ``-rdc=true`` in
        `extra_cuda_cflags`.
    debug : bool, default False
        Compile for a debugger, a profiler or a sanitizer: ``-g -G``, frame pointers, and no optimisation. (For
        line tables of optimised device code, pass ``-lineinfo`` in `extra_cuda_cflags`.)
    keep : bool, default False
        Keep the compiler's intermediate results as text, for :meth:`CompiledModule.ptx` and
        :meth:`CompiledModule.sass`. Takes about as long as another build.
    defines : dict, optional
        Macros: ``{"BLOCK": 128, "REAL": "float", "CHECKED": True, "SLOW": None}``. A str is C++ text as it is (a
        literal brings its quotes), a bool is 1 or 0, and None is 1, like a bare ``-D``. Negative numbers get
        parentheses. Macros hold in headers, too.
    wait : bool, default True
        With False, the load goes on in the background.

    Returns
    -------
    CompiledModule or LoadFuture
        A repeated load in the same process returns the same module, as long as it is one of the last 4,096. With
        ``wait=False``, a future of it.

    Raises
    ------
    KernelRequestError
        If functions, signatures, flags or names are invalid.
    KernelToolchainError
        If nvcc or the host compiler is missing or does not support the architecture.
    KernelCompilationError
        If the source does not compile or link.
    KernelNotCachedError
        If the cache does not have the result, and `policy` forbids compiling it.
    KernelLoadError
        If the library cannot be opened in this process.
    KernelRegistrationError
        If other code is live under a target name.
    KernelDaemonError
        If no kernixd can be reached or started.
    """
    return _load("cuda_sources", True, locals())


@public_load
def load_cuda_file(
    path: _Paths,
    functions: Functions = None,
    *,
    name: str | None = None,
    wait: bool = True,
    **options: Unpack[CudaOptions],
) -> CompiledModule | LoadFuture[CompiledModule]:
    """Compile a ``.cu`` file, or several files together, and load the result.

    Parameters
    ----------
    path : str or path-like, or a list of them
        The file. ``#include "..."`` searches its folder first. Several files form one translation unit, in order. With
        ``separate=True``, each is its own unit, and files that end in ``.cpp``, ``.cc`` or ``.cxx`` are C++.
    functions : dict, list or None
        As for :func:`load_cuda_inline`.
    name : str, optional
        Name of the module. Default: the name of the (first) file without its suffix.
    **options
        All other keyword parameters of :func:`load_cuda_inline`.
    """
    return _load("path", True, locals() | options)


@public_load
def load_cuda_dir(
    directory: _Path,
    functions: Functions = None,
    *,
    name: str | None = None,
    file_patterns: Sequence[str] | None = None,
    wait: bool = True,
    **options: Unpack[CudaOptions],
) -> CompiledModule | LoadFuture[CompiledModule]:
    """Compile the CUDA files of a folder and load the result.

    The files form one translation unit, in order; with ``separate=True``, each is its own unit.

    Parameters
    ----------
    directory : str or path-like
        The folder.
    functions : dict, list or None
        As for :func:`load_cuda_inline`.
    name : str, optional
        Name of the module. Default: the name of the folder.
    file_patterns : list of str, optional
        The files to compile. Those of the first pattern come first, sorted by name. Default: ``["*.cu"]``.
    **options
        All other keyword parameters of :func:`load_cuda_inline`.
    """
    return _load("directory", True, locals() | options)


@public_load
def load_cpp_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    functions: Functions = None,
    *,
    extra_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[_Path] | None = None,
    build_directory: _Path | None = None,
    verbose: bool = False,
    force_rebuild: bool = False,
    policy: Policy | None = None,
    bundle: _Path | Sequence[_Path] | None = None,
    replace: bool = False,
    auto_register: bool = True,
    target_prefix: str | None = None,
    separate: bool = False,
    debug: bool = False,
    defines: Defines = None,
    wait: bool = True,
) -> CompiledModule | LoadFuture[CompiledModule]:
    """Compile C++ source text for the CPU and load the result.

    Parameters
    ----------
    name : str
        Name of the module: the prefix of its target names, and its name (tag) in the cache and in messages.
    cpp_sources : str or list of str
        C++. Several texts form one translation unit, in order; with `separate`, each is its own unit.
    functions : dict, list or None
        ``{"add_one": ["arg", "ret"]}``: the tokens of each function, in the order of its parameters (``arg``, ``ret``,
        ``attr.<name>:<type>``, or ``attr.<name>`` with the type of the signature). ``["add_one"]``: kernix infers all
        tokens from the signatures. ``None``: the ``// @BE name [tokens]`` lines of the source decide.
    extra_cflags : list of str, optional
        Additional flags for the compiler. Code is C++17 at ``-O3`` unless these flags say otherwise.
    build_directory : str or path-like, optional
        Folder that receives the generated source, ``<name>.kernix.cpp``, and the library, ``<name>.so``. After a
        compile error, it receives ``<name>.failed``, a folder with what the failed command needs, and ``run.sh``, which
        runs it again.
    separate : bool, default False
        Make each source a separate translation unit. The units are compiled in parallel and linked once. A function is
        exported from the unit that defines it.
    debug : bool, default False
        Compile for a debugger, a profiler or a sanitizer: ``-g``, frame pointers, and no optimisation.
    extra_ldflags, extra_include_paths, defines
        As for :func:`load_cuda_inline`.
    verbose, force_rebuild, policy, bundle, replace, auto_register, target_prefix, wait
        As for :func:`load_cuda_inline`.

    Returns
    -------
    CompiledModule or LoadFuture
        A repeated load in the same process returns the same module. With ``wait=False``, a future of it.

    Raises
    ------
    KernelError
        One of the classes that :func:`load_cuda_inline` names.
    """
    return _load("cpp_sources", False, locals())


@public_load
def load_cpp_file(
    path: _Paths,
    functions: Functions = None,
    *,
    name: str | None = None,
    wait: bool = True,
    **options: Unpack[CppOptions],
) -> CompiledModule | LoadFuture[CompiledModule]:
    """Compile a C++ file, or several files together, for the CPU and load the result.

    Parameters
    ----------
    path : str or path-like, or a list of them
        The file. ``#include "..."`` searches its folder first. Several files form one translation unit, in order; with
        ``separate=True``, each is its own unit.
    functions : dict, list or None
        As for :func:`load_cpp_inline`.
    name : str, optional
        Name of the module. Default: the name of the (first) file without its suffix.
    **options
        All other keyword parameters of :func:`load_cpp_inline`.
    """
    return _load("path", False, locals() | options)


@public_load
def load_cpp_dir(
    directory: _Path,
    functions: Functions = None,
    *,
    name: str | None = None,
    file_patterns: Sequence[str] | None = None,
    wait: bool = True,
    **options: Unpack[CppOptions],
) -> CompiledModule | LoadFuture[CompiledModule]:
    """Compile the C++ files of a folder for the CPU and load the result.

    The files form one translation unit, in order; with ``separate=True``, each is its own unit.

    Parameters
    ----------
    directory : str or path-like
        The folder.
    functions : dict, list or None
        As for :func:`load_cpp_inline`.
    name : str, optional
        Name of the module. Default: the name of the folder.
    file_patterns : list of str, optional
        The files to compile. Those of the first pattern come first, sorted by name. Default:
        ``["*.cpp", "*.cc", "*.cxx"]``.
    **options
        All other keyword parameters of :func:`load_cpp_inline`.
    """
    return _load("directory", False, locals() | options)


@short_errors
def load_library(
    path: str | os.PathLike[str],
    *,
    replace: bool = False,
    auto_register: bool = True,
    target_prefix: str | None = None,
) -> CompiledModule:
    """Open a library that ``kernixctl compile -o`` or `build_directory` has written.

    Needs neither a compiler nor kernixd, and does not know the sources: it cannot tell whether they have changed since
    (a bundle can, see the parameter `bundle` of the other loads). A library is code: open those that you trust.

    Parameters
    ----------
    path : str or path-like
        The library.
    replace, auto_register, target_prefix
        As for :func:`load_cuda_inline`. Default of `target_prefix`: the name that the module was compiled under.

    Returns
    -------
    CompiledModule
        It is of the platform, and has the functions, that it was compiled for.

    Raises
    ------
    KernelRequestError
        If the file cannot be read.
    KernelLoadError
        If the file is another library, or does not open in this process.
    KernelRegistrationError
        If other code is live under a target name.
    """
    prefix = "" if target_prefix is None else check_text("target_prefix", target_prefix)
    name = os.path.splitext(os.path.basename(os.fsdecode(path)))[0]
    began = time.monotonic()
    try:
        core = _core.load_library(connection.client(), os.fsencode(path), prefix, replace)
    except Exception as error:
        note(LoadReport(name, "failed", time.monotonic() - began, reason=in_a_line(error)))
        raise
    note(LoadReport(core.name, core.origin, time.monotonic() - began))
    module = module_of(core, 0, prefix or None)
    if auto_register and jax_is_installed():
        module._code.register_all(prefix or core.name, replace=replace)
    return module


def _load(what: str, is_cuda: bool, parameters: dict[str, Any]) -> CompiledModule | LoadFuture[CompiledModule]:
    parameters.pop("options", None)
    wait = parameters.pop("wait")
    prepared = prepare(what, is_cuda, parameters)
    if wait:
        return prepared.run()
    from kernix.loading.background import load_in_background  # it imports what loads that wait do not need

    return load_in_background(prepared)


def files_in(directory: _Path, file_patterns: Sequence[str] | None, default: tuple[str, ...]) -> list[str]:
    """Return the paths of the files that a load of a folder compiles."""
    patterns = string_list(file_patterns, "file_patterns") or default
    return [os.fsdecode(path) for path in _core.matching_files(os.fsencode(directory), patterns)]


def prepare(what: str, is_cuda: bool | None, parameters: dict[str, Any]) -> PreparedLoad:
    """Check the parameters of a public function, without ``wait``, and consume them.

    `what` is one of `WHAT`. If `is_cuda` is None, what there is to compile decides the language.
    """
    take = parameters.pop
    value, name = take(what), take("name", None)
    if what == "path":
        sources = file_sources(value)
        name = module_name(name, stem(sources))
        is_cuda = any(map(is_cuda_file, sources)) if is_cuda is None else is_cuda
    elif what == "directory":
        patterns = take("file_patterns", None)
        if is_cuda is None:
            is_cuda = any(path.endswith(".cu") for path in files_in(value, patterns, (*CUDA_PATTERNS, *CPP_PATTERNS)))
        files = files_in(value, patterns, CUDA_PATTERNS if is_cuda else CPP_PATTERNS)
        sources = [file_source(path) for path in files]
        name = module_name(name, os.path.basename(os.path.realpath(value)))
    else:
        sources = inline_sources(value, name, what)
        is_cuda = what == "cuda_sources"
    cflags = "extra_cuda_cflags" if is_cuda else "extra_cflags"
    macros = define_flags(take("defines", None), for_nvcc=is_cuda)
    folders = path_list(take("extra_include_paths", None), "extra_include_paths")
    request = _core.Request(
        _core.Language.CUDA if is_cuda else _core.Language.CPP,
        name,
        sources,
        function_list(take("functions", None)),
        compile_flags=macros + string_list(take(cflags, None), cflags),
        link_flags=string_list(take("extra_ldflags", None), "extra_ldflags"),
        include_paths=[encoded("extra_include_paths", folder) for folder in folders],
        last_include_paths=[os.fsencode(path) for path in _environment.jax_include_paths()],
    )
    if is_cuda:
        request.max_parallel_jobs = _job_limit(take("ninja_workers", None))
        if (capability := take("compute_capability", None)) is not None:
            if isinstance(capability, str):
                check_text("compute_capability", capability)
            request.compute_capability = capability
    for option in _CUDA_ATTRIBUTES if is_cuda else _CPP_ATTRIBUTES:
        if option in parameters:
            setattr(request, option, take(option))
    known = PreparedLoad.__init__.__kwdefaults__ or {}
    for parameter in parameters:
        if parameter not in known:
            raise _unexpected(parameter, is_cuda)
    return PreparedLoad(request, **parameters)


def _unexpected(parameter: str, is_cuda: bool) -> TypeError:
    from difflib import get_close_matches
    from inspect import signature

    known = signature(load_cuda_inline if is_cuda else load_cpp_inline).parameters.keys() - {*WHAT, "wait"}
    nearest = " or ".join(get_close_matches(str(parameter), sorted(known), n=2))
    advice = f". Did you mean {nearest}?" if nearest else ""
    language = "CUDA" if is_cuda else "C++"
    return TypeError(f"a load of {language} got an unexpected keyword argument {parameter!r}{advice}")


def _job_limit(ninja_workers: int | None) -> int:
    if not isinstance(ninja_workers, int | None):
        raise TypeError(f"ninja_workers must be an integer or None, not {ninja_workers!r}")
    if ninja_workers is not None and ninja_workers < 1:
        raise KernelRequestError(f"ninja_workers must be 1 or more, or None; it is {ninja_workers}")
    return ninja_workers or 0


class Fetched(NamedTuple):
    """What a load has found or built, before it is delivered."""

    core: _core.Module
    slot: int
    report: LoadReport


class PreparedLoad:
    """A load whose parameters have been checked.

    Parameters
    ----------
    request : _core.Request
        The build's parameters.
    build_directory, verbose, force_rebuild, policy, bundle, replace, auto_register, target_prefix
        As for :func:`kernix.load_cuda_inline`.
    """

    __slots__ = ("_folder", "_freeze", "_prefix", "_replace", "request")

    def __init__(
        self,
        request: _core.Request,
        *,
        build_directory: str | os.PathLike[str] | None = None,
        verbose: bool = False,
        force_rebuild: bool = False,
        policy: Policy | None = None,
        bundle: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
        replace: bool = False,
        auto_register: bool = True,
        target_prefix: str | None = None,
    ) -> None:
        if verbose or force_rebuild:
            request.verbose = verbose
            request.force_rebuild = force_rebuild
        if replace:
            request.begin_anew = True
        if policy is not None:
            check_text("policy", policy)
            request.policy = policy
        if bundle is not None:
            request.bundles = bundle_paths(bundle)
        self._freeze = freeze_load(request, policy)
        if target_prefix is not None and check_text("target_prefix", target_prefix):
            request.instance = target_prefix
        self.request = request
        self._prefix = (target_prefix or request.name) if auto_register and jax_is_installed() else None
        self._folder = None if build_directory is None else folder_path(build_directory, "build_directory")
        self._replace = replace or force_rebuild

    def run(self) -> CompiledModule:
        """Compile, unless this process has the module already, and deliver the module as requested."""
        return self.deliver(self.fetch())

    def fetch(self) -> Fetched:
        """Compile, unless this process has the module already, and note that for :func:`kernix.report`."""
        began = time.monotonic()
        client = connection.latest()
        core, slot = (None, 0) if client is None else _core.find_loaded(client, self.request)
        if core is None:
            return self._fetch_anew(began)
        report = LoadReport(self.request.name, "process", time.monotonic() - began)
        note(report)
        return Fetched(core, slot, report)

    def _fetch_anew(self, began: float) -> Fetched:
        """Ask kernixd."""
        name = self.request.name
        try:
            core, slot = _load_anew(self.request, self._folder)
        except Exception as error:
            report = LoadReport(name, "failed", time.monotonic() - began, reason=in_a_line(error))
            self._note(report, error)
            if isinstance(error, KernelNotCachedError) and self._freeze is not None:
                raise self._freeze.refusal(error) from None
            raise
        report = LoadReport(name, core.origin, time.monotonic() - began, core.build_ms, core.miss_reason)
        self._note(report)
        if report.origin == "built" and self._freeze is not None and self._freeze.action == "warn":
            self._freeze.warn_of(report)
        return Fetched(core, slot, report)

    def _note(self, report: LoadReport, error: Exception | None = None) -> None:
        note(report, "" if self._freeze is None else self._freeze.outcome_of(report, error))

    def deliver(self, fetched: Fetched) -> CompiledModule:
        """Write the build directory and register the functions, as requested."""
        module = module_of(fetched.core, fetched.slot, self._prefix)
        if self._folder:
            module._code.core.write_build_directory(os.fsencode(self._folder))
        if self._prefix is not None:
            module._code.register_all(self._prefix, replace=self._replace)
        return module


def _load_anew(request: _core.Request, build_folder: str | None) -> tuple[_core.Module, int]:
    with LoadConsole(request.name) as console:
        try:
            core, slot = _core.load(connection.client(), request, console)
        except KernelCompilationError as error:
            if build_folder:
                with suppress(KernelError):  # a folder that cannot be written does not hide the compiler's error
                    error.save(os.path.join(build_folder, f"{request.name}.failed"))
            raise
        for name in hidden_functions(core):
            text = (
                f"module {request.name!r}: its function {name!r} is hidden by CompiledModule.{name}. "
                f'Call it as module["{name}"], or rename it.'
            )
            if shown := _core.shown_warning("hidden-function", text):
                console.warning(shown)
        if request.verbose:
            console.output(f"kernix: {request.name}: {origin_in_words(core)}, {core.path}")
    return core, slot
