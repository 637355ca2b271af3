# SPDX-License-Identifier: Apache-2.0
"""Macros and warnings that users set for their own code do not break kernix's headers and handlers."""

import pathlib
import re
import subprocess

import pytest

import kernix

KERNEL = pathlib.Path(__file__).parents[2] / "kernel" / "brainevent"
HEADERS = sorted(KERNEL.glob("*.h"))
INCLUDES = "".join(f'#include "brainevent/{path.name}"\n' for path in HEADERS if path.name != "ffi_compat.h")

# One function for each kind of handler. They are static, as -Wmissing-declarations demands.
KINDS = """
// @BE plain_one
static void plain_one(const BE::Tensor, BE::Tensor, int64_t stream) { static_cast<void>(stream); }
// @BE typed_one
static void typed_one(BE::In<float> from, BE::Out<float, 2> into, float times, int32_t last = 3) {
  if (from.ndim() > last) into.data()[0] = times;
}
// @BE words_one
static void words_one(std::string_view word, BE::Span<const int64_t> list, BE::Tensor) {
  static_cast<void>(word);
  static_cast<void>(list);
}
// @BE wide_one attr.times:float64 attr.count:int64 ret
static void wide_one(float, int32_t, BE::Tensor) {}
// @BE rest_one
static void rest_one(BE::Span<const BE::Tensor>, BE::Span<BE::Tensor>, int32_t device_ordinal) {
  static_cast<void>(device_ordinal);
}
// @BE maybe_one
static void maybe_one(const BE::Tensor*, BE::Tensor) {}
// @BE memory_one arg scratch:4*arg0.numel() ret arg.token ret.token
static void memory_one(const BE::Tensor, BE::Scratch, BE::Tensor) {}
"""
BARE = """
// @BE bare_one
__global__ void bare_one(const float* from, BE::Out<float> into, float* other, int32_t last) {
  if (last > 0) other[0] = into[0] = from[0];
}
"""


KEYWORDS = set(
    re.findall(
        r"\w+",
        """
    alignas auto bool break case catch char class const constexpr continue default delete do double else enum explicit
    extern false float for friend if inline int long namespace new noexcept nullptr operator private protected public
    return short signed sizeof static struct switch template this throw true try typename union unsigned using virtual
    void volatile while decltype defined define
    """,
    )
)


def names_in_headers():
    """Return the short names that our headers have, but for keywords, reserved names and those of the text above."""
    found = set()
    for path in KERNEL.rglob("*.h"):
        text = re.sub(r'//[^\n]*|"(?:\\.|[^"\\])*"|^ *#(?! *define)[^\n]*', " ", path.read_text(), flags=re.MULTILINE)
        found |= set(re.findall(r"\b[A-Za-z][A-Za-z0-9_]*\b", text))
    own = set(re.findall(r"\w+", KINDS + BARE + INCLUDES))
    return sorted(name for name in found - own - KEYWORDS if len(name) <= 12)


NAMES = names_in_headers()
POPULAR = ["T", "real", "rank", "size", "dtype", "shape", "N", "M", "K", "D", "index", "value", "type", "text", "check"]


def cpp(source, **options):
    return kernix.load_cpp_inline("foreign", source, auto_register=False, **options)


def cuda(source, **options):
    return kernix.load_cuda_inline("foreign", source, compute_capability="sm_90", auto_register=False, **options)


def test_our_headers_have_names_that_macros_hit():
    assert {"T", "real", "rank", "size", "dtype", "shape", "value", "block"} <= set(NAMES)
    assert len(NAMES) > 150


@pytest.mark.parametrize("value", ["8", "double"])
def test_macros_of_flags(value):
    """All of our names are macros at once, before our headers, and for the handlers."""
    module = cpp(INCLUDES + KINDS, defines=dict.fromkeys([*NAMES, *POPULAR], value))
    assert set(module) == set(re.findall(r"@BE (\w+)", KINDS))


@pytest.mark.parametrize("name", POPULAR)
def test_one_macro_of_a_flag(name):
    for options in ({"defines": {name: "float"}}, {"extra_cflags": [f"-D{name}=8"]}):
        assert "plain_one" in cpp(INCLUDES + KINDS, **options)


def test_the_users_own_code_has_its_macros():
    """Hidden from our headers, they are there for the source."""
    source = '#include "brainevent/common.h"\n#if size != 8\n#error size\n#endif\nstatic_assert(sizeof(T) == 8);\n'
    function = "// @BE f\nvoid f(BE::Out<T> y) { y[0] = size; }\n"
    assert cpp(source + function, defines={"size": 8, "T": "double"}, functions={"f": ["ret:float64"]}).f


@pytest.mark.parametrize("load", [cpp, cuda])
def test_macros_of_the_text_before_our_headers(load):
    macros = "".join(f"#define {name} 8\n" for name in NAMES)
    kinds = KINDS if load is cpp else KINDS.replace("int64_t stream", "cudaStream_t stream") + BARE
    assert "plain_one" in load(macros + INCLUDES + kinds)


