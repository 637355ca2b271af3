# SPDX-License-Identifier: Apache-2.0
"""What a tuning returns: the best variant, and a table of all; the error of one that finds nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from kernix._errors import KernelError
from kernix.calling.call import OPTIONS
from kernix.loading.module import CompiledModule
from kernix.loading.report import html_table, text_table
from kernix.tuning.space import Settings, shown_settings

_MOST_SHOWN = 40


class TuningRow(NamedTuple):
    """What :func:`kernix.autotune` has found out about one variant.

    Attributes
    ----------
    settings : dict
        The value of each name of the space.
    outcome : str
        ``"best"``; ``"tied"``, as fast within the spread: its quartiles and those of the best overlap; ``"slower"``;
        ``"cut short"``, much slower, and so timed only a few times; ``"compiled"`` (with ``compile_only=True``);
        ``"does not compile"``; ``"not built"``, its build took too long or the disk is full; ``"spills"`` or
        ``"does not fit"``, and so was not run; ``"wrong"``, the check failed; ``"failed"``, the call failed.
    seconds : float or None
        The median of one call; None if it was not timed.
    low, high : float or None
        The quartiles: half of the measurements lie between them.
    repeats : int
        The number of measurements.
    reason : str
        Why it was not timed.
    registers, shared_memory, spills : int or None
        Of its CUDA kernel (the largest, if there are several), as :class:`kernix.KernelResources` has them: registers
        per thread, bytes per block, and bytes stored and loaded for want of registers.
    """

    settings: Settings
    outcome: str
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    repeats: int = 0
    reason: str = ""
    registers: int | None = None
    shared_memory: int | None = None
    spills: int | None = None


TuningRow.__module__ = "kernix"


class TuningTable(list[TuningRow]):
    """The rows of all variants, in the order of the search. As text, the fastest come first."""

    __module__ = "kernix"

    def __init__(self, rows: Iterable[TuningRow] = ()) -> None:
        super().__init__(rows)

    def by_time(self) -> list[TuningRow]:
        """Return the rows: the best, the others by their times, and those without one."""
        return sorted(
            self, key=lambda row: (row.outcome != "best", row.seconds is None, row.seconds or 0.0, row.outcome)
        )

    def __str__(self) -> str:
        cells = self._cells()
        if not cells:
            return "no variants"
        return "\n".join(text_table(cells) + self._left_out())

    def _repr_html_(self) -> str:
        return html_table(self._cells() or [["no variants"]]) + "".join(self._left_out())

    def plot(self, axes: Any = None) -> Any:
        """Draw the times of the variants, the fastest first, with their quartiles. Needs matplotlib.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw. Default: new axes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if axes is None:
            from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]

            _, axes = pyplot.subplots()
        timed = [row for row in self.by_time() if row.seconds is not None]
        middle = [(row.seconds or 0.0) * 1e6 for row in timed]
        below = [mid - (row.low or 0.0) * 1e6 for mid, row in zip(middle, timed, strict=True)]
        above = [(row.high or 0.0) * 1e6 - mid for mid, row in zip(middle, timed, strict=True)]
        axes.errorbar(range(len(timed)), middle, yerr=[below, above], fmt=".")
        axes.set_xlabel("variant, the fastest first")
        axes.set_ylabel("µs")
        return axes

    def _cells(self) -> list[list[str]]:
        """Return the texts of a head and of the rows."""
        if not self:
            return []
        has_resources = any(row.registers is not None for row in self)
        names = list(self[0].settings)
        resources = ["registers", "shared", "spills"] if has_resources else []
        head = [*names, "time", "quartiles", *resources, ""]
        return [head, *(_texts(row, has_resources) for row in self.by_time()[:_MOST_SHOWN])]

    def _left_out(self) -> list[str]:
        return [f"... and {len(self) - _MOST_SHOWN} more"] if len(self) > _MOST_SHOWN else []


def shown_seconds(seconds: float) -> str:
    """Return a time with three digits and its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1000 * size else f"{seconds:.0f} s"
    return f"{seconds / 1e-9:.3g} ns"


def _texts(row: TuningRow, has_resources: bool) -> list[str]:
    quartiles = ""
    if row.low is not None and row.high is not None:
        quartiles = f"{shown_seconds(row.low)} to {shown_seconds(row.high)}"
    numbers: Sequence[int | None] = [row.registers, row.shared_memory, row.spills] if has_resources else []
    return [
        *map(str, row.settings.values()),
        "" if row.seconds is None else shown_seconds(row.seconds),
        quartiles,
        *("" if number is None else str(number) for number in numbers),
        f"{row.outcome}: {row.reason}" if row.reason else row.outcome,
    ]


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
    return {
        "wrong": "gave a wrong result",
        "spills": "spilled",
        "failed": "failed",
        "not built": "could not be built",
    }.get(outcome, outcome.replace("does", "did"))
