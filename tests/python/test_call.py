# SPDX-License-Identifier: Apache-2.0
"""C++ kernels, compiled through a real daemon and called by JAX on the CPU."""

import jax
import jax.numpy as jnp
import kernels
import ml_dtypes
import numpy as np
import pytest

import kernix

pytestmark = pytest.mark.usefixtures("on_cpu")

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ENABLE_X64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64  # before JAX 0.8


def like(x):
    """Return the shape and dtype of an array, as ``ffi_call`` takes them."""
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def call(target, *arguments, result=None, **attributes):
    """Call a target with a result like its first argument."""
    return np.asarray(jax.ffi.ffi_call(target, result or like(arguments[0]))(*arguments, **attributes))


@pytest.fixture(scope="module", name="add_one")
def add_one_fixture(place):
    """The module of the smallest kernel."""
    return kernix.load_cpp_inline("call_add", kernels.ADD_ONE)


def test_eager_call(add_one):
    assert add_one.function_names == ["add_one"]
    np.testing.assert_array_equal(call("call_add.add_one", X), X + 1)


def test_call_inside_jit(add_one):
    twice = jax.jit(lambda x: 2 * jax.ffi.ffi_call("call_add.add_one", like(x))(x))
    np.testing.assert_array_equal(twice(X), 2 * (X + 1))


@pytest.mark.parametrize("shape", [(0,), (), (1, 1, 1, 1, 1, 1, 1, 1)], ids=str)
def test_shapes_at_the_edges(add_one, shape):
    x = np.ones(shape, np.float32)
    np.testing.assert_array_equal(call("call_add.add_one", x), x + 1)


@pytest.mark.parametrize(
    "functions",
    [
        pytest.param({"add_one": ["arg", "ret"]}, id="dict"),
        pytest.param(["add_one"], id="list"),
        pytest.param({"add_one": []}, id="dict without tokens"),
        pytest.param(("add_one",), id="tuple"),
        pytest.param(None, id="annotations"),
    ],
)
def test_every_way_to_name_functions(functions):
    module = kernix.load_cpp_inline("named", kernels.ADD_ONE, functions)
    assert module.function_names == ["add_one"]
    assert module.arg_spec("add_one") == ["arg", "ret"]
    np.testing.assert_array_equal(call("named.add_one", X), X + 1)


def test_several_sources_are_one_translation_unit():
    helper = '#include "brainevent/common.h"\nstatic float half(float x) { return x / 2; }'
    kernel = """
    // @BE halve arg ret
    void halve(const BE::Tensor& x, BE::Tensor& y) {
        for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = half(x.data_ptr<float>()[i]);
    }"""
    kernix.load_cpp_inline("parts", [helper, kernel])
    np.testing.assert_array_equal(call("parts.halve", X), X / 2)


def test_several_functions_and_results():
    module = kernix.load_cpp_inline(
        "several",
        """
        #include "brainevent/common.h"
        void swap(const BE::Tensor a, const BE::Tensor b, BE::Tensor first, BE::Tensor second) {
            first.data_ptr<float>()[0] = b.data_ptr<float>()[0];
            second.data_ptr<int32_t>()[0] = a.data_ptr<int32_t>()[0];
        }
        void copy(const BE::Tensor a, BE::Tensor b) { b.data_ptr<float>()[0] = a.data_ptr<float>()[0]; }
        """,
        ["swap", "copy"],
    )
    assert module.function_names == ["swap", "copy"]
    a, b = np.array([7], np.int32), np.array([2.5], np.float32)
    first, second = jax.ffi.ffi_call("several.swap", (like(b), like(a)))(a, b)
    assert (first[0], second[0]) == (2.5, 7)
    assert call("several.copy", b) == [2.5]


# --- Attributes ------------------------------------------------------------------------------------------------------

