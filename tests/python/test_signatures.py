# SPDX-License-Identifier: Apache-2.0
"""Functions as people write them: found, read, compiled and called."""

import jax
import numpy as np
import pytest

import kernix

pytestmark = pytest.mark.usefixtures("on_cpu")

HELPERS = """
#include "brainevent/common.h"
template <int a, int b> struct Pair { static constexpr int kFirst = a; };
constexpr int n = 4;
template <typename T>
void Fill(BE::Tensor& y, T value) {
    for (int64_t i = 0; i < y.numel(); ++i) y.data_ptr<float>()[i] = static_cast<float>(value);
}
"""

# Name: source (all of them are one translation unit), tokens, attributes, and what the result is filled with.
FUNCTIONS = {
    "comments": (
        """
        // @BE comments
        void /* comments(int* p) */ comments /* ) */ ( // a, b)
            BE /*::*/ :: Tensor /*&*/ & y, // )
            float /* = 1, */ x)
        { Fill(y, x); }
        """,
        ["ret", "attr.x:float32"],
        {"x": 2.5},
        2.5,
    ),
    "after_strings": (
        r"""
        static const char* text = "// @BE no_such\n void after_strings(int* p)" R"x(
        // @BE no_such_either
        void after_strings(int* p); )" )x";
        // @BE after_strings
        void after_strings(BE::Tensor y, int x) { Fill(y, x + (text[0] == '/')); }
        """,
        ["ret", "attr.x:int32"],
        {"x": 2},
        3,
    ),
    "attributes": (
        """
        // @BE attributes
        [[gnu::noinline]] static void attributes [[gnu::cold]] (
            [[maybe_unused]] const BE::Tensor& a [[maybe_unused]],
            BE::Tensor& __restrict__ y __attribute__((unused))) noexcept(true) { Fill(y, 7); }
        """,
        ["arg", "ret"],
        {},
        7,
    ),
    "defaults": (
        """
        // @BE defaults
        void defaults(BE::Tensor y, bool a = 1 < 2, int b = Pair<1, 2>::kFirst, int c = n << 2,
                      int d = [](int p, int q) { return p < q; }(1, 2), int e = sizeof("),("), int f = ',') {
            Fill(y, a + b + c + d + e + f);
        }
        """,
        ["ret", "attr.a:bool?", *(f"attr.{name}:int32?" for name in "bcdef")],
        {"a": True, "b": 10, "c": 100, "d": 1000, "e": 10000, "f": 100000},
        111111,
    ),
    "inside": (
        """
        namespace outer { inline namespace version { namespace { namespace inner {
        // @BE inside
        void inside(BE::Tensor y) { Fill(y, 11); }
        }}}}
        """,
        ["ret"],
        {},
        11,
    ),
    "outer_deep_inside_too": (
        """
        // @BE outer::deep::inside_too ret
        namespace outer::deep { void inside_too(BE::Tensor y) { Fill(y, 12); } }
        """,
        ["ret"],
        {},
        12,
    ),
    "shift_float_3": (
        """
        template <typename T, int kBy, typename = void>
        void shift(const BE::Tensor& x, BE::Tensor& y, T factor, int64_t stream) {
            Fill(y, x.data_ptr<const T>()[0] * factor + kBy);
        }
        // @BE shift<float, 3>
        // @BE shift<int, 4> arg ret attr.factor stream
        """,
        ["arg", "ret", "attr.factor:float32", "stream"],
        {"factor": 0.5},
        3.5,
    ),
    "shift_int_4": ("", ["arg", "ret", "attr.factor:int32", "stream"], {"factor": 2}, 6),
    "pre": (
        """
        void pre_2(int* p) {}
        void a_pre(int* p) {}
        // @BE pre
        void pre(BE::Tensor y) { pre_2(nullptr), a_pre(nullptr), Fill(y, 13); }
        // @BE pre_fix
        void pre_fix(const BE::Tensor a, BE::Tensor y) { Fill(y, 14); }
        """,
        ["ret"],
        {},
        13,
    ),
    "pre_fix": ("", ["arg", "ret"], {}, 14),
    "made_f32": (
        """
        #define MAKE(SUFFIX, TYPE, ...)                                  \\
            void made##SUFFIX(const BE::Tensor a, BE::Tensor y,          \\
                              TYPE x, ##__VA_ARGS__) { Fill(y, x + 1); }
        // @BE made_f32
        MAKE(_f32, float)
        // @BE made_i32 arg ret attr.x attr.unused
        MAKE(_i32, int, [[maybe_unused]] int unused)
        """,
        ["arg", "ret", "attr.x:float32"],
        {"x": 0.5},
        1.5,
    ),
    "made_i32": ("", ["arg", "ret", "attr.x:int32", "attr.unused:int32"], {"x": 5, "unused": 0}, 6),
    "conditional": (
        """
        #if 0
        // @BE conditional
        void conditional(int* nothing) {}
        #else
        // @BE conditional
        void conditional(BE::Tensor y
        #define END ) { Fill(y, 15); }
        END
        #endif
        #if 1
        // @BE decided
        void decided(BE::Tensor y) { Fill(y, 16); }
        #else
        void decided(const BE::Tensor a, BE::Tensor y) { Fill(y, 17); }
        #endif
        """,
        ["ret"],
        {},
        15,
    ),
    "decided": ("", ["ret"], {}, 16),
    "declared_first": (
        """
        void declared_first(const BE::Tensor, BE::Tensor, float, int64_t);
        // @BE declared_first
        auto declared_first(const BE::Tensor a, BE::Tensor y, float x, int64_t stream) -> void { Fill(y, x + stream); }
        """,
        ["arg", "ret", "attr.x:float32", "stream"],
        {"x": 18.0},
        18,
    ),
    "digraphs": (
        """
        static int no_function(int a) <% int digraphs(int); return a; %>
        // @BE digraphs
        void digraphs(const BE::Tensor a <:<:maybe_unused:>:>, BE::Tensor y) <% Fill(y, no_function(20)); %>
        """,
        ["arg", "ret"],
        {},
        20,
    ),
    "type_names": (
        """
        namespace types {
        using Tensor = const BE::Tensor;
        typedef double Real;
        using Number = Real;
        struct Other { using Real = int; };
        // @BE type_names
        void type_names(Tensor a, BE::Tensor& y, const Number x) { Fill(y, x); }
        }  // namespace types
        """,
        ["arg", "ret", "attr.x:float64"],
        {"x": 21.5},
        21.5,
    ),
    "chosen": (
        """
        #ifdef NOT_DEFINED
        #define CHOICE(NAME) void NAME(const BE::Tensor a, BE::Tensor y) { Fill(y, 1); }
        #else
        #define CHOICE(NAME) void NAME(const BE::Tensor a, BE::Tensor y) { Fill(y, 22); }
        #endif
        #ifndef INPUT
        #define INPUT const BE::Tensor
        #endif
        #define PASTE(a, b) a##b
        #define ICE_(...) __VA_ARGS__
        // @BE chosen
        PASTE(CHO, ICE)(chosen)
        // @BE by_default
        PASTE(ICE, _)(void by_default)(INPUT a, BE::Tensor y) { Fill(y, 23); }
        """,
        ["arg", "ret"],
        {},
        22,
    ),
    "by_default": ("", ["arg", "ret"], {}, 23),
    "beside_others": (
        """
        namespace place __attribute__((visibility("default"))) {
        void \u00e9beside_others(int*) {}
        // @BE beside_others
        void beside_others(BE::Tensor \u03bb) { Fill(\u03bb, 24); }
        }  // namespace place
        """,
        ["ret"],
        {},
        24,
    ),
    "continued": (
        """
        // @BE continued rets \\
        //    attrs.x
        void continued(BE::Tensor y, float x) try { Fill(y, x); } catch (...) { }
        """.replace("//    attrs", "      attrs"),
        ["ret", "attr.x:float32"],
        {"x": 19.0},
        19,
    ),
}


