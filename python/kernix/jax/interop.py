# SPDX-License-Identifier: Apache-2.0
"""Access to JAX for calls through it. Imports JAX only if the caller already has."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import ModuleType
from typing import Any

#: The end of a message about an argument for which :func:`is_description` holds.
ONLY_DESCRIBES = "only describes an array: pass the description of a result as out="

_ready: ModuleType | None = None  # the JAX module, once its import is known to be complete


def imported_jax() -> ModuleType | None:
    """Return JAX if it is completely imported; ``None`` while another thread is still importing it."""
    global _ready
    jax = sys.modules.get("jax")
    if jax is not _ready:
        if not all(hasattr(jax, name) for name in ("Array", "ShapeDtypeStruct", "core")):
            return None
        _ready = jax
    return jax


def is_description(value: Any) -> bool:
    """Return whether a value only describes an array: a ``jax.ShapeDtypeStruct``."""
    jax = imported_jax()
    return jax is not None and isinstance(value, jax.ShapeDtypeStruct)


def vary_alike(arguments: Sequence[Any], others: Iterable[Any]) -> Sequence[Any]:
    """Let every argument vary over all axes of a shard_map that any of them, or of `others`, varies over.

    A kernel mixes its arguments, so its results vary over every axis over which an argument varies. The casts also tell
    JAX how to differentiate: it sums the gradient of a replicated argument over its axes.
    """
    own = [_axes(_type_of(argument)) for argument in arguments]
    axes = frozenset().union(*own, *(_axes(_type_of(other)) for other in others))
    return [
        _cast(argument, tuple(sorted(axes - has))) if axes - has else argument
        for argument, has in zip(arguments, own, strict=True)
    ]


def make_spec(out: Any, arguments: Sequence[Any]) -> Any:
    """Return `out` as JAX's description of a result that varies over all axes over which `arguments` vary."""
    import jax

    kind: Any = _type_of(arguments[0]) if arguments else None
    if _axes(kind):
        name = "manual_axis_type" if hasattr(kind, "manual_axis_type") else "vma"
        sharding = jax.sharding.NamedSharding(kind.sharding.mesh, jax.sharding.PartitionSpec())
        return jax.ShapeDtypeStruct(out.shape, out.dtype, sharding=sharding, **{name: getattr(kind, name)})
    if not isinstance(out, jax.Array):
        return out if isinstance(out, jax.ShapeDtypeStruct) else jax.ShapeDtypeStruct(out.shape, out.dtype)
    if isinstance(out, jax.core.Tracer) or not isinstance(out.sharding, jax.sharding.SingleDeviceSharding):
        return out  # it may define how the result is sharded
    return jax.ShapeDtypeStruct(out.shape, out.dtype, weak_type=out.weak_type)


def _type_of(value: Any) -> Any:
    """Return the object that tells over which axes of a shard_map a value, or a described result, varies."""
    import jax

    # Only traced values vary. In some versions of JAX, their types do not tell the axes.
    return jax.typeof(value) if isinstance(value, jax.core.Tracer) and hasattr(jax, "typeof") else value


def _axes(kind: Any) -> frozenset[str]:
    """Return the axes over which an array of this type varies."""
    manual = getattr(kind, "manual_axis_type", None)
    return frozenset(getattr(kind, "vma", None) or () if manual is None else manual.varying)


def _cast(argument: Any, axes: tuple[str, ...]) -> Any:
    import jax

    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(argument, axes, to="varying")
    return getattr(jax.lax, "pvary")(argument, axes)  # noqa: B009 (type checkers do not know the attribute)


def is_tracing() -> bool:
    """Return whether a transformation of JAX, such as ``jax.jit``, is active in this thread."""
    core = sys.modules.get("jax._src.core")  # the public interface does not provide this
    clean: Callable[[], bool] | None = getattr(core, "trace_state_clean", None)
    return clean is not None and not clean()


def check_numpy_for_jax(array: Any) -> None:
    """Refuse arrays that JAX does not accept. Errors are ``TypeError`` or ``ValueError`` without a position."""
    import numpy as np

    if not isinstance(array, (np.ndarray, np.generic)):
        if is_description(array):
            raise TypeError(ONLY_DESCRIBES)
        raise TypeError(
            f"is of type {type(array).__qualname__} in a call by JAX; "
            "convert it to a JAX array with jax.numpy.asarray() or jax.dlpack.from_dlpack()"
        )
    if not array.dtype.isnative:
        raise ValueError(
            f"has a foreign byte order (dtype {array.dtype.str}); "
            "convert it with .astype(array.dtype.newbyteorder('='))"
        )
    if array.dtype.kind in "OSUMm":
        raise TypeError(f"has the element type {array.dtype.name}, which JAX does not have")


def plain_kinds(values: Iterable[Any]) -> list[Hashable] | None:
    """Return the properties of arrays and array descriptions that matter to a call outside of every transformation.

    Returns ``None`` if one of them is traced or sharded, or specifies its device: such a call depends on more.
    """
    import jax
    import numpy as np

    kinds: list[Hashable] = []
    for value in values:
        if isinstance(value, jax.Array):
            if isinstance(value, jax.core.Tracer) or type(value.sharding) is not jax.sharding.SingleDeviceSharding:
                return None
            kinds.append(value.aval)
        elif isinstance(value, np.ndarray):
            kinds.append((value.shape, value.dtype, value.flags.writeable))  # JAX refuses a writeable one as out
        elif isinstance(value, jax.ShapeDtypeStruct) and value.sharding is None and not _axes(value):
            kinds.append(value)
        else:
            return None
    return kinds


def platform_of(arguments: Iterable[Any]) -> str | None:
    """Return where JAX makes a call with these arguments (``"cpu"``, ``"gpu"``); ``None`` if it only traces."""
    import jax

    arrays = [argument for argument in arguments if isinstance(argument, jax.Array)] or [jax.device_put(0)]
    if is_tracing() or any(isinstance(array, jax.core.Tracer) for array in arrays):
        return None
    platforms = {device.platform for array in arrays for device in array.devices()}
    return str(platforms.pop()) if len(platforms) == 1 else None
