# SPDX-License-Identifier: Apache-2.0
"""The space of a tuning: its names and values, the variants, and what each variant means for load and call."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kernix._errors import KernelRequestError
from kernix.calling.launch import LAUNCH

Value = bool | int | float | str | tuple[int, ...]
Settings = dict[str, Value]

#: What a call takes besides arrays, by name: for all variants, or as a function of a variant's settings.
Launch = Mapping[str, Any] | Callable[[Settings], Mapping[str, Any]] | None

_MOST_VARIANTS = 10_000


class Space:
    """A checked space.

    Parameters
    ----------
    values : dict
        Values of each name.
    launch : Launch
        What a call takes.

    Attributes
    ----------
    values : dict
        The values as given, in plain types.
    macros : tuple of str
        The names that are macros of a load. The others are for the call only.
    """

    def __init__(self, values: Mapping[str, Iterable[Any]], launch: Launch = None) -> None:
        if not isinstance(values, Mapping):
            raise TypeError(f"space must be a dict of names and lists of values, not {values!r}")
        if not values:
            raise KernelRequestError("the space is empty: name at least one macro, with its values")
        self._launch = _checked_launch(launch)
        self.values = {_checked_name(name): _checked_values(name, listed) for name, listed in values.items()}
        count = math.prod(len(listed) for listed in self.values.values())
        if count > _MOST_VARIANTS:
            raise KernelRequestError(
                f"the space has {count:,} variants, and a search takes at most {_MOST_VARIANTS:,}: leave some out"
            )
        for_calls = {*LAUNCH, *self._names_in_launch()}
        self.macros = tuple(name for name in self.values if name not in for_calls)
        self._check_tuples()

    def variants(self, order: Callable[[Settings], Any] | None = None) -> list[Settings]:
        """Return all variants: the product, in which the last name changes fastest, or sorted by `order`."""
        product = [dict(zip(self.values, chosen, strict=True)) for chosen in itertools.product(*self.values.values())]
        return product if order is None else sorted(product, key=order)

    def defines(self, settings: Settings) -> Settings:
        """Return a variant's macros."""
        return {name: settings[name] for name in self.macros}

    def attributes(self, settings: Settings) -> dict[str, Any]:
        """Return what a call of a variant takes besides arrays."""
        direct = {name: value for name, value in settings.items() if name in LAUNCH}
        if isinstance(self._launch, Mapping):
            return direct | {name: _computed(value, settings) for name, value in self._launch.items()}
        return direct if self._launch is None else direct | _returned(self._launch, settings)

    def _names_in_launch(self) -> set[str]:
        """Return what `launch` gives to calls, and the texts in it, which may be names of the space."""
        if isinstance(self._launch, Mapping):
            return {*self._launch, *(value for value in self._launch.values() if isinstance(value, str))}
        first = {name: listed[0] for name, listed in self.values.items()}
        return set() if self._launch is None else set(_returned(self._launch, first))

    def _check_tuples(self) -> None:
        for name in self.macros:
            if any(isinstance(value, tuple) for value in self.values[name]):
                raise KernelRequestError(f"space[{name!r}] has a tuple, which a macro cannot be: pass text")


def shown_settings(settings: Settings) -> str:
    """Return ``"BLOCK=256 UNROLL=4"``."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _checked_launch(launch: Launch) -> Launch:
    if launch is None or callable(launch) or isinstance(launch, Mapping):
        return launch
    raise TypeError(f"launch must be a dict, or a function of a variant's settings that returns one, not {launch!r}")


def _returned(launch: Callable[[Settings], Mapping[str, Any]], settings: Settings) -> dict[str, Any]:
    returned = launch(dict(settings))
    if not isinstance(returned, Mapping):
        raise TypeError(f"launch returned {returned!r}; it must return a dict of what the call takes")
    return dict(returned)


def _computed(value: Any, settings: Settings) -> Any:
    if callable(value):
        return value(dict(settings))
    return settings.get(value, value) if isinstance(value, str) else value


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise KernelRequestError(f"space: {name!r} is not an identifier, as a macro needs it")
    return name


def _checked_values(name: str, values: Any) -> list[Value]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"space[{name!r}] must be a list of values, not {values!r}")
    listed = [_plain(name, value) for value in itertools.islice(values, _MOST_VARIANTS + 1)]
    if len(listed) > _MOST_VARIANTS:
        raise KernelRequestError(
            f"space[{name!r}] has more than {_MOST_VARIANTS:,} values, and a search takes at most as many variants: "
            "leave some out"
        )
    if not listed:
        raise KernelRequestError(f"space[{name!r}] has no value: there would be no variant")
    seen: set[tuple[type, Value]] = set()
    for value in listed:
        if (type(value), value) in seen:
            raise KernelRequestError(f"space[{name!r}] has {value!r} twice")
        seen.add((type(value), value))
    return listed


def _plain(name: str, value: Any) -> Value:
    """Return a value in a type that JSON and ``defines`` have."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a scalar of NumPy
        value = value.item()
    if isinstance(value, (bool, str, float)):
        return value
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, (list, tuple)) and value and all(hasattr(size, "__index__") for size in value):
            return tuple(operator.index(size) for size in value)
    kind = type(value).__qualname__
    raise KernelRequestError(f"space[{name!r}] has a value of type {kind}; it must be a number, a str or a bool")