@pytest.fixture(scope="module", name="module")
def module_fixture(place):
    """All of them, compiled as one."""
    return kernix.load_cpp_inline("signatures", HELPERS + "".join(source for source, *_ in FUNCTIONS.values()))


def call(target, tokens, attributes):
    """Call a function with ones; return what it filled its result with."""
    arguments = [np.ones(3, np.int32 if "int32" in str(tokens) else np.float32)] * tokens.count("arg")
    attributes = {
        name: np.dtype(next(t.split(":")[1].rstrip("?") for t in tokens if t.startswith(f"attr.{name}:"))).type(value)
        for name, value in attributes.items()
    }
    result = np.asarray(jax.ffi.ffi_call(target, jax.ShapeDtypeStruct((3,), np.float32))(*arguments, **attributes))
    assert (result == result[0]).all()
    return result[0]


def test_all_are_found(module):
    assert sorted(module.function_names) == sorted(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(module, name):
    _, tokens, attributes, result = FUNCTIONS[name]
    assert module.arg_spec(name) == tokens
    assert call(f"signatures.{name}", tokens, attributes) == result


@pytest.mark.parametrize(
    "functions",
    [
        ["shift<float, 3>", "outer::deep::inside_too"],
        {"shift<float, 3>": ["arg", "ret", "attr.factor", "stream"], "outer::deep::inside_too": []},
    ],
    ids=["list", "dict"],
)
def test_listed_by_name(functions, fresh_name):
    source = HELPERS + FUNCTIONS["shift_float_3"][0] + FUNCTIONS["outer_deep_inside_too"][0]
    module = kernix.load_cpp_inline(fresh_name, source, functions)
    assert module.function_names == ["shift_float_3", "outer_deep_inside_too"]
    assert call(f"{fresh_name}.shift_float_3", module.arg_spec("shift_float_3"), {"factor": 0.5}) == 3.5
    assert call(f"{fresh_name}.outer_deep_inside_too", ["ret"], {}) == 12


def test_macros_of_flags(fresh_name):
    """Once with the default of the source, once with what the compiler is told."""
    source = (
        HELPERS
        + """
    #ifndef REAL
    #define REAL float
    #endif
    // @BE f
    void f(BE::Tensor y, REAL x) { Fill(y, sizeof(x)); }
    """
    )
    for number, (flags, name) in enumerate(
        [([], "float32"), (["-DREAL=double"], "float64"), (["-D", "REAL=int"], "int32")]
    ):
        module = kernix.load_cpp_inline(f"{fresh_name}_{number}", source, extra_cflags=flags)
        assert module.arg_spec("f") == ["ret", f"attr.x:{name}"]
        assert call(f"{fresh_name}_{number}.f", module.arg_spec("f"), {"x": 1}) == np.dtype(name).itemsize


def test_constraints(fresh_name):
    source = (
        HELPERS
        + """
    template <typename T> concept Small = sizeof(T) <= 4;
    template <typename T> requires (sizeof(T) == 4) && Small<T>
    void f(const BE::Tensor x, BE::Tensor y, T a) requires (sizeof(T) >= 2) { Fill(y, a); }
    template <Small T, bool kBig = (4 > 2), typename U = T> void g(BE::Tensor y, U a) { Fill(y, a + kBig); }
    """
    )
    module = kernix.load_cpp_inline(fresh_name, source, ["f<float>", "g<int>"], extra_cflags=["-std=c++20"])
    assert call(f"{fresh_name}.f_float", ["arg", "ret", "attr.a:float32"], {"a": 2.5}) == 2.5
    assert call(f"{fresh_name}.g_int", module.arg_spec("g_int"), {"a": 3}) == 4


def test_five_hundred_instances_are_read(fresh_name):
    """Their signatures; one is compiled."""
    source = HELPERS + "template <typename T, int k> void f(BE::Tensor y, T a) { Fill(y, a + k); }\n"
    names = {f"f<float, {k}>": ["ret", "attr.a"] for k in range(500)}
    with pytest.raises(kernix.KernelRequestError, match="'g': no signature"):
        kernix.load_cpp_inline(fresh_name, source, names | {"g": []})
    kernix.load_cpp_inline(fresh_name, source, ["f<float, 499>"])
    assert call(f"{fresh_name}.f_float_499", ["ret", "attr.a:float32"], {"a": 1.0}) == 500


def test_an_instance_is_another_artifact_than_a_function_of_its_exported_name(fresh_name):
    source = HELPERS + (
        "template <int k> void f(BE::Tensor y) { Fill(y, k); }\nvoid f_3(BE::Tensor y) { Fill(y, 30); }\n"
    )
    one = kernix.load_cpp_inline(f"{fresh_name}_a", source, ["f<3>"])
    two = kernix.load_cpp_inline(f"{fresh_name}_b", source, ["f_3"])
    assert one.function_names == two.function_names == ["f_3"]
    assert call(f"{fresh_name}_a.f_3", ["ret"], {}) == 3
    assert call(f"{fresh_name}_b.f_3", ["ret"], {}) == 30


def test_cuda(fresh_name):
    source = """
    #include "brainevent/common.h"
    #include "brainevent/float8.h"
    namespace mine {
    template <typename T>
    __global__ void scale(const T* x, T* y, T factor) { y[threadIdx.x] = x[threadIdx.x] * factor; }
    template <typename T>
    __device__ void launch(T*) {}
    // @BE launch<double>
    // @BE mine::launch<BE::float8_e4m3fn_t> arg ret attr.bits:uint8 stream
    template <typename T, typename Attribute = T>
    void launch(const BE::Tensor& x, BE::Tensor& y, Attribute factor, cudaStream_t stream = nullptr) {
        scale<T><<<1, 32, 0, stream>>>(x.data_ptr<const T>(), y.data_ptr<T>(), T(factor));
        BE_CHECK_KERNEL_LAUNCH();
    }
    }  // namespace mine
    """
    module = kernix.load_cuda_inline(fresh_name, source, compute_capability="sm_90", auto_register=False)
    assert module.function_names == ["launch_double", "mine_launch_BE_float8_e4m3fn_t"]
    assert module.arg_spec("launch_double") == ["arg", "ret", "attr.factor:float64", "stream"]
