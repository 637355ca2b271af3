# SPDX-License-Identifier: Apache-2.0
"""What the kernel language has beyond the reference, called through JAX on the CPU."""

import inspect
import subprocess
import sys
import warnings

import jax
import ml_dtypes
import numpy as np
import pytest

import kernix

pytestmark = pytest.mark.usefixtures("on_cpu")

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
ELEMENTS = {name: f"{name}_t" for name in INTEGERS} | {"float32": "float", "float64": "double"}

KERNELS = """
#include "brainevent/common.h"
// @BE text
void text(BE::Tensor out, std::string_view s) {
    out.data_ptr<int32_t>()[0] = (int32_t)s.size();
    out.data_ptr<int32_t>()[1] = s.empty() ? -1 : (unsigned char)s.back();
}
// @BE sum
void sum(BE::Tensor out, BE::Span<const BE::Tensor> xs) {
    float* to = out.data_ptr<float>();
    for (int64_t i = 0; i < out.numel(); ++i) {
        to[i] = 0;
        for (const BE::Tensor& x : xs) to[i] += x.data_ptr<const float>()[i];
    }
}
// @BE split
void split(const BE::Tensor x, BE::Span<BE::Tensor> outs) {
    const float* from = x.data_ptr<const float>();
    for (BE::Tensor& out : outs)
        for (int64_t i = 0; i < out.numel(); ++i) out.data_ptr<float>()[i] = *from++;
}
// @BE add
void add(const BE::Tensor x, const BE::Tensor* bias, BE::Tensor out) {
    for (int64_t i = 0; i < x.numel(); ++i)
        out.data_ptr<float>()[i] = x.data_ptr<const float>()[i] + (bias ? bias->data_ptr<const float>()[i] : 0);
}
// @BE device
void device(BE::Tensor out, int device_ordinal) { *out.data_ptr<int32_t>() = device_ordinal; }
// @BE reversed arg ret scratch:arg0.nbytes()
void reversed(const BE::Tensor x, BE::Tensor y, BE::Scratch buffer) {
    float* copy = buffer.as<float>();
    for (int64_t i = 0; i < x.numel(); ++i) copy[i] = x.data_ptr<const float>()[i];
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = copy[x.numel() - 1 - i];
}
// @BE step arg.token ret.token ret attr.add
void step(BE::Tensor out, int add) {
    static int counter = 0;
    counter += add;
    *out.data_ptr<int32_t>() = counter;
}
""" + "\n".join(
    f"// @BE array_{name}\nvoid array_{name}(BE::Tensor out, BE::Span<const {cpp_type}> values) {{\n"
    f"    BE_CHECK((int64_t)values.size() == out.numel()) << values.size();\n"
    f"    for (size_t i = 0; i < values.size(); ++i) out.data_ptr<{cpp_type}>()[i] = values[i];\n}}"
    for name, cpp_type in ELEMENTS.items()
)


@pytest.fixture(scope="module", name="module", autouse=True)
def module_fixture(place):
    """The kernels above, registered as ``ext.<function>``."""
    return kernix.load_cpp_inline("ext", KERNELS)


def out(shape, dtype=np.float32):
    """Return a shape and dtype as ``ffi_call`` takes them."""
    return jax.ShapeDtypeStruct(shape, dtype)


def call(function, result, *arguments, **attributes):
    """Call ``ext.<function>``."""
    return jax.tree.map(np.asarray, jax.ffi.ffi_call(f"ext.{function}", result)(*arguments, **attributes))


def test_specs_are_shown(module):
    assert module.arg_spec("text") == ["ret", "attr.s:string"]
    assert module.arg_spec("array_int8") == ["ret", "attr.values:int8[]"]
    assert module.arg_spec("sum") == ["ret", "args..."]
    assert module.arg_spec("split") == ["arg", "rets..."]
    assert module.arg_spec("add") == ["arg", "arg?", "ret"]
    assert module.arg_spec("device") == ["ret", "device_ordinal"]
    assert module.arg_spec("reversed") == ["arg", "ret", "scratch:arg0.nbytes()"]
    assert module.arg_spec("step") == ["arg.token", "ret.token", "ret", "attr.add:int32"]


