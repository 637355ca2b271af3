# SPDX-License-Identifier: Apache-2.0
"""What holds of every function and every array: made up by Hypothesis, the same ones each time."""

import dataclasses
import hashlib

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import kernix

pytestmark = pytest.mark.usefixtures("on_cpu")

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

# C++ spellings of what an attribute can be.
SCALARS = {
    "bool": ["bool"],
    "int8": ["int8_t", "char", "signed char", "std::int8_t"],
    "int16": ["short", "int16_t", "short int", "signed short"],
    "int32": ["int", "int32_t", "signed", "std::int32_t"],
    "int64": ["int64_t", "long", "long long", "long int long", "ptrdiff_t"],
    "uint8": ["uint8_t", "unsigned char"],
    "uint16": ["unsigned short", "uint16_t", "short unsigned int"],
    "uint32": ["unsigned", "unsigned int", "uint32_t", "::uint32_t"],
    "uint64": ["uint64_t", "size_t", "std::size_t", "unsigned long", "unsigned long long int"],
    "float32": ["float"],
    "float64": ["double"],
}
DEFAULTS = {
    "1": 1,
    "{}": 0,
    "1 < 2": 1,
    "(1, 2)": 2,
    'sizeof("),(")': 4,
    "kOne << 1": 2,
    "kOne < 2": 1,
    "Pair<1, 2>::kFirst": 1,
    "'\\''": 39,
}

SPACES = [" ", "  ", "\t", "\n", " /* , ) */ ", " // ( ,\n", " \\\n"]
MACRO_SPACES = [" ", "\t", " /* , ) */ ", " \\\n"]

PROLOGUE = """
#include "brainevent/common.h"
constexpr int kOne = 1;
template <int a, int b> struct Pair { static constexpr int kFirst = a; };
template <typename T> void Put(uint64_t*& to, T value) {
    *to = 0;
    memcpy(to++, &value, sizeof(value));
}
"""


def value_of(kind):
    """Return a strategy for the values of an attribute."""
    if kind == "bool":
        return st.booleans().map(np.bool_)
    if kind.startswith("float"):
        bits = int(kind[5:])
        # No -0.0: JAX looks for what it has compiled by equality, and takes the call with 0.0 for it.
        return st.floats(width=bits, allow_nan=False).map(lambda value: np.dtype(kind).type(value + 0.0))
    info = np.iinfo(kind)
    return st.integers(int(info.min), int(info.max)).map(np.dtype(kind).type)


@dataclasses.dataclass
class Parameter:
    """`words` are the declaration; `token` is what an arg_spec calls it; `value` is what it gets."""

    name: str
    token: str
    words: list[str]
    value: object = None
    default: str | None = None
    left_out: bool = False  # of the call


@st.composite
def tensors(draw, name):
    is_result = draw(st.booleans())
    words = ["BE", "::", "Tensor"]
    if not is_result:
        words = draw(st.sampled_from([["const", *words], [*words, "const"]]))
    words += draw(st.sampled_from([[], ["&"], ["&", "__restrict__"]]))
    return Parameter(name, "ret" if is_result else "arg", words)


@st.composite
def scalars(draw, name):
    kind = draw(st.sampled_from(list(SCALARS)))
    words = draw(st.sampled_from(SCALARS[kind])).split()
    words = draw(st.sampled_from([words, ["const", *words], [*words, "const"], ["const", *words, "&"]]))
    return Parameter(name, f"attr.{name}:{kind}", words, draw(value_of(kind)))


@st.composite
def parameters(draw):
    count = draw(st.integers(0, 7))
    found = [draw(st.one_of(tensors(f"p{i}"), scalars(f"p{i}"))) for i in range(count)]
    found.insert(draw(st.integers(0, count)), Parameter("log", "ret", ["BE", "::", "Tensor"]))
    if draw(st.booleans()):
        words = draw(
            st.sampled_from([["int64_t"], ["std", "::", "int64_t"], ["const", "int64_t"], ["int64_t", "const"]])
        )
        found.insert(draw(st.integers(0, count)), Parameter("stream", "stream", words))
    for parameter in reversed(found):
        if parameter.token in ("arg", "ret") or not draw(st.booleans()):
            break
        parameter.default = "0" if parameter.token == "stream" else draw(st.sampled_from(list(DEFAULTS)))
    for parameter in reversed(found):
        if parameter.default is None or parameter.token == "stream":
            break
        parameter.token += "?"
    return found