# token -> (C++ type, dtype of the result, value)
ATTRIBUTES = {
    "bool": ("bool", np.uint8, np.bool_(True)),
    "int8": ("int8_t", np.int8, np.int8(-7)),
    "uint8": ("uint8_t", np.uint8, np.uint8(250)),
    "int16": ("int16_t", np.int16, np.int16(-3000)),
    "uint16": ("uint16_t", np.uint16, np.uint16(60000)),
    "int32": ("int32_t", np.int32, np.int32(-70000)),
    "uint32": ("uint32_t", np.uint32, np.uint32(4000000000)),
    "int64": ("int64_t", np.int64, np.int64(-(2**40))),
    "uint64": ("uint64_t", np.uint64, np.uint64(2**63 - 1)),
    "float32": ("float", np.float32, np.float32(0.1)),
    "float64": ("double", np.float64, np.float64(0.1)),
}


@pytest.fixture(scope="module", name="attributes")
def attributes_fixture(place):
    """One function for each attribute type: writes the attribute to its result."""
    parts = ['#include "brainevent/common.h"']
    for token, (cpp_type, _, _) in ATTRIBUTES.items():
        parts.append(f"// @BE get_{token} ret attr.value:{token}")
        parts.append(f"void get_{token}(BE::Tensor y, {cpp_type} value) {{ *y.data_ptr<{cpp_type}>() = value; }}")
    return kernix.load_cpp_inline("attributes", "\n".join(parts))


@pytest.mark.parametrize("token", ATTRIBUTES)
def test_attribute_of_each_type(attributes, token):
    _, dtype, value = ATTRIBUTES[token]
    with ENABLE_X64(True):
        y = call_without_arguments(f"attributes.get_{token}", dtype, value=value)
    assert y[0] == dtype(value)


def call_without_arguments(target, dtype, **attributes):
    """Call a target that has one result of one element."""
    return np.asarray(jax.ffi.ffi_call(target, jax.ShapeDtypeStruct((1,), dtype))(**attributes))


@pytest.mark.parametrize(("token", "value"), [("int8", -7), ("uint8", 250), ("int32", -70000), ("bool", True)])
def test_python_number_is_converted(attributes, token, value):
    assert call_without_arguments(f"attributes.get_{token}", ATTRIBUTES[token][1], value=value)[0] == value


def test_python_float_becomes_float32(attributes):
    assert call_without_arguments("attributes.get_float32", np.float32, value=0.1)[0] == np.float32(0.1)


@pytest.mark.parametrize(("token", "value"), [("int8", 128), ("uint8", -1), ("int32", 2**31), ("uint32", -5)])
def test_python_int_out_of_range_is_an_exception(attributes, token, value):
    with pytest.raises(jax.errors.JaxRuntimeError, match="value"):
        call_without_arguments(f"attributes.get_{token}", ATTRIBUTES[token][1], value=value)


def test_attribute_type_is_taken_from_the_signature():
    module = kernix.load_cpp_inline(
        "scaled",
        """
        #include "brainevent/common.h"
        void scale(const BE::Tensor x, BE::Tensor y, float factor, int64_t shift) {
            for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = factor * x.data_ptr<float>()[i] + shift;
        }""",
        {"scale": ["arg", "ret", "attr.factor", "attr.shift"]},
    )
    assert module.arg_spec("scale") == ["arg", "ret", "attr.factor:float32", "attr.shift:int64"]
    np.testing.assert_array_equal(call("scaled.scale", X, factor=np.float32(3.0), shift=2), 3 * X + 2)


def test_missing_attribute_is_an_exception(attributes):
    with pytest.raises(jax.errors.JaxRuntimeError, match="value"):
        call_without_arguments("attributes.get_int32", np.int32)


# --- Element types ---------------------------------------------------------------------------------------------------

DTYPES = [
    np.bool_,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.float16,
    ml_dtypes.bfloat16,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]