# --- Attributes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["fast", "", "Grüße", "a\0b", np.str_("numpy"), b"bytes"], ids=repr)
def test_strings(text):
    data = text if isinstance(text, bytes) else text.encode()
    assert call("text", out((2,), np.int32), s=text).tolist() == [len(data), data[-1] if data else -1]


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("shape", [(3,), (0,), (), (2, 3), (1000,)], ids=str)
def test_arrays(name, shape):
    values = (np.arange(np.prod(shape, dtype=int)) * 3 - (0 if name.startswith("u") else 5)).astype(name).reshape(shape)
    with jax.enable_x64(True):
        assert call(f"array_{name}", out((values.size,), name), values=values).tolist() == values.ravel().tolist()


def test_arrays_are_flattened_row_major():
    columns = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert call("array_int32", out((6,), np.int32), values=columns).tolist() == [0, 1, 2, 3, 4, 5]
    assert call("array_int32", out((2,), np.int32), values=np.arange(4, dtype=np.int32)[::2]).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("function", "attributes", "message"),
    [
        ("array_float32", {"values": np.zeros(1)}, r"array_float32: attribute 'values' .* is an array of float64"),
        ("array_int8", {"values": np.zeros(1, np.uint8)}, r"'values' \(int8\[\]\) is an array of uint8"),
        ("array_int32", {"values": 3}, r"'values' \(int32\[\]\) must be a NumPy array, not a scalar"),
        ("array_int32", {"values": "3"}, r"'values' \(int32\[\]\) must be a NumPy array, not a string"),
        ("array_int32", {"values": {"a": 1}}, r"'values' \(int32\[\]\) must be a NumPy array, not a dictionary"),
        ("array_int32", {}, r"'values' \(int32\[\]\) is missing"),
        ("text", {"s": 3}, r"text: attribute 's' \(string\) must be a str, not a scalar"),
        ("text", {"s": np.zeros(2)}, r"'s' \(string\) must be a str, not an array"),
        ("text", {"s": "a", "t": "b"}, "text: has no attribute 't'"),
        ("array_int32", {"values": np.zeros(2, np.int32)}, r"array_int32: check failed at ext:\d+.*: 2"),
    ],
)  # fmt: skip
def test_wrong_attributes_are_named(function, attributes, message):
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        call(function, out((1,), np.int32), **attributes)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1, 2], TypeError, "Non-hashable keyword argument to ffi_call values"),
        ((1, 2), jax.errors.JaxRuntimeError, "Unsupported attribute type for attribute: values"),
        (None, TypeError, "No attribute handler defined for type.*NoneType"),
        (np.zeros(2, bool), jax.errors.JaxRuntimeError, "Unsupported array element type for attribute: values"),
        (np.zeros(2, np.float16), jax.errors.JaxRuntimeError, "Unsupported array element type for attribute: values"),
        (np.zeros(2, ml_dtypes.bfloat16), jax.errors.JaxRuntimeError, "Unsupported array element type"),
        (np.zeros(2, np.complex64), jax.errors.JaxRuntimeError, "Unsupported array element type for attribute: values"),
        (np.zeros(2, ">f4"), TypeError, "No dtype_to_ir_type handler for dtype: >f4"),
        (np.float16(1.5), jax.errors.JaxRuntimeError, "Unsupported float attribute bit width for attribute: values"),
        (1.5j, TypeError, "Unsupported scalar attribute type"),
        (2**63, OverflowError, "too large"),
        (jax.numpy.ones(2), TypeError, "Non-hashable keyword argument to ffi_call values"),
    ],
    ids=repr,
)
def test_what_jax_itself_refuses(value, error, message):
    """No handler runs, so the message is JAX's: docs/kernels.md says what to pass instead."""
    with pytest.raises(error, match=message):
        call("array_float32", out((2,)), values=value)


SCALARS = {"bool": "bool"} | ELEMENTS | {"float16": "uint16_t", "bfloat16": "uint16_t"}
VALUES = [
    True, np.False_, 0, 1, -1, 127, 128, -129, 255, 256, 65536, 2**24 + 1, 2**31, 2**32 - 1, 2**53 + 1, -(2**63),
    2**63 - 1,
    0.5, 2.0, -3.0, 1e10, 3.4e38, 3.5e38, 1e300, float("inf"), float("-inf"), float("nan"),
    np.int8(-5), np.uint8(200), np.int16(-300), np.uint16(40000), np.int32(70000), np.uint32(4000000000),
    np.float32(0.1), np.float64(0.1), np.float64(-7.0),
]  # fmt: skip


