# SPDX-License-Identifier: Apache-2.0
"""The function that tunes a kernel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from kernix import _core
from kernix._errors import KernelCallError, KernelRequestError, short_errors
from kernix.loading.load import PreparedLoad
from kernix.loading.module import CompiledModule, module_of
from kernix.tuning.arrays import Arrays
from kernix.tuning.check import Check, why_wrong
from kernix.tuning.memory import Memory, Remembered, describe_machine
from kernix.tuning.result import TuningResult, bound_function
from kernix.tuning.source import Plan, Source, SourceOrFiles, only_function
from kernix.tuning.space import Launch, Settings, Space


@short_errors
def autotune(
    source: SourceOrFiles,
    space: Mapping[str, Iterable[Any]],
    args: Sequence[Any] = (),
    *,
    function: str | None = None,
    out: Any = None,
    launch: Launch = None,
    attributes: Mapping[str, Any] | None = None,
    check: Check = None,
    order: Callable[[Settings], Any] | None = None,
    compile_only: bool = False,
    allow_spills: bool = False,
    repeats: int = 30,
    rotate: bool = True,
    at_once: int = 64,
    force: bool = False,
    language: Literal["cuda", "cpp"] | None = None,
    name: str | None = None,
    **options: Any,
) -> TuningResult:
    """Compile the variants of a kernel, check and time each, and return the fastest.

    kernixd compiles the variants side by side, in the background. Each is checked and timed in this process when it
    arrives. The fastest are then timed once more, by turns. The result is kept for this source, space and machine, and
    for these shapes and element types: the next call loads the winner, and times nothing.

    Parameters
    ----------
    source : str, path-like, or a list of paths
        Source text (a str with a line break), or one or several files.
    space : dict
        Values of each name: numbers, strings, bools. A variant has one value for each name. Names become macros, except
        those that say how a ``__global__`` function is launched: ``grid``, ``block`` (numbers or tuples), ``shared``,
        ``cluster``, ``cooperative``, and those that `launch` names. At most 10,000 variants.
    args : list of arrays
        The arguments of all calls.
    function : str, optional
        The function to tune. Default: the only one of the module.
    out : spec, array, or sequence of them, optional
        The results, as for a call. Arrays only describe results: a variant writes into arrays of its own.
    launch : dict or callable, optional
        What a call takes besides arrays, of each variant. In a dict, a function is called with the variant's settings,
        and a name of the space stands for its value: ``{"grid": lambda s: n // s["BLOCK"], "scale": "scale"}``. A
        callable takes the settings and returns a dict.
    attributes : dict, optional
        What all calls take besides arrays.
    check : callable, array, or sequence of arrays, optional
        What is right: a function of the result, which returns False or raises ``AssertionError`` if it is wrong; or the
        expected result.
    order : callable, optional
        The variants are compiled in the order of what it returns for their settings. Default: the order of the product,
        in which the last name of the space changes fastest.
    compile_only : bool, default False
        Only compile. The table has the resources of CUDA kernels. Needs no GPU if `compute_capability` is given.
    allow_spills : bool, default False
        Run CUDA variants, too, whose kernels need more registers than there are.
    repeats : int, default 30
        Measurements of each of the fastest.
    rotate : bool, default True
        Time each call on other copies of the arrays than the call before, so that it reads from memory and not from a
        cache. Pass False if what runs before the kernel leaves its arguments in the cache.
    at_once : int, default 64
        Loads under way at a time.
    force : bool, default False
        Search even if the result of an earlier search is known.
    language : {"cuda", "cpp"}, optional
        Default: CUDA for a file ``*.cu``, and for a text with ``__global__``, ``<<<`` or ``cudaStream_t``.
    name : str, optional
        Name of the modules. Default: that of the first file, or ``"tuned"``.
    **options
        Other parameters of the loads, as for :func:`kernix.load_cuda_inline`. With `target_prefix`, the winner is
        registered with JAX under that prefix; without, under a name that nothing else has, when JAX first calls it.

    Returns
    -------
    TuningResult
        The best settings, the module and its function, and the table of all variants.

    Raises
    ------
    KernelRequestError
        If the space is empty, too large, or has names or values that cannot be macros.
    KernelTuningError
        If no variant compiles, runs, and passes the check; or if one has left the GPU unusable.
    KernelNotCachedError
        If a variant would have to be compiled, and the process or its loads may not.
    KernelError
        If no variant can be compiled here at all, as a load says it.
    """
    checked_source = Source(source, language, name, options)
    checked_space = Space(space, launch)
    variants = checked_space.variants(order)
    calls = [{**(attributes or {}), **checked_space.attributes(settings)} for settings in variants]
    counts = [_at_least_one("repeats", repeats), _at_least_one("at_once", at_once)]
    plan = Plan(checked_source, checked_space, variants, calls, function, check, allow_spills, *counts)
    if compile_only:
        return _compiled(plan)
    arrays = Arrays("CUDA" if checked_source.is_cuda else "cpu", args, out, rotate=rotate)
    memory = Memory(_about(plan, arrays))
    recorded = bool(os.environ.get("KERNIX_RECORD"))  # what is recorded must not depend on earlier searches
    kept = None if force or recorded else memory.recall(variants)
    return (_from_memory(plan, arrays, kept) if kept else None) or _searched(plan, arrays, memory)


def _about(plan: Plan, arrays: Arrays) -> dict[str, Any]:
    """Return what the result of a search depends on. The key of the winner's module covers headers and compilers."""
    return {
        "version": _core.version(),
        "sources": plan.source.texts,
        "cuda": plan.source.is_cuda,
        "options": {
            name: value for name, value in plan.source.options.items() if name not in ("target_prefix", "verbose")
        },
        "function": plan.function,
        "variants": [
            [list(settings.items()), call] for settings, call in zip(plan.variants, plan.attributes, strict=True)
        ],
        "macros": plan.space.macros,
        "allow_spills": plan.allow_spills,
        "arrays": arrays.signature(),
        "rotate": arrays.rotate,
        "machine": describe_machine(plan.source.is_cuda, arrays.device),
    }


def _from_memory(plan: Plan, arrays: Arrays, kept: Remembered) -> TuningResult | None:
    """Return the result of an earlier search, or None if the winner's module has changed since, or is wrong now."""
    load = _load_of_winner(plan, kept.winner)
    fetched = load.fetch()
    unregistered = module_of(fetched.core, fetched.slot, None)
    if unregistered.key != kept.module_key or not _is_right(plan, arrays, kept.winner, unregistered):
        return None
    return _result(plan, arrays, kept, load.deliver(fetched), from_memory=True)


def _is_right(plan: Plan, arrays: Arrays, number: int, module: CompiledModule) -> bool:
    """Return whether a variant passes the check, which may be another one than that of the search."""
    if plan.check is None:
        return True
    function = module[only_function(module, plan.function)]
    try:
        with arrays.clock() as clock:
            results = arrays.results_of(function, plan.attributes[number], clock)
    except (KernelCallError, ValueError):
        return False  # the search says what is wrong
    return not why_wrong(plan.check, results)


def _compiled(plan: Plan) -> TuningResult:
    from kernix.tuning.search import Search

    return TuningResult(plan.source.name, Search(plan, None).run())


def _searched(plan: Plan, arrays: Arrays, memory: Memory) -> TuningResult:
    from kernix.tuning.search import Search  # it imports what a result from memory does not need

    search = Search(plan, arrays)
    table = search.run()
    winner = search.winner()
    load = _load_of_winner(plan, winner)
    fetched = load.fetch()
    found = Remembered(winner, fetched.core.key, table)
    if all(row.outcome != "not built" for row in table):  # another search may be able to build it
        memory.keep(found)
    return _result(plan, arrays, found, load.deliver(fetched), from_memory=False)


def _load_of_winner(plan: Plan, winner: int) -> PreparedLoad:
    return plan.source.load_of_winner(plan.space.defines(plan.variants[winner]))


def _result(
    plan: Plan, arrays: Arrays, found: Remembered, module: CompiledModule, *, from_memory: bool
) -> TuningResult:
    function = only_function(module, plan.function)
    return TuningResult(
        plan.source.name,
        found.table,
        best=dict(plan.variants[found.winner]),
        module=module,
        function=bound_function(module, function, plan.attributes[found.winner], arrays.out),
        from_memory=from_memory,
    )


def _at_least_one(what: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise KernelRequestError(f"{what} must be a whole number, at least 1, not {value!r}")
    return value