def leave_out(draw, params):
    """Leave some of the last attributes out of the call, where it may."""
    for parameter in reversed(params):
        if not parameter.token.endswith("?") or not draw(st.booleans()):
            return
        parameter.left_out = True
        parameter.value = type(parameter.value)(DEFAULTS[parameter.default])


@dataclasses.dataclass
class Function:
    """`name` is what the annotation says, `exported` what the module calls it."""

    name: str
    exported: str
    parameters: list[Parameter]
    source: str


def body_of(parameters):
    """Return statements that write everything that can be seen of the parameters into the results."""
    log = ["uint64_t* at = log.data_ptr<uint64_t>();"]
    others = []
    for index, parameter in enumerate(parameters):
        if parameter.token == "arg":
            log.append(f"Put(at, *{parameter.name}.data_ptr<const uint64_t>());")
        elif parameter.token == "ret" and parameter.name != "log":
            others.append(f"*{parameter.name}.data_ptr<uint64_t>() = {index};")
        elif parameter.token != "ret":
            log.append(f"Put(at, {parameter.name});")
    return " ".join(log + others)


@st.composite
def functions(draw, number):
    """Make a function that is written in any way that C++ allows."""
    params = draw(parameters())
    form = draw(st.sampled_from(["plain", "plain", "namespace", "macro", "template"]))
    space = st.sampled_from(MACRO_SPACES if form == "macro" else SPACES)
    name = f"f{number}"
    annotated = exported = name
    heads = ["void", "static void", "inline void", "[[gnu::noinline]] void", "__attribute__((unused)) static void"]
    head = draw(st.sampled_from(heads))
    written = name
    if form == "macro":
        annotated = exported = f"{name}_made"
        written = f"{name}##SUFFIX"
    if form == "template":
        kinds = [p for p in params if p.token.startswith("attr") and p.words[-1] != "&" and "const" not in p.words]
        spelled = " ".join(kinds[0].words) if kinds else "float"
        if kinds:
            kinds[0].words = ["T"]
        annotated = f"{name}<{spelled}, 3>"
        exported = f"{name}_{spelled.replace('std::', 'std_').replace('::', '').replace(' ', '_')}_3"
    pieces = []
    for parameter in params:
        words = [*draw(st.sampled_from([[], [], ["[[maybe_unused]]"]])), *parameter.words, parameter.name]
        if parameter.default:
            words += ["=", parameter.default]
        pieces.append("".join(draw(space) + word for word in words) + draw(st.sampled_from(["", " "])))
    text = f"{head} {written}{draw(st.sampled_from(['', ' ']))}({','.join(pieces)}{draw(space)})"
    ends = draw(st.sampled_from(["", " noexcept"]))
    text += ends + " { " + body_of(params) + " }"
    tokens = draw(st.sampled_from(["", "tokens", "bare"]))
    if tokens and draw(st.booleans()):  # each call has to give every attribute
        for parameter in params:
            parameter.token = parameter.token.removesuffix("?")
    leave_out(draw, params)
    spec = [p.token for p in params]
    if tokens == "bare":
        alias = {"arg": "args", "ret": "rets", "stream": "ctx.stream"}
        spec = [alias.get(t, t.split(":")[0].replace("attr.", "attrs.") + "?" * t.endswith("?")) for t in spec]
    mark = " ".join(["// @BE", annotated, *(spec if tokens else [])])
    if form == "macro":
        source = f"#define MAKE{number}(SUFFIX) \\\n  {text}\n{mark}\nMAKE{number}(_made)\n"
    elif form == "namespace":
        source = f"namespace outer{number}::inner {{ namespace {{\n{mark}\n{text}\n}} }}\n"
    elif form == "template":
        source = f"{mark}\ntemplate <typename T, int N, typename = void>\n{text}\n"
    else:
        declared = draw(st.booleans()) and not any(p.default for p in params)
        names = ", ".join(" ".join(p.words) for p in params)
        source = (f"{head} {name}({names}){ends};\n" if declared else "") + f"{mark}\n{text}\n"
    return Function(annotated, exported, params, source)