def what_arrives(token, value):
    """Return what a parameter of that type gets, or the message of the error."""
    dtype = np.dtype("uint16" if token.endswith("float16") else token)
    if token.endswith("float16"):
        return value if isinstance(value, np.uint16) else "must be passed as its bits, an np.uint16"
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            converted = dtype.type(value)
        is_integer = isinstance(value, int | np.integer | np.bool_)
        lost = int(converted) != int(value) if is_integer else np.isinf(converted) and not np.isinf(value)
        return "is out of range" if lost else converted
    if not np.isfinite(float(value)) or abs(float(value)) > 2**63:
        return "is out of range"
    if int(value) != value:
        return "must be a whole number"
    limits = (0, 1) if token == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return int(value) if limits[0] <= int(value) <= limits[1] else "is out of range"


@pytest.fixture(scope="module", name="scalars")
def scalars_fixture(place):
    """``scalars.get_<type>``, which write their attribute to their result."""
    parts = [
        f"// @BE get_{token} ret attr.value:{token}\n"
        f"void get_{token}(BE::Tensor y, {cpp_type} value) {{ *y.data_ptr<{cpp_type}>() = value; }}"
        for token, cpp_type in SCALARS.items()
    ]
    return kernix.load_cpp_inline("scalars", "\n".join(['#include "brainevent/common.h"', *parts]))


@pytest.mark.parametrize("token", SCALARS)
def test_every_pair_of_type_and_value(scalars, token):
    dtype = np.uint16 if token.endswith("float16") else token
    for value in VALUES:
        expected = what_arrives(token, value)
        with jax.enable_x64(True):
            get = jax.ffi.ffi_call(f"scalars.get_{token}", out((1,), dtype))
            if isinstance(expected, str):
                with pytest.raises(jax.errors.JaxRuntimeError, match=rf"'value' \({token}\) {expected}"):
                    get(value=value)
            else:
                np.testing.assert_array_equal(get(value=value)[0], dtype_of(expected, dtype), err_msg=repr(value))


def dtype_of(value, dtype):
    """Return a value as a scalar of a type."""
    return np.dtype(dtype).type(value)


def test_equal_values_of_other_types_are_the_same(scalars):
    """JAX may pass what an earlier call with an equal value had."""
    for value in (1.0, True, 1, np.int8(1)):
        for token in ("int32", "bool", "float32"):
            assert jax.ffi.ffi_call(f"scalars.get_{token}", out((1,), token))(value=value)[0] == 1


# --- Any number of arguments and results -----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_any_number_of_arguments(count):
    xs = [np.full(3, i, np.float32) for i in range(count)]
    assert call("sum", out((3,)), *xs).tolist() == [sum(range(count))] * 3


def test_any_number_of_results():
    x = np.arange(6, dtype=np.float32)
    first, second = call("split", (out((2,)), out((4,))), x)
    assert (first.tolist(), second.tolist()) == ([0, 1], [2, 3, 4, 5])
    assert jax.ffi.ffi_call("ext.split", ())(x) == ()


def test_optional_argument():
    x = np.arange(3, dtype=np.float32)
    assert call("add", out((3,)), x).tolist() == [0, 1, 2]
    assert call("add", out((3,)), x, x).tolist() == [0, 2, 4]
    with pytest.raises(jax.errors.JaxRuntimeError, match="add: expected 1 to 2 arguments, got 3"):
        call("add", out((3,)), x, x, x)
    with pytest.raises(jax.errors.JaxRuntimeError, match="add: expected 1 to 2 arguments, got 0"):
        call("add", out((3,)))


# --- The device, its memory, order -----------------------------------------------------------------------------------

ON_EACH_DEVICE = """
import jax, numpy as np, kernix
kernix.load_cpp_inline("ext", '''
#include "brainevent/common.h"
// @BE device
void device(BE::Tensor out, int device_ordinal) { *out.data_ptr<int32_t>() = device_ordinal; }
''')
device = jax.jit(jax.ffi.ffi_call("ext.device", jax.ShapeDtypeStruct((1,), np.int32)))
for each in jax.devices("cpu"):
    with jax.default_device(each):
        print(each.id, device()[0])
"""