def test_macros_of_a_header_of_the_users(tmp_path):
    (tmp_path / "mine.h").write_text("".join(f"#define {name} 8\n" for name in NAMES) + INCLUDES)
    assert "plain_one" in cpp('#include "mine.h"\n' + KINDS, extra_include_paths=[str(tmp_path)])


def warning_flags():
    """Return the flags of all warnings that g++ has for C++, but for those that need a value."""

    def run(*words):
        return subprocess.run(["g++", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)

    listed = re.findall(r"^  (-W[\w+-]+)\s+\[", run("-Q", "--help=warnings").stdout, re.MULTILINE)
    told = run(*listed, "-fsyntax-only", "-x", "c++", "-").stderr
    return sorted(set(listed) - set(re.findall(r"(-W[\w+-]+)", told)))


# No warnings of their own.
ABOUT_ALL = {"-Wsystem-headers", "-Wfatal-errors", "-Werror"}
WARNINGS = [flag for flag in warning_flags() if flag not in ABOUT_ALL]


def test_there_are_warnings():
    assert {"-Weffc++", "-Wuseless-cast", "-Wmissing-declarations"} <= set(WARNINGS)
    assert len(WARNINGS) > 100


def test_all_warnings_as_errors_are_not_about_us():
    flags = ["-Werror", "-Wall", "-Wextra", "-Wpedantic", *WARNINGS]
    quiet = "#pragma GCC diagnostic push\n"
    text = INCLUDES + quiet + "".join(f'#pragma GCC diagnostic ignored "{flag}"\n' for flag in WARNINGS) + KINDS
    assert "plain_one" in cpp(text, extra_cflags=flags)


@pytest.mark.parametrize("name", ["MINE", "size", "T"], ids=["own name", "name of ours", "short name"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_macro_of_a_flag_that_nothing_uses_is_no_warning(compiler, name, monkeypatch):
    """As compilers have it of a -D: -Wunused-macros is about the macros of the text."""
    monkeypatch.setenv("CXX", compiler)
    flags = ["-Werror", "-Wunused-macros"]
    assert "plain_one" in cpp(INCLUDES + KINDS, extra_cflags=[*flags, f"-D{name}=8", "-DGONE", "-UGONE"])
    assert "plain_one" in cpp(INCLUDES + KINDS, defines={name: 8}, extra_cflags=flags)


def test_a_macro_of_a_flag_that_nothing_uses_is_no_warning_under_nvcc():
    kinds = KINDS.replace("int64_t stream", "cudaStream_t stream") + BARE
    flags = ["-Xcompiler=-Werror,-Wunused-macros", "-DMINE=8", "-DGONE", "-UGONE"]
    assert "bare_one" in cuda(INCLUDES + kinds, extra_cuda_cflags=flags, defines={"OTHER": 8})


def test_an_unused_macro_of_the_text_is_still_a_warning():
    text = INCLUDES + "#define MINE 1\n" + KINDS
    with pytest.raises(kernix.KernelCompilationError, match='macro "MINE" is not used'):
        cpp(text, extra_cflags=["-Werror", "-Wunused-macros"])


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_switches_of_ours_are_not_about_the_user(compiler, monkeypatch):
    monkeypatch.setenv("CXX", compiler)
    text = (
        '#include "brainevent/common.h"\n// @BE f\nvoid f(const BE::Tensor x, BE::Tensor y) {\n'
        "  BE_DISPATCH_ALL(x.dtype(), real, { y.data_ptr<real>()[0] = x.data_ptr<const real>()[0]; });\n}\n"
    )
    assert "f" in cpp(text, extra_cflags=["-Werror", "-Wswitch-enum"])


def test_a_blank_behind_a_flag_is_none_of_it():
    text = '#include "brainevent/common.h"\n// @BE f\nvoid f(BE::Out<float> y) { y[0] = 1; }\n'
    assert "f" in cpp(text, extra_cflags=["-O3 "], extra_ldflags=["-lm "])


def test_warnings_about_the_users_code_still_come():
    text = '#include "brainevent/common.h"\n// @BE f\nvoid f(BE::Out<float> y) { double d = 1; y[0] = (float)d; }\n'
    for flag in ("-Wold-style-cast", "-Wmissing-declarations"):
        with pytest.raises(kernix.KernelCompilationError, match=rf"foreign:3.*{flag[2:].partition('-')[0]}"):
            cpp(text, extra_cflags=["-Werror", flag])


def test_warnings_of_the_host_compiler_under_nvcc():
    """What nvcc's front end makes of a text is nobody's: -Wpedantic and the like are about that."""
    flags = [
        f"-Xcompiler={flag}" for flag in ("-Werror", "-Wall", "-Wextra", "-Wmissing-declarations", "-Wuseless-cast")
    ]
    kinds = KINDS.replace("int64_t stream", "cudaStream_t stream") + BARE
    assert "bare_one" in cuda(INCLUDES + kinds, extra_cuda_cflags=flags)
