# SPDX-License-Identifier: Apache-2.0
"""Attributes of calls that JAX makes: it finds compiled calls by them, and each call gets the bits that it says."""

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest

import kernix
from kernix.calling.attributes import Constant

pytestmark = pytest.mark.usefixtures("on_cpu")

TYPES = {"float32": "float", "float64": "double", "float16": "uint16_t", "bfloat16": "uint16_t", "uint64": "uint64_t"}


@pytest.fixture(scope="module", name="module")
def module_fixture(place):
    """Functions that write the bytes of their attribute, of each type and of arrays of it."""
    parts = ['#include <cstring>\n#include "brainevent/common.h"']
    for name, kind in TYPES.items():
        parts.append(f"// @BE get_{name} ret attr.v:{name}")
        parts.append(f"void get_{name}(BE::Tensor y, {kind} v) {{ std::memcpy(y.data_ptr(), &v, sizeof(v)); }}")
    for name in ("float32", "float64"):
        parts.append(f"// @BE first_{name} ret attr.v:{name}[]")
        parts.append(f"void first_{name}(BE::Tensor y, BE::Span<const {TYPES[name]}> v) {{")
        parts.append("    std::memcpy(y.data_ptr(), v.data(), sizeof(v[0])); }")
    return kernix.load_cpp_inline("constants", "\n".join(parts))


_numbers = itertools.count(8)


@pytest.fixture(name="out")
def out_fixture():
    """Return a description of a result that no other test has: JAX knows no compiled call with it."""
    return jax.ShapeDtypeStruct((next(_numbers),), np.uint8)


def get(function, value, dtype, out):
    """Return the attribute as the function got it."""
    return np.asarray(function(v=value, out=out)).tobytes()[: np.dtype(dtype).itemsize]


@pytest.mark.parametrize("values", [(0.0, -0.0, 0.0), (-0.0, 0.0, -0.0)], ids=str)
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_the_sign_of_zero_arrives(module, out, name, values):
    dtype = getattr(ml_dtypes, name, None) or name
    for value in values:
        assert get(module[f"get_{name}"], value, dtype, out) == np.asarray(value, dtype).tobytes()


@pytest.mark.parametrize("values", [(0.0, -0.0), (-0.0, 0.0)], ids=str)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_the_sign_of_zero_arrives_in_arrays(module, out, name, values):
    for value in values:
        assert get(module[f"first_{name}"], [value, 1], name, out) == np.asarray(value, name).tobytes()


def test_both_zeros_in_one_compiled_function(module, out):
    both = jax.jit(lambda: [module.get_float32(v=value, out=out) for value in (0.0, -0.0)])
    assert [np.asarray(y).tobytes()[:4] for y in both()] == [bytes(4), b"\0\0\0\x80"]


def test_a_call_with_a_nan_is_compiled_once(module, out):
    compiled = []

    def count(event, *_, **__):
        compiled.extend([event] * ("compile" in event))

    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        for value, function in [(float("nan"), module.get_float32), ([float("nan")], module.first_float32)]:
            before = len(compiled)
            function(v=value, out=out)
            once = compiled[before:]
            assert once
            function(v=value, out=out)
            assert compiled[before:] == once
    finally:
        getattr(jax.monitoring, "unregister_event_duration_listener", lambda _: None)(count)  # JAX 0.5 has none


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, 2**64 - 1], ids=hex)
@pytest.mark.parametrize("how", ["at once", "in jit"])
def test_the_largest_integers(module, out, value, how):
    call = lambda: module.get_uint64(v=value, out=out)  # noqa: E731
    y = call() if how == "at once" else jax.jit(call)()
    assert int.from_bytes(np.asarray(y).tobytes()[:8], "little") == value


@pytest.mark.parametrize(("name", "before", "value"), [("float16", 0, 0), ("float32", True, 1), ("float64", 1 + 0j, 1)])
def test_what_a_call_passes_is_no_earlier_call_of_other_words(module, out, name, before, value):
    """A value that is equal to Python, passed by an ffi_call: one that the kernel or JAX refuses."""
    function = module[f"get_{name}"]
    raw = jax.ffi.ffi_call(function.target, out)
    if name != "float32":
        with pytest.raises(Exception, match="must be passed as its bits|Unsupported scalar attribute type"):
            raw(v=before)
    else:
        raw(v=before)
    assert get(function, value, name, out) == np.asarray(value, name).tobytes()


def test_an_earlier_ffi_call_with_the_other_zero(module, out):
    jax.ffi.ffi_call(module.get_float32.target, out)(v=np.float32(-0.0))
    assert get(module.get_float32, 0.0, np.float32, out) == bytes(4)


def test_constants_are_equal_by_type_and_bits():
    one = Constant("float32", np.float32(1))
    assert one == Constant("float32", np.float32(1))
    assert hash(one) == hash(Constant("float32", np.float32(1)))
    assert one != Constant("uint32", np.uint32(0x3F800000))
    assert one != Constant("float32[]", np.ones(1, np.float32))
    assert one != np.float32(1) != one
    assert repr(one) == repr(np.float32(1))  # as a jaxpr shows it


def test_constants_can_be_exported(module, out):
    export = pytest.importorskip("jax.export", reason="in JAX 0.5 it needs absl-py, which JAX does not install")
    exported = export.export(
        jax.jit(lambda: module.get_float32(v=-0.0, out=out)),
        disabled_checks=[export.DisabledSafetyCheck.custom_call(module.get_float32.target)],
    )()
    assert "v = -0.0" in exported.mlir_module()
    assert np.asarray(exported.call()).tobytes()[:4] == b"\0\0\0\x80"