@pytest.fixture(scope="module", name="copy")
def copy_fixture(place):
    """A function that copies any array and says its element size."""
    return kernix.load_cpp_inline(
        "copy_any",
        """
        #include <cstring>
        #include "brainevent/common.h"
        // @BE copy arg ret ret
        void copy(const BE::Tensor x, BE::Tensor y, BE::Tensor size) {
            std::memcpy(y.data_ptr(), x.data_ptr(), x.nbytes());
            *size.data_ptr<int32_t>() = static_cast<int32_t>(x.element_size());
        }""",
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_element_types(copy, dtype):
    with ENABLE_X64(True):
        x = np.array([0, 1, 1, 0, 1]).astype(dtype)
        size = jax.ShapeDtypeStruct((), np.int32)
        y, element_size = jax.ffi.ffi_call("copy_any.copy", (like(x), size))(x)
    assert element_size == x.itemsize
    np.testing.assert_array_equal(np.asarray(y), x)


# --- Mistakes at call time -------------------------------------------------------------------------------------------


def test_too_few_arguments_is_an_exception(add_one):
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"add_one.*argument"):
        call_without_arguments("call_add.add_one", np.float32)


def test_too_many_results_is_an_exception(add_one):
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"add_one.*result"):
        jax.block_until_ready(jax.ffi.ffi_call("call_add.add_one", (like(X), like(X)))(X))


def test_rank_above_the_limit_is_an_exception(add_one):
    with pytest.raises(jax.errors.JaxRuntimeError, match="9"):
        call("call_add.add_one", np.ones((1,) * 9, np.float32))


@pytest.fixture(scope="module", name="failing")
def failing_fixture(place):
    """A function that fails in the way that its attribute chooses."""
    return kernix.load_cpp_inline(
        "failing",
        """
        #include <stdexcept>
        #include "brainevent/common.h"
        // @BE fail arg ret attr.how:int32
        void fail(const BE::Tensor x, BE::Tensor y, int32_t how) {
            if (how == 1) throw std::runtime_error("the kernel's own words");
            if (how == 2) throw 42;
            BE_CHECK(how != 3) << "how is " << how;
            BE_CHECK(x.dtype() == BE::DType::Float32) << "x must be float32";
            *y.data_ptr<float>() = 1;
        }""",
    )


