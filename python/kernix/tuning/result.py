# SPDX-License-Identifier: Apache-2.0
"""What a tuning returns, and the error of one that finds nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from kernix._errors import KernelError
from kernix.calling.call import OPTIONS
from kernix.loading.module import CompiledModule
from kernix.tuning.space import Settings, shown_settings
from kernix.tuning.table import TuningRow, TuningTable, shown_seconds

__all__ = ["KernelTuningError", "TuningResult", "bound_function", "nothing_found"]


class KernelTuningError(KernelError):
    """No variant of :func:`kernix.autotune` is usable, or one has left the GPU unusable.

    Attributes
    ----------
    table : TuningTable
        What was found out before.
    """

    __module__ = "kernix"

    def __init__(self, message: str, table: TuningTable | None = None) -> None:
        super().__init__(message)
        self.table = TuningTable() if table is None else table


class TuningResult:
    """The result of :func:`kernix.autotune`.

    Attributes
    ----------
    name : str
        The name of the modules.
    best : dict or None
        The settings of the fastest variant; None with ``compile_only=True``, as `module` and `function` then are.
    module : CompiledModule or None
        Its module.
    function : callable or None
        Its function. What `launch` and `attributes` say about the call is bound, and `out`, too; a call may say it
        otherwise. Works inside ``jax.jit``.
    table : TuningTable
        A row for each variant, in the order of the search.
    from_memory : bool
        Whether an earlier search has found it, and no variant was timed now.
    """

    __module__ = "kernix"

    def __init__(
        self,
        name: str,
        table: TuningTable,
        *,
        best: Settings | None = None,
        module: CompiledModule | None = None,
        function: Callable[..., Any] | None = None,
        from_memory: bool = False,
    ) -> None:
        self.name = name
        self.table = table
        self.best = best
        self.module = module
        self.function = function
        self.from_memory = from_memory

    def __repr__(self) -> str:
        return f"<TuningResult of {self._headline()}>"

    def __str__(self) -> str:
        return f"{self._headline()}\n{self.table}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<b>{escape(self._headline())}</b>{self.table._repr_html_()}"

    def _headline(self) -> str:
        count = f"{self.name}: {len(self.table)} variant{'s' * (len(self.table) != 1)}"
        row = next((row for row in self.table if row.outcome == "best"), None)
        if row is None or row.seconds is None:
            compiled = sum(row.outcome == "compiled" for row in self.table)
            return f"{count}, {compiled} of them usable, none timed"
        ties = sum(row.outcome == "tied" for row in self.table)
        tied = f", tied with {ties} more" if ties else ""
        memory = ", from an earlier search" if self.from_memory else ""
        return f"{count}, best {shown_settings(row.settings)}: {shown_seconds(row.seconds)}{tied}{memory}"


def bound_function(module: CompiledModule, function: str, attributes: dict[str, Any], out: Any) -> Callable[..., Any]:
    """Return a function of a module with what its calls take as defaults."""
    plain: dict[str, Any] = {name: value for name, value in attributes.items() if name not in OPTIONS}
    if others := {name: value for name, value in attributes.items() if name in OPTIONS}:
        plain["attributes"] = others
    if out is not None:
        plain["out"] = out
    return partial(module[function], **plain)


def nothing_found(name: str, table: TuningTable) -> KernelTuningError:
    """Make the error for a search after which no variant can be used."""
    counts = Counter(row.outcome for row in table)
    first: dict[str, TuningRow] = {}
    for row in table:
        first.setdefault(row.outcome, row)
    lines = [
        f"{count} {_verb(outcome)}; {shown_settings(first[outcome].settings)}: {first[outcome].reason}"
        for outcome, count in counts.most_common()
    ]
    which = "the only variant is not" if len(table) == 1 else f"none of the {len(table)} variants is"
    return KernelTuningError("\n  ".join([f"{name}: {which} usable:", *lines]), table)


def _verb(outcome: str) -> str:
    """Return how a message says that variants had an outcome."""
    return {"wrong": "gave a wrong result", "spills": "spilled", "failed": "failed"}.get(
        outcome, outcome.replace("does", "did")
    )