def test_device_ordinal(place):
    assert call("device", out((1,), np.int32)).tolist() == [0]
    environment = place.environment | {"XLA_FLAGS": "--xla_force_host_platform_device_count=3", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", ON_EACH_DEVICE], env=environment, capture_output=True, text=True)
    assert done.stdout.split("\n")[:-1] == ["0 0", "1 1", "2 2"], done.stderr


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_scratch(size):
    x = np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(call("reversed", out((size,)), x), x[::-1])


def test_error_in_a_scratch_expression_points_at_its_line(fresh_name):
    source = '#include "brainevent/common.h"\n\n// @BE f ret scratch:nonsense(ret0)\nvoid f(BE::Tensor, BE::Scratch) {}'
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cpp_inline(fresh_name, source)
    assert f"{fresh_name}:3:" in caught.value.compiler_output
    assert "nonsense" in caught.value.compiler_output
    with pytest.raises(kernix.KernelRequestError, match=rf"{fresh_name}:3.*'f'.*scratch:arg0.*names 'arg0'"):
        kernix.load_cpp_inline(fresh_name, source.replace("nonsense(ret0)", "arg0.numel()"))


def test_a_parameter_of_scratch_that_has_the_name_of_a_tensor(fresh_name):
    """Refused (see test_bad_input.py), with this way out: another name in the token."""
    source = """
    #include "brainevent/common.h"
    void f(const BE::Tensor x, BE::Tensor y, int arg0, BE::Scratch s) {
        *y.data_ptr<int64_t>() = s.size() + 1000 * arg0;
    }
    """
    module = kernix.load_cpp_inline(
        fresh_name, source, {"f": ["arg", "ret", "attr.count:int32", "scratch:count+arg0.nbytes()"]}
    )
    result = np.zeros(1, np.int64)
    module.f(np.zeros(3, np.int8), count=4, out=result)
    assert result == 4007


def test_scratch_has_to_be_written(fresh_name):
    source = '#include "brainevent/common.h"\n// @BE f\nvoid f(BE::Tensor o, BE::Scratch s) {}'
    with pytest.raises(
        kernix.KernelRequestError, match=rf"{fresh_name}:3: parameter 2 's' of function 'f'.*scratch:<bytes>"
    ):
        kernix.load_cpp_inline(fresh_name, source)


def test_tokens_put_calls_in_order():
    """Through JAX, whose `abstract_token` is what a result that is a token has for a shape."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        token_type = getattr(jax.ffi, "abstract_token", None) or jax.core.abstract_token  # the latter before 0.11
    step = jax.ffi.ffi_call("ext.step", (token_type, out((1,), np.int32)), has_side_effect=True)

    @jax.jit
    def three(start):
        token = jax.lax.create_token()
        token, first = step(token, add=1)
        token, second = step(token, add=10)
        token, third = step(token, add=100)
        return first + start, second + start, third + start

    first, second, third = (int(value[0]) for value in three(np.int32(0)))
    assert (second - first, third - second) == (10, 100)
    with pytest.raises(jax.errors.JaxRuntimeError, match="step: argument 0 must be a token, not an array"):
        step(np.zeros(1, np.float32), add=1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="step: expected 1 argument, got 0"):
        step(add=1)


def test_sizes_of_scratch_do_not_wrap_around(fresh_name):
    source = r"""
    #include "brainevent/common.h"
    // @BE f attr.n:int32 ret scratch:4*n
    void f(int n, BE::Tensor out, BE::Scratch scratch) { *out.data_ptr<int64_t>() = scratch.size(); }
    // @BE g attr.n:uint32 ret scratch:n-1
    void g(unsigned n, BE::Tensor out, BE::Scratch scratch) { *out.data_ptr<int64_t>() = scratch.size(); }
    """
    module = kernix.load_cpp_inline(fresh_name, source)
    result = np.zeros(1, np.int64)
    module.f(n=1 << 29, out=result)
    assert result == 1 << 31
    with pytest.raises(kernix.KernelError, match="-1 bytes"):
        module.g(n=0, out=result)


def test_attributes_with_default_arguments_may_be_left_out():
    module = kernix.load_cpp_inline(
        "default_arguments",
        """
#include "brainevent/common.h"
// @BE f
void f(const BE::Tensor x, BE::Tensor y, float a = 2.5f, size_t n = sizeof(double), const void* p = nullptr) {
    y.data_ptr<float>()[0] = a;
    y.data_ptr<float>()[1] = p == nullptr ? n : 0;
}
""",
    )
    assert module.arg_spec("f") == ["arg", "ret", "attr.a:float32?", "attr.n:uint64?"]
    parameters = inspect.signature(module.f).parameters
    assert parameters["a"].default is ...
    assert parameters["n"].default is ...
    x = np.zeros(2, np.float32)
    for arguments, expected in [({}, [2.5, 8]), ({"a": 1.5}, [1.5, 8]), ({"a": 1.5, "n": 3}, [1.5, 3])]:
        call = jax.ffi.ffi_call("default_arguments.f", jax.ShapeDtypeStruct((2,), np.float32))
        exact = {name: np.float32(value) if name == "a" else value for name, value in arguments.items()}
        assert call(x, **exact).tolist() == expected
        assert module.f(x, **arguments).tolist() == expected  # without JAX
        assert module.f(jax.numpy.asarray(x), **arguments).tolist() == expected
    with pytest.raises(TypeError, match="'n' is given, so give 'a' before it, too"):
        module.f(x, n=3)
    with pytest.raises(jax.errors.JaxRuntimeError, match="'n' is given, so give 'a' before it, too"):
        call(x, n=3)


def test_attributes_must_fit_the_parameter_too():
    module = kernix.load_cpp_inline(
        "narrow",
        """
#include "brainevent/common.h"
// @BE f ret attr.k:int64
void f(BE::Tensor y, int k) { *y.data_ptr<int64_t>() = k; }
// @BE g ret attr.k:float32
void g(BE::Tensor y, int k) { *y.data_ptr<int64_t>() = k; }
// @BE room ret attr.n:int64 scratch:n*n
void room(BE::Tensor y, int64_t, BE::Scratch s) { *y.data_ptr<int64_t>() = s.size(); }
""",
    )
    y = np.zeros((), np.int64)
    assert module.f(k=-5, out=y) == -5
    assert module.g(k=3.0, out=y) == 3
    assert module.room(n=300, out=y) == 90000
    with pytest.raises(kernix.KernelCallError, match=r"'k' \(int64\) is 4294967301, .* C\+\+ parameter \(int32\)"):
        module.f(k=2**32 + 5, out=y)
    with pytest.raises(kernix.KernelCallError, match=r"'k' \(float32\) is 2.75, .* C\+\+ parameter \(int32\)"):
        module.g(k=2.75, out=y)
    with pytest.raises(kernix.KernelCallError, match=r"scratch:n\*n' has no value"):
        module.room(n=2**32, out=y)


def test_a_bool_takes_any_integer_as_in_cpp():
    module = kernix.load_cpp_inline(
        "truth",
        """
#include "brainevent/common.h"
// @BE f ret attr.flag:int32 attr.seed:int64
void f(BE::Tensor y, bool flag, uint32_t seed) { *y.data_ptr<int64_t>() = flag ? int64_t{seed} : -1; }
""",
    )
    y = np.zeros((), np.int64)
    assert [module.f(flag=flag, seed=7, out=y).item() for flag in (0, 1, 2, -(2**31))] == [-1, 7, 7, 7]
    call = jax.ffi.ffi_call("truth.f", jax.ShapeDtypeStruct((1,), np.int32))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"'seed' \(int64\) is -1, .* C\+\+ parameter \(uint32\)"):
        call(flag=np.int32(2), seed=-1)


def test_expressions_of_scratch_mean_what_cpp_says(fresh_name):
    expressions = {
        "root": ("4*std::sqrt(arg0.numel())", 12),
        "overloaded": ("need(arg0.numel())", 90),
        "generic": ("bytes_of(arg0.numel())", 72),
        "pad": ("4*PAD", 40),
        "twice": ("TWICE(2+n)", 14),  # 2+n+2+n of 5
        "wrapped": ("BYTES_OF(n)", 40),
    }
    functions = [
        f"// @BE {name} arg ret attr.n:int32 scratch:{expression}\n"
        f"void {name}(const BE::Tensor, BE::Tensor y, int, BE::Scratch s) {{ *y.data_ptr<int64_t>() = s.size(); }}\n"
        for name, (expression, _) in expressions.items()
    ]
    source = r"""
#include "brainevent/common.h"
#include <cmath>
inline size_t need(int) { return 1; }
inline size_t need(int64_t n) { return 10 * n; }
template <typename T> size_t bytes_of(T n) { return n * sizeof(T); }
#define PAD 8+8
#define TWICE(n) n+n
#define BYTES_OF(n) bytes_of(n)
"""
    module = kernix.load_cpp_inline(fresh_name, source + "".join(functions))
    y = np.zeros((), np.int64)
    for name, (_, size) in expressions.items():
        assert getattr(module, name)(np.ones(9, np.float32), n=5, out=y) == size, name