def call(module, function):
    """Call a function, and check that each parameter got what was meant for it."""
    params = function.parameters
    arguments = [jnp.asarray(1000 + i, jnp.uint64) for i, p in enumerate(params) if p.token == "arg"]
    results = [p for p in params if p.token == "ret"]
    shapes = [jax.ShapeDtypeStruct((16,) if p.name == "log" else (), np.uint64) for p in results]
    attributes = {p.name: p.value for p in params if p.token.startswith("attr") and not p.left_out}
    returned = jax.ffi.ffi_call(f"{module.name}.{function.exported}", shapes)(*arguments, **attributes)
    expected = []
    for index, parameter in enumerate(params):
        if parameter.token == "arg":
            expected.append(1000 + index)
        elif parameter.token == "stream":
            expected.append(0)
        elif parameter.token != "ret":
            expected.append(int.from_bytes(parameter.value.tobytes(), "little"))
    for parameter, value in zip(results, returned, strict=True):
        if parameter.name == "log":
            assert np.asarray(value).tolist()[: len(expected)] == expected, function
        else:
            assert int(value) == params.index(parameter), function


@settings(max_examples=6, derandomize=True, deadline=None, suppress_health_check=SLOW, phases=[Phase.generate])
@given(made=st.tuples(*[functions(number) for number in range(16)]))
def test_every_function_has_the_spec_that_it_was_written_with(made, place):
    """Many at a time: compiling is what takes time. They are not shrunk, but each failure prints the function."""
    source = PROLOGUE + "".join(function.source for function in made)
    name = f"properties_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    module = kernix.load_cpp_inline(name, source, extra_cflags=["-O0"])
    assert module.function_names == [function.exported for function in made]
    with jax.enable_x64(True):
        for function in made:
            assert module.arg_spec(function.exported) == [p.token for p in function.parameters], function.source
            call(module, function)


# --- Arrays and attributes -------------------------------------------------------------------------------------------

ECHO = """
#include "brainevent/common.h"
// @BE echo
void echo(const BE::Tensor& x, BE::Tensor& y, BE::Tensor& seen, bool a, int8_t b, uint16_t c, int32_t d, uint64_t e,
          int64_t f, float g, double h) {
    uint64_t* at = seen.data_ptr<uint64_t>();
    const auto put = [&at](auto value) { *at = 0; memcpy(at++, &value, sizeof(value)); };
    put(a), put(b), put(c), put(d), put(e), put(f), put(g), put(h);
    put(x.ndim()), put(x.numel()), put(x.nbytes());
    for (int i = 0; i < x.ndim(); ++i) put(x.shape(i)), put(x.stride(i));
    memcpy(y.data(), x.data(), x.nbytes());
}
"""
KINDS = {
    "a": "bool",
    "b": "int8",
    "c": "uint16",
    "d": "int32",
    "e": "uint64",
    "f": "int64",
    "g": "float32",
    "h": "float64",
}
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16"]
DTYPES += ["float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]


@st.composite
def arrays(draw):
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=8)))
    dtype = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    count = int(np.prod(shape))
    if dtype.kind == "b":
        return np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool).reshape(shape)
    seed = draw(st.integers(0, 2**32 - 1))
    return np.frombuffer(np.random.default_rng(seed).bytes(count * dtype.itemsize), dtype).reshape(shape)


@pytest.fixture(scope="module", name="echo")
def echo_fixture(place):
    """The kernel that says what it sees."""
    kernix.load_cpp_inline("properties_echo", ECHO)
    return "properties_echo.echo"


@settings(max_examples=100, derandomize=True, deadline=None, suppress_health_check=SLOW, phases=[Phase.generate])
@given(x=arrays(), values=st.fixed_dictionaries({name: value_of(kind) for name, kind in KINDS.items()}))
def test_arrays_and_attributes_arrive_as_they_were_sent(x, values, echo):
    shape = x.shape
    with jax.enable_x64(True):
        results = (jax.ShapeDtypeStruct(shape, x.dtype), jax.ShapeDtypeStruct((11 + 2 * len(shape),), np.uint64))
        y, seen = jax.ffi.ffi_call(echo, results)(jnp.asarray(x), **values)
        assert y.dtype == x.dtype
        assert np.asarray(y).tobytes() == x.tobytes()
        expected = [int.from_bytes(values[name].tobytes(), "little") for name in KINDS]
        expected += [len(shape), x.size, x.nbytes]
        for axis, extent in enumerate(shape):
            expected += [extent, int(np.prod(shape[axis + 1 :]))]
        assert np.asarray(seen).tolist() == expected
