# SPDX-License-Identifier: Apache-2.0
"""Whether the result of a variant is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kernix.calling.arrays import name_of_dtype

#: A function of the result, the expected result, or None. The function returns False, or raises AssertionError.
Check = Callable[[Any], Any] | Any


def why_wrong(check: Check, result: Any) -> str:
    """Return why `check` refuses a result, or ``""`` if it is right.

    A result has the elements of an expected one if they differ by no more than the square root of the element type's
    precision, as a part of the largest element. Other types than floating-point and complex ones must be equal.
    """
    if check is None:
        return ""
    if callable(check):
        return _by_function(check, result)
    results = result if isinstance(result, tuple) else (result,)
    wanted = check if isinstance(check, (list, tuple)) else (check,)
    if len(results) != len(wanted):
        return f"check has {len(wanted)} arrays, and the function has {len(results)} results"
    pairs = enumerate(zip(results, wanted, strict=True))
    reasons = (_difference(got, expected, number, len(results)) for number, (got, expected) in pairs)
    return next(filter(None, reasons), "")


def _by_function(check: Callable[[Any], Any], result: Any) -> str:
    try:
        verdict = check(result)
    except AssertionError as error:
        return " ".join(str(error).split()) or "the check raised AssertionError"
    return "" if verdict is None or bool(verdict) else "the check returned False"


def _difference(result: Any, expected: Any, number: int, count: int) -> str:
    import numpy as np

    got, wanted = _to_numpy(result), np.asarray(_to_numpy(expected))
    what = f"result {number}" if count > 1 else "the result"
    if got.shape != wanted.shape:
        return f"{what} has the shape {got.shape}, not {wanted.shape}"
    if not got.size:
        return ""
    tolerance = _tolerance(got.dtype)
    if tolerance == 0:
        bad = got != wanted
    else:
        kind = complex if got.dtype.kind == "c" else float
        got, wanted = got.astype(kind), wanted.astype(kind)
        largest = float(np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted)))
        with np.errstate(invalid="ignore"):
            near = np.abs(got - wanted) <= tolerance * largest
        bad = ~(near | (got == wanted) | (np.isnan(got) & np.isnan(wanted)))
    if not bad.any():
        return ""
    place = tuple(int(index) for index in np.unravel_index(int(np.argmax(bad)), bad.shape))
    return f"{what} has {got[place]} at {list(place)}, not {wanted[place]}"


def _tolerance(dtype: Any) -> float:
    import numpy as np

    if dtype.kind in "biu":
        return 0.0
    try:
        return math.sqrt(np.finfo(dtype).eps)
    except ValueError:
        import ml_dtypes  # as JAX has it: bfloat16 and shorter types are its own

        precision: Any = ml_dtypes.finfo
        return math.sqrt(float(precision(dtype).eps))


def _to_numpy(array: Any) -> Any:
    """Return an array of any library as one of NumPy, on the host."""
    import numpy as np

    if hasattr(array, "detach"):  # PyTorch's
        array = array.detach().cpu()
        return (array.float() if name_of_dtype(array.dtype) == "bfloat16" else array).numpy()
    return array.get() if type(array).__module__.startswith("cupy") else np.asarray(array)