@pytest.mark.parametrize(("how", "message"), [(1, "the kernel's own words"), (2, "fail"), (3, "how is 3")])
def test_exception_in_the_kernel_is_a_jax_exception(failing, how, message):
    x = np.zeros(1, np.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        call("failing.fail", x, how=np.int32(how))
    assert call("failing.fail", x, how=np.int32(0)) == [1]  # the process is as good as before


@pytest.fixture(scope="module", name="choosy")
def choosy_fixture(place):
    """A function that takes no array whose first element is negative."""
    return kernix.load_cpp_inline(
        "choosy",
        """
        #include "brainevent/common.h"
        // @BE copy
        void copy(BE::In<float> x, BE::Out<float> y) {
            BE_CHECK(x[0] >= 0) << "the first is " << x[0];
            for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i];
        }""",
    )


def copy_by_ffi(x):
    return jax.ffi.ffi_call("choosy.copy", like(x), vmap_method="sequential")(x)


def test_errors_name_each_of_the_modules_that_share_code(fresh_name, tmp_path):
    path = tmp_path / "shared.cpp"
    path.write_text("""
        #include <stdexcept>
        #include "brainevent/common.h"
        // @BE fail
        void fail(const BE::Tensor x, BE::Tensor y) { throw std::runtime_error("oh"); }""")
    x = np.ones(1, np.float32)
    names = [f"{fresh_name}_{which}" for which in ("one", "two")]
    modules = [kernix.load_cpp_file(path, name=name) for name in names]
    unregistered = kernix.load_cpp_file(path, name=f"{fresh_name}_three", auto_register=False)
    assert len({module.content_hash for module in (*modules, unregistered)}) == 1
    for name, module in zip(names, modules, strict=True):
        with pytest.raises(jax.errors.JaxRuntimeError, match=f"INTERNAL: {name}.fail: threw std::runtime_error: oh"):
            call(f"{name}.fail", x)
        with pytest.raises(kernix.KernelCallError, match=f"^{name}.fail: threw std::runtime_error: oh$"):
            module.fail(x)
    with pytest.raises(kernix.KernelCallError, match=f"^{fresh_name}_three.fail: threw std::runtime_error: oh$"):
        unregistered.fail(x)


# How JAX may run a call, and what it raises if such a call fails after a first one that did not (docs/kernels.md). Each
# path has an array size of its own, because JAX remembers what it has compiled for a size.
PATHS = {
    "eager": (lambda _, f: f, (11,), ValueError),
    "module": (lambda module, _: module.copy, (12,), ValueError),
    "jit": (lambda _, f: jax.jit(f), (13,), ValueError),
    "jit of module": (lambda module, _: jax.jit(module.copy), (14,), ValueError),
    "jit of vmap": (lambda _, f: jax.jit(jax.vmap(f)), (2, 15), ValueError),
    "vmap": (lambda _, f: jax.vmap(f), (2, 16), jax.errors.JaxRuntimeError),
    "shown by the result": (lambda _, f: jax.jit(lambda x: f(jnp.sort(x))), (300_000,), jax.errors.JaxRuntimeError),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("first_succeeds", [False, True], ids=["first call fails", "first call succeeds"])
def test_the_first_call_decides_what_calls_that_fail_raise(choosy, path, first_succeeds):
    wrap, shape, after_success = PATHS[path]
    x = jnp.ones((*shape[:-1], shape[-1] + 1000 * first_succeeds), jnp.float32)
    bad = (-x).block_until_ready()
    function = wrap(choosy, copy_by_ffi)
    expected = after_success if first_succeeds else jax.errors.JaxRuntimeError
    for succeeds in (first_succeeds, False, True, True, False):
        if succeeds:
            jax.block_until_ready(function(x))
            continue
        with pytest.raises(expected, match=r"copy: check failed at choosy:5: x\[0\] >= 0: the first is -1"):
            jax.block_until_ready(function(bad))


def test_wrong_dtype_is_an_exception(failing):
    with pytest.raises(jax.errors.JaxRuntimeError, match="x must be float32"):
        call("failing.fail", np.zeros(1, np.int32), how=np.int32(0))


def test_handler_of_a_module_can_be_registered_by_hand(add_one):
    handler = add_one.get_handler("add_one")
    jax.ffi.register_ffi_target("by_hand", jax.ffi.pycapsule(handler), platform="cpu")
    np.testing.assert_array_equal(call("by_hand", jnp.asarray(X)), X + 1)


# --- What a kernel throws --------------------------------------------------------------------------------------------

LATIN_1 = r"caf\xe9.dat"  # for C++
THROWN = {
    'throw std::runtime_error("cannot open $");': "threw std::runtime_error: cannot open caf\ufffd.dat",
    'BE_CHECK(x.size() < 0) << "cannot open $";': "x.size() < 0: cannot open caf\ufffd.dat",
    'throw "cannot open $";': "threw a text: cannot open caf\ufffd.dat",
    'throw std::string_view("cannot open $", 6);': "threw a std::string_view: cannot",
    'throw std::string("cannot open $");': "threw a std::string: cannot open caf\ufffd.dat",
    "throw 42;": "threw the int 42",
    "throw Unlucky{};": "threw Unlucky, which is no std::exception",
    'throw Told("cannot open $");': "threw Told: cannot open caf\ufffd.dat",
    r'throw std::runtime_error("\xc3\xa9\xf0\x9f\x90\x8d \xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80");': "threw "
    "std::runtime_error: \xe9\U0001f40d \ufffd\ufffd\ufffd \ufffd\ufffd \ufffd\ufffd\ufffd\ufffd",
    r"throw std::runtime_error(std::string(1000, 0xc3).c_str());": "threw std::runtime_error: \ufffd\ufffd",
    'nest([] { throw std::invalid_argument("no $"); });': "threw std::runtime_error: outer; "
    "caused by std::invalid_argument: no caf\ufffd.dat",
    'nest([] { nest([] { throw Told("innermost"); }); });': "threw std::runtime_error: outer; "
    "caused by std::runtime_error: outer; caused by Told: innermost",
    "nest([&] { BE_CHECK(x.size() < 0); });": "outer; caused by check failed at thrower:",
    'nest([] { throw std::string("text"); });': "outer; caused by a std::string: text",
    "nest([] { throw 42; });": "outer; caused by the int 42",
    "nest([] { throw Unlucky{}; });": "outer; caused by Unlucky, which is no std::exception",
    'std::throw_with_nested(Told("none"));': "threw Told: none",
    "nest([] { throw std::runtime_error(std::string(1000, 'x')); });": "caused by std::runtime_error: xxx",
}


@pytest.fixture(scope="module", name="thrower")
def thrower_fixture(place):
    cases = "".join(f"if (how == {how}) {{ {code.replace('$', LATIN_1)} }}\n" for how, code in enumerate(THROWN))
    return kernix.load_cpp_inline(
        "thrower",
        f"""
        #include <exception>
        #include <stdexcept>
        #include <string>
        #include "brainevent/common.h"
        struct Unlucky {{ int value; }};
        struct Told : std::exception {{
            explicit Told(const char* text) : text(text) {{}}
            const char* what() const noexcept override {{ return text; }}
            const char* text;
        }};
        template <typename F>
        void nest(F f) {{
            try {{ f(); }} catch (...) {{ std::throw_with_nested(std::runtime_error("outer")); }}
        }}
        // @BE f
        void f(BE::In<float> x, BE::Out<float> y, int how) {{ {cases} }}
        """,
    )


@pytest.mark.parametrize("how", range(len(THROWN)), ids=list(THROWN))
def test_what_is_thrown_is_shown_with_and_without_jax(thrower, how):
    message = list(THROWN.values())[how]
    x = np.zeros(1, np.float32)
    with pytest.raises(kernix.KernelCallError) as direct:
        thrower.f(x, how=how)
    with pytest.raises(jax.errors.JaxRuntimeError) as by_jax:
        jax.block_until_ready(thrower.f(jnp.asarray(x), how=how))
    for caught in (direct, by_jax):
        assert "thrower.f: " in str(caught.value)
        assert message in str(caught.value)


@pytest.mark.parametrize("flags", [["-D_GLIBCXX_USE_CXX11_ABI=0"], ["-O0", "-g"], ["-std=c++20"]], ids=str)
def test_the_causes_of_an_exception_under_other_flags(fresh_name, flags):
    source = """
    #include <exception>
    #include "brainevent/common.h"
    // @BE f
    void f(BE::Out<float> y) {
        try { throw std::out_of_range("inner"); } catch (...) { std::throw_with_nested(std::logic_error("outer")); }
    }
    """
    module = kernix.load_cpp_inline(fresh_name, source, extra_cflags=flags, auto_register=False)
    message = r"f: threw std::logic_error: outer; caused by std::out_of_range: inner$"
    with pytest.raises(kernix.KernelCallError, match=message):
        module.f(out=np.zeros(1, np.float32))


def test_what_is_thrown_without_rtti_is_an_error_all_the_same(fresh_name):
    source = '#include "brainevent/common.h"\n// @BE f\nvoid f(BE::Out<float> y) { throw 4.5; }'
    module = kernix.load_cpp_inline(fresh_name, source, extra_cflags=["-fno-rtti"], auto_register=False)
    with pytest.raises(kernix.KernelCallError, match="threw something, which is no std::exception"):
        module.f(out=np.zeros(1, np.float32))
