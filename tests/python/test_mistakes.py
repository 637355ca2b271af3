# SPDX-License-Identifier: Apache-2.0
"""A hundred mistakes that users make, and what kernix says to each: what is wrong, where, and what to do.

Most fail before anything is compiled. More of them stand in test_bad_input.py (requests), test_parameters.py (calls),
test_troubleshooting.py (the page of that name) and test_notebook.py.
"""

import atexit
import contextlib
import functools
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings

import conftest
import jax
import jax.numpy as jnp
import kernels
import numpy as np
import pytest

import kernix
from kernix import _environment

HEAD = '#include "brainevent/common.h"\n'
PAIR = "const BE::Tensor x, BE::Tensor y"


def function(signature=PAIR, body="", name="f"):
    """Return the source of an annotated function, which stands in line 3."""
    return f"{HEAD}// @BE {name}\nvoid {name}({signature}) {{ {body} }}\n"


def cpp(source=None, functions=None, **options):
    """Load C++ under a name that the mistakes share."""
    return kernix.load_cpp_inline("mistake", source or function(), functions, auto_register=False, **options)


def cuda(source=None, functions=None, **options):
    """Load CUDA under a name that the mistakes share."""
    options = {"compute_capability": "sm_90", "auto_register": False} | options
    return kernix.load_cuda_inline("mistake", source or kernels.VECTOR_ADD, functions, **options)


# --- Loads: name -> (what is done, the error, what its text must have) ------------------------------------------------

R, T, C = kernix.KernelRequestError, kernix.KernelToolchainError, kernix.KernelCompilationError
LOADS = {
    # functions and tokens
    "function that is not there": (
        lambda: cpp(function(name="vector_add"), ["vector_ad"]),
        R,
        "'vector_ad': no signature .*The functions with arrays here: vector_add. Did you mean vector_add",
    ),
    "function that is not there, with tokens": (
        lambda: cpp(function(name="scale"), {"softmax": ["arg", "ret"]}),
        R,
        "'softmax': nothing in mistake defines it. The functions with arrays here: scale.$",
    ),
    "annotation with a typing error": (
        lambda: cpp(f"{HEAD}// @BE vector_ad\nvoid vector_add({PAIR}) {{}}\n"),
        R,
        "^mistake:2: an annotation without a function.*'vector_ad'.*Did you mean vector_add",
    ),
    "handler of XLA's own": (
        lambda: cpp(
            '#include "xla/ffi/api/ffi.h"\n'
            "static xla::ffi::Error Impl() { return xla::ffi::Error::Success(); }\n"
            "XLA_FFI_DEFINE_HANDLER_SYMBOL(H, Impl, xla::ffi::Ffi::Bind());",
            ["H"],
        ),
        R,
        r"kernix writes the handlers itself.*jax.ffi.register_ffi_target",
    ),
    "function of no tensors": (lambda: cpp(function("int n")), R, "mistake:3.*no 'ret'"),
    "double array": (lambda: cpp(function("const double* x, BE::Tensor y")), R, "mistake:3: parameter 1 'x'.*pointer"),
    "array of C": (lambda: cpp(function("float x[4], BE::Tensor y")), R, "mistake:3: parameter 1 'x'"),
    "std::vector": (lambda: cpp(function("std::vector<float> x, BE::Tensor y")), R, "a parameter is a BE::In<T>"),
    "std::string": (lambda: cpp(function(PAIR + ", std::string s")), R, "take a std::string_view"),
    "complex attribute": (lambda: cpp(function(PAIR + ", std::complex<float> z")), R, "two attributes"),
    "half attribute": (lambda: cuda(function(PAIR + ", __half z")), R, "attr.<name>:float16"),
    "long double": (lambda: cpp(function(PAIR + ", long double z")), R, "mistake:3: parameter 3 'z'"),
    "In of an unknown type": (lambda: cpp(function("BE::In<flot> x, BE::Out<float> y")), C, "mistake:3.*flot"),
    "In without a type": (lambda: cpp(function("BE::In<> x, BE::Out<float> y")), C, "mistake:3:.*template argument"),
    "rank that is none": (lambda: cpp(function("BE::In<float, 99> x, BE::Out<float> y")), R, "mistake:3: parameter 1"),
    "instance of a mistyped type": (
        lambda: cpp(f"{HEAD}template <class T> void f(BE::In<T> x, BE::Out<T> y) {{}}\n// @BE f<flaot>\n"),
        R,
        "mistake:2: parameter 1.*'f<flaot>'.*element type. Did you mean float. Write out the tokens",
    ),
    "instance of NumPy's name": (
        lambda: cpp(f"{HEAD}template <class T> void f(BE::In<T> x, BE::Out<T> y) {{}}\n// @BE f<float64>\n"),
        R,
        "Did you mean double",
    ),
    "instance with a mistyped number": (
        lambda: cpp(f"{HEAD}template <class T> void f(BE::Out<float> y, T n) {{}}\n// @BE f<int23_t>\n"),
        R,
        "mistake:2: parameter 2 'n'.*Did you mean int32_t",
    ),
    "instance of a mistyped type in CUDA": (
        lambda: cuda("template <class T> __global__ void f(const T* x, T* y) {}\n// @BE f<hafl>\n"),
        R,
        "mistake:1: parameter 1 'x'.*Did you mean half",
    ),
    "function that returns": (lambda: cpp(function().replace("void", "float")), R, "must return void.*BE::Out"),
    "template": (lambda: cpp(f"template <class T> void f({PAIR}, T t) {{}}\n", ["f"]), R, "such as 'f<float>'"),
    "token in capitals": (lambda: cpp(None, {"f": ["arg", "RET"]}), R, "unknown token 'RET'"),
    "tokens in one string": (lambda: cpp(None, {"f": "arg ret"}), TypeError, r"functions\['f'\] must be a list"),
    "too few tokens": (lambda: cpp(None, {"f": ["ret"]}), R, "mistake:3.*has 2 parameters, but its arg_spec has 1"),
    "tokens in the wrong order": (
        lambda: cpp(function("BE::In<int> x, BE::Out<int> y"), {"f": ["ret", "arg"]}),
        R,
        r"function 'f' \(mistake:3\) takes 'BE::In<int> x' as parameter 1, but its arg_spec says 'ret' there",
    ),
    "functions as a string": (lambda: cpp(None, "f"), TypeError, "functions must be a dict or a list of names"),
    "empty list of functions": (lambda: cpp(None, []), R, "functions is empty"),
    "no annotation": (lambda: cpp(function().replace("// @BE f", "")), R, "Add one above the function"),
    "annotation in a block comment": (lambda: cpp(function().replace("// @BE f", "/* @BE f */")), R, "no '// @BE"),
    "empty source": (lambda: cpp(" "), R, "the source is empty: there is nothing to compile"),
    "path in place of a text": (lambda: cpp("kernels/add.cpp"), R, "path 'kernels/add.cpp': load_cpp_file()"),
    "path of CUDA in place of a text": (lambda: cuda(["~/k-1.cu\n"]), R, "path '~/k-1.cu': .*load_cuda_file()"),
    "path of a file of another name": (lambda: cpp(__file__), R, "the source is the path '.*test_mistakes.py'"),
    "dict of sources": (lambda: cpp({"a": function()}), TypeError, "cpp_sources must be a list of strings, not {'a':"),
    "dict of sources in CUDA": (lambda: cuda({"a": "b" * 500}), TypeError, "cuda_sources must be a .{0,100}$"),
    "dict of flags": (lambda: cpp(extra_cflags={"-O2": True}), TypeError, "extra_cflags must be a list of strings"),
    "dict of folders": (lambda: cpp(extra_include_paths={"/a": 1}), TypeError, "must be a list of folders"),
    "name and source swapped": (
        lambda: kernix.load_cpp_inline(function() * 9, "mistake"),
        R,
        '^"#include "brainevent/common.h"..." cannot name a module: .{0,100} Are the name and the source swapped.$',
    ),
    "name and source swapped in one line": (
        lambda: kernix.load_cuda_inline(f"void f({PAIR}) {{}}" * 9, "mistake"),
        R,
        '^"void f.{50,60}..." cannot name a module',
    ),
    "source as bytes": (lambda: cpp(b"void f();"), TypeError, "cpp_sources must be a list of strings"),
    # options
    "compute_capability as a number": (
        lambda: cuda(compute_capability=90),
        TypeError,
        'compute_capability must be a string such as "sm_90" or "9.0", not 90',
    ),
    "compute_capability of nobody": (lambda: cuda(compute_capability="hopper"), R, "hopper"),
    "compute_capability that is empty": (lambda: cuda(compute_capability=","), R, "names no architecture: pass"),
    "compute_capability too old": (
        lambda: cuda(compute_capability="sm_50"),
        T,
        "cannot compile for sm_50. It supports",
    ),
    "compute_capability of C++": (
        lambda: kernix.load_cpp_inline("mistake", function(), compute_capability="sm_90"),
        TypeError,
        "compute_capability",
    ),
    "optimization_level as a word": (
        lambda: cuda(optimization_level="fast"),
        TypeError,
        "optimization_level must be an integer, not 'fast'",
    ),
    "optimization_level too high": (lambda: cuda(optimization_level=4), R, "optimization_level.*4"),
    "flags in one string": (lambda: cpp(extra_cflags="-O2"), TypeError, "extra_cflags must be a list of strings"),
    "two macros in one string": (
        lambda: cpp(extra_cflags=["-DA=8 -DB=9"]),
        R,
        '"-DA=8 -DB=9" is two flags in one string: write two, "-DA=8" and "-DB=9"',
    ),
    "two macros parted by a tab": (
        lambda: cpp(extra_cflags=["-DA=8\t-DB=9"]),
        R,
        'is two flags in one string: write two, "-DA=8" and "-DB=9"',
    ),
    "two macros in one value": (
        lambda: cpp(defines={"A": "8\t-DB=9"}),
        R,
        'is two flags in one string: write two, "A=8" and "-DB=9"',
    ),
    "flag that changes the layout of structs": (
        lambda: cpp(extra_cflags=["-fpack-struct=4"]),
        R,
        '"-fpack-struct=4" is not allowed: it changes the layout of structs',
    ),
    "device function": (
        lambda: cuda("// @BE k\n__device__ void k(const float* x, float* y) {}\n"),
        R,
        "^mistake:1: function 'k' .mistake:2. is a __device__ function: export a __global__ or a host function",
    ),
    "old C++": (lambda: cpp(extra_cflags=["-std=c++11"]), C, r"kernix needs C\+\+14 or newer"),
    "two folders in one string": (lambda: cpp(extra_cflags=["-I/a -I/b"]), R, 'write two, "-I/a" and "-I/b"'),
    "two flags for nvcc in one string": (
        lambda: cuda(extra_cuda_cflags=["-O3 --use_fast_math"]),
        R,
        'write two, "-O3" and "--use_fast_math"',
    ),
    "flag and value in one string": (
        lambda: cuda(extra_cuda_cflags=["-Xptxas -v"]),
        R,
        'a flag and its value in one string: write two, "-Xptxas" and "-v"',
    ),
    "two libraries in one string": (lambda: cpp(extra_ldflags=["-L/a -lb"]), R, 'write two, "-L/a" and "-lb"'),
    "flag in place of a folder": (lambda: cpp(extra_include_paths=["-I/a"]), R, 'holds a flag: write .* alone, "/a"'),
    "flag of the output": (lambda: cpp(extra_cflags=["-o", "x"]), R, '"-o" is not allowed'),
    "flag without its value": (lambda: cpp(extra_cflags=["-I"]), R, "-I needs a value"),
    "rpath": (lambda: cpp(extra_ldflags=["-Wl,-rpath,/opt"]), R, "rpath"),
    "macro that is no name": (lambda: cpp(defines={"BLOCK SIZE": 1}), R, "'BLOCK SIZE' is not the name of a macro"),
    "macros as a list": (lambda: cpp(defines=["BLOCK=1"]), TypeError, "defines must be a dict"),
    "macro that is no number": (lambda: cpp(defines={"BLOCK": float("inf")}), R, "inf.*pass an expression"),
    "unknown option": (lambda: cpp(include_paths=["x"]), TypeError, "include_paths"),
    "nvcc's options in C++": (lambda: cpp(extra_cuda_cflags=["-O2"]), TypeError, "extra_cuda_cflags"),
    "no name": (lambda: kernix.load_cpp_inline("", function()), R, "name must be a non-empty string"),
    # files
    "file that is not there": (lambda: kernix.load_cpp_file("/nowhere/add.cpp"), FileNotFoundError, "/nowhere/add.cpp"),
    "folder that is not there": (lambda: kernix.load_cuda_dir("missing"), R, "there is no folder /.*/missing"),
    "file in place of a folder": (
        lambda: kernix.load_cuda_dir(__file__),
        R,
        "test_mistakes.py is not a folder: load a file with load_cuda_file",
    ),
    "folder without CUDA": (lambda: kernix.load_cuda_dir(pathlib.Path(__file__).parent), R, r"matches \*\.cu"),
    "no files": (lambda: kernix.load_cpp_file([]), R, "the list of files is empty"),
    # from here on, a compiler runs
    "CUDA in a load of C++": (
        lambda: cpp(HEAD + "\n__global__ void k() {}\n" + function().replace(HEAD, "")),
        C,
        "mistake:3 has '__global__', which is CUDA, but this load is C\\+\\+: use load_cuda_inline or load_cuda_file",
    ),
    "header that is not there": (
        lambda: cpp('#include "mine.h"\n' + function()),
        C,
        "mistake:1:.*mine.h: No such file",
    ),
    "assignment to an input": (
        lambda: cpp(function("BE::In<float> x, BE::Out<float> y", "x[0] = 1;")),
        C,
        "mistake:3:.*read-only",
    ),
    "symbol of a library": (
        lambda: cpp('extern "C" void cblas_saxpy();\n' + function(body="cblas_saxpy();")),
        C,
        "It may be part of BLAS: pass -lopenblas in extra_ldflags; else define it",
    ),
    "symbol of one's own": (
        lambda: cpp("void helper();\n" + function(body="helper();")),
        C,
        r"undefined reference to `helper\(\)'. Define that function in the sources, or name the library",
    ),
    "library that is not there": (lambda: cpp(extra_ldflags=["-lnothing"]), C, "cannot find -lnothing"),
    "typing error in C++": (lambda: cpp(function(body="retrun;")), C, "mistake:3:.*retrun"),
}


@pytest.mark.parametrize("mistake", LOADS)
def test_load(mistake):
    action, error, message = LOADS[mistake]
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        action()


# --- Texts that do not parse: name -> (the text, what the compiler says) ----------------------------------------------

EXPORT = "// @BE f\nvoid f(BE::In<float> x, BE::Out<float> y) { y[0] = x[0]; }\n"
SYNTAX = {
    "no ; after a variable": (f"{HEAD}static int a = 1\n{EXPORT}", "mistake:4:.*expected .*[;']"),
    "no ; after a class": (f"{HEAD}struct S {{ int a; }}\n{EXPORT}", "mistake:[24]:.*(expected ';'|';' after struct)"),
    "no ; after using": (f"{HEAD}using Real = float\n{EXPORT}", "mistake:[24]:.*(expected ';'|two or more data types)"),
    "no } of a function": (f"{HEAD}int g() {{ if (1) {{ return 1; }}\n{EXPORT}", "mistake:4:.*not allowed here before"),
    "no } of a namespace": (f"{HEAD}namespace a {{\n{EXPORT}", "mistake:4:.*expected '}'"),
    "no } of a class": (f"{HEAD}struct S {{\n  int a;\n{EXPORT}", "mistake:[2-5]:.*expected"),
    "no } at the end": (f"{HEAD}{EXPORT.replace('; }', ';')}", "mistake:3:.*expected '}' at end of input"),
    "no ) in the signature": (HEAD + EXPORT.replace(") {", " {"), "mistake:3:.*expected"),
    "no ) in a body": (
        f"{HEAD}static float g(float a) {{\n  return (a + 1;\n}}\n{EXPORT}",
        r"mistake:3:.*expected '\)'",
    ),
    "no ) of a macro call": (f"{HEAD}#define Q(a) a\nint z = Q(1;\n{EXPORT}", "mistake:[67]:.*unterminated.*Q"),
    "no closing quote": (f'{HEAD}const char* s = "abc;\n{EXPORT}', "mistake:2:.*missing terminating"),
    "no end of a comment": (f"{HEAD}/* what it does\n{EXPORT}", "mistake:2:.*unterminated comment"),
    "no #endif": (f"{HEAD}#if 1\n{EXPORT}", "mistake:2:.*unterminated #if"),
    "no , between parameters": (HEAD + EXPORT.replace(", ", " "), "mistake:3:.*expected ','"),
    "a pointer": (f"{HEAD}int a\n{EXPORT.replace('BE::In<float>', 'const float*')}", "mistake:[24]:.*expected"),
    "no result": (f"{HEAD}int a\n// @BE f\nvoid f(BE::In<float> x) {{ }}\n", "mistake:[24]:.*expected"),
    "too many dimensions": (f"{HEAD}int a\n{EXPORT.replace('In<float>', 'In<float, 9>')}", "mistake:[24]:.*expected"),
    "an export twice": (f"{HEAD}int a\n// @BE f\n{EXPORT}", "mistake:[25]:.*expected"),
    "a reference of an unknown type": (
        HEAD + EXPORT.replace("BE::In<float>", "BE::Tensr&"),
        "mistake:3:.*(Tensr|declared)",
    ),
    "no > of a type": (HEAD + EXPORT.replace("float> x", "float x"), "mistake:3:.*(template argument|expected)"),
    "an unknown type": (HEAD + EXPORT.replace("BE::In<float>", "Matrix"), "mistake:3:.*declared"),
    "an unknown element type": (HEAD + EXPORT.replace("In<float>", "In<flot>"), "mistake:3:.*'flot'"),
    "an unknown result": (HEAD + EXPORT.replace("void", "vod"), "mistake:3:.*'vod'"),
}


@pytest.mark.parametrize("mistake", SYNTAX)
@pytest.mark.parametrize("load", [cpp, cuda])
def test_a_text_that_does_not_parse_is_answered_by_the_compiler(load, mistake):
    """The compiler's own words come first, with the user's line: not what kernix then fails to find."""
    source, message = SYNTAX[mistake]
    with pytest.raises(kernix.KernelCompilationError) as caught:
        load(source)
    first = str(caught.value).splitlines()[0]
    if load is cpp:
        assert re.search(message, first), first
    assert re.search(r"mistake[:(][2-7]", first), first  # nvcc's front end has other words
    assert "handler of" not in first


@pytest.mark.parametrize("load", [cpp, cuda])
def test_a_function_that_is_not_there_in_a_text_that_parses(load):
    """What compiles has nothing but our own message."""
    with pytest.raises(kernix.KernelRequestError, match="'g': no signature 'void g"):
        load(HEAD + EXPORT, ["g"])
    with pytest.raises(kernix.KernelRequestError, match="Add one above the function"):
        load(HEAD + EXPORT.replace("// @BE f", ""))


def test_a_header_of_the_users_that_does_not_parse(tmp_path):
    """The header's line is shown, wherever the export stands."""
    (tmp_path / "mine.h").write_text("#pragma once\nstatic int g() {\n  return (1;\n}\n")
    (tmp_path / "open.h").write_text("#pragma once\nstatic int h() {\n  return 1;\n")
    for header, place in (("mine.h", r"mine.h:3:"), ("open.h", r"mistake:[2-4]:")):
        with pytest.raises(kernix.KernelCompilationError) as caught:
            cpp(f'{HEAD}#include "{header}"\n{EXPORT}', ["f"], extra_include_paths=[str(tmp_path)])
        assert re.search(place, str(caught.value).splitlines()[0])
        with pytest.raises(kernix.KernelCompilationError, match=place):
            cpp(f'{HEAD}#include "{header}"\n{EXPORT}', ["absent"], extra_include_paths=[str(tmp_path)])


def test_one_of_several_sources_that_does_not_parse(tmp_path):
    """Its own label and line are shown."""
    (tmp_path / "a.cpp").write_text(HEAD + EXPORT)
    (tmp_path / "b.cpp").write_text(HEAD + "static int g() {\n" + EXPORT.replace("f(", "h(").replace("BE f", "BE h"))
    for separate in (True, False):
        with pytest.raises(kernix.KernelCompilationError, match=r"b\.cpp:4:"):
            kernix.load_cpp_file([tmp_path / "a.cpp", tmp_path / "b.cpp"], auto_register=False, separate=separate)


# --- The surroundings: name -> (variables, language, error, text) -----------------------------------------------------

SURROUNDINGS = {
    "flags in CXX": ({"CXX": "g++ -O2"}, cpp, T, 'CXX="g\\+\\+ -O2" is more than a compiler.*extra_cflags'),
    "no such CXX": ({"CXX": "/no/g++"}, cpp, T, "/no/g\\+\\+"),
    "CXX that is no compiler": ({"CXX": "/bin/true"}, cpp, T, "/bin/true is neither a GCC nor a Clang"),
    "no compiler": ({"PATH": "/nowhere"}, cpp, T, "no C\\+\\+ compiler found.*apt-get install g\\+\\+"),
    "no such nvcc": ({"BRAINEVENT_NVCC_PATH": "/no/nvcc"}, cuda, T, "BRAINEVENT_NVCC_PATH=/no/nvcc is not a program"),
    "no such host compiler of nvcc": ({"NVCC_CCBIN": "/no/g++"}, cuda, T, "/no/g\\+\\+"),
    "quote that does not end": ({"NVCC_APPEND_FLAGS": "-DX='"}, cuda, R, "NVCC_APPEND_FLAGS"),
    "two flags in one word": (
        {"NVCC_APPEND_FLAGS": "'-DA=8 -DB=9'"},
        cuda,
        R,
        'write two, "-DA=8" and "-DB=9"',
    ),
    "address of nobody": (
        {"KERNIX_ADDRESS": "unix:/nowhere/x.sock"},
        cpp,
        kernix.KernelDaemonError,
        r"no kernixd answers \(\$KERNIX_ADDRESS\).*/nowhere/x.sock",
    ),
    "address of TCP": ({"KERNIX_ADDRESS": "localhost:80"}, cpp, R, r"\$KERNIX_ADDRESS.*accepts a Unix socket"),
    "relative store": ({"KERNIX_CACHE_DIR": "store"}, cpp, kernix.KernelError, "store"),
    "store that cannot be made": ({"KERNIX_CACHE_DIR": "/dev/null/x"}, cpp, kernix.KernelError, "/dev/null/x"),
    "no such kernixd": (
        {"KERNIXD": "/no/kernixd", "KERNIX_CACHE_DIR": "/tmp/kernix-nobody"},
        cpp,
        kernix.KernelDaemonError,
        "/no/kernixd",
    ),
}


@pytest.mark.parametrize("mistake", SURROUNDINGS)
def test_surroundings(mistake, monkeypatch):
    variables, load, error, message = SURROUNDINGS[mistake]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        load()


# --- Calls -----------------------------------------------------------------------------------------------------------

CALLED = (
    HEAD
    + """
// @BE add
void add(BE::In<float> x, BE::In<float> z, BE::Out<float> y) {}
// @BE scale
void scale(BE::In<float> x, BE::Out<float> y, int factor) {}
// @BE fail
void fail(BE::In<float> x, BE::Out<float> y) { throw std::runtime_error("oh"); }
// @BE fail_oddly
void fail_oddly(BE::In<float> x, BE::Out<float> y) { throw 7; }
// @BE any
void any(const BE::Tensor x, BE::Tensor y) {}
// @BE may
void may(BE::In<float> x, const BE::Tensor* z, BE::Out<float> y) {}
// @BE check
void check(BE::In<float> x, BE::Out<float> y) { BE_CHECK(x.size() > 99) << "x is too short"; }
"""
)
X = np.zeros(4, np.float32)


@pytest.fixture(name="called", scope="module")
def called_fixture():
    return kernix.load_cpp_inline("called", CALLED)


TE, VE, JE = TypeError, ValueError, jax.errors.JaxRuntimeError
CALLS = {
    "too few arrays": (lambda m: m.add(X), TE, r"add\(\) takes 2 arrays, but 1 were given; it is called.add\("),
    "too many arrays": (lambda m: m.scale(X, X, factor=1), TE, r"scale\(\) takes 1 array, but 2 were given"),
    "attribute by position": (
        lambda m: m.scale(X, 3),
        TE,
        r"scale\(\) takes 1 array, but 2 were given: .*pass factor by keyword: factor=3; it is",
    ),
    "attribute of NumPy by position": (lambda m: m.scale(jnp.asarray(X), np.int32(3)), TE, "pass factor by keyword"),
    "array by keyword": (lambda m: m.scale(x=X, factor=3), TE, "arrays go by position, not as x="),
    "second array by keyword": (lambda m: m.add(X, z=jnp.asarray(X)), TE, "arrays go by position, not as z="),
    "optional array by keyword": (
        lambda m: m.may(X, z=X),
        TE,
        r"may\(\) has no attribute 'z': arrays go by position, not as z=; its attributes: none",
    ),
    "optional array alone": (lambda m: m.may(z=X), TE, "takes 1 to 2 arrays, .* go by position, not as z="),
    "result by keyword": (lambda m: m.scale(X, y=X, factor=1), TE, "no attribute 'y': y is a result: pass it as out="),
    "result as an argument": (lambda m: m.add(X, X, X), TE, r"3 were given: y is a result, which out= describes"),
    "wrong element type": (
        lambda m: m.add(X, jnp.arange(4)),
        TE,
        r"add\(\): argument 1 \(z\) takes float32, got int32",
    ),
    "NumPy's default type": (lambda m: m.add(X, np.zeros(4)), TE, r"argument 1 \(z\) takes float32, got float64"),
    "list": (lambda m: m.add(X, [1.0, 2.0]), TE, "argument 1"),
    "number": (lambda m: m.scale(1.0, factor=1), TE, "argument 0"),
    "string": (lambda m: m.scale("x", factor=1), TE, "argument 0"),
    "None": (lambda m: m.scale(None, factor=1), TE, "argument 0"),
    "description as an argument": (
        lambda m: m.scale(jnp.asarray(X), jax.ShapeDtypeStruct((4,), np.float32), factor=1),
        TE,
        r"scale\(\) takes 1 array, .* argument 1 only describes an array: pass the description of a result as out=",
    ),
    "description for an argument": (
        lambda m: m.add(X, jax.ShapeDtypeStruct((4,), np.float32)),
        TE,
        "argument 1 only describes an array: pass the description of a result as out=",
    ),
    "class of a description": (
        lambda m: m.scale(jnp.asarray(X), factor=1, out=jax.ShapeDtypeStruct),
        TE,
        r"out 0 is <class 'jax.ShapeDtypeStruct'>; it must have shape and dtype",
    ),
    "class of a description, with a gradient": (
        lambda m: m.scale.with_vjp("add")(jnp.asarray(X), factor=1, out=jax.ShapeDtypeStruct),
        TE,
        r"out 0 is <class 'jax.ShapeDtypeStruct'>; it must have shape and dtype",
    ),
    "negative shape": (
        lambda m: m.scale(jnp.asarray(X), factor=1, out=jax.ShapeDtypeStruct((-1,), np.float32)),
        VE,
        r"scale\(\): out 0 has the shape \(-1,\)",
    ),
    "key": (lambda m: m.any(jax.random.key(0)), TE, r"argument 0 is a PRNG key: pass jax.random.key_data\(key\)"),
    "traced key": (lambda m: jax.jit(m.any)(jax.random.key(0)), TE, "argument 0 is a PRNG key"),
    "packed elements": (lambda m: m.any(X.astype("int4")), TE, "element type int4, .*: pass a JAX array"),
    "attribute left out": (lambda m: m.scale(X), TE, "factor"),
    "attribute that is not there": (lambda m: m.scale(X, factr=2), TE, "factr|factor"),
    "attribute as a fraction": (lambda m: m.scale(X, factor=1.5), VE, "'factor' is 1.5; it must be a whole number"),
    "attribute too large": (lambda m: m.scale(X, factor=2**40), VE, "factor.*int32"),
    "attribute as a word": (lambda m: m.scale(X, factor="2"), TE, "factor"),
    "traced attribute": (
        lambda m: jax.jit(lambda x, n: m.scale(x, factor=n))(jnp.asarray(X), 2),
        TE,
        "attribute 'factor' is traced by JAX",
    ),
    "no shape of the result": (lambda m: m.add(X, X[1:]), TE, r"add\(\) needs out="),
    "wrong type of the result": (
        lambda m: m.scale(jnp.asarray(X), factor=1, out=jax.ShapeDtypeStruct((4,), np.int32)),
        TE,
        r"\(y\).*float32.*int32",
    ),
    "function that is not there": (
        lambda m: m.scal,
        AttributeError,
        "^no function 'scal' in module 'called'; it has add, scale, fail, .*, check. Did you mean scale\\?$",
    ),
    "function of a quite different name": (lambda m: m.softmax, AttributeError, "fail_oddly, any, may, check$"),
    "attribute with a typing error": (lambda m: m.functon_names, AttributeError, r"Did you mean function_names\?$"),
    "item that is not there": (
        lambda m: m["scal"],
        KeyError,
        "no function 'scal' in module 'called'; it has add, scale, fail, .*, check. Did you mean scale\\?",
    ),
    "text of a source that is not there": (lambda m: m.source("x"), KeyError, "no source 'x'"),
    "gradient": (
        lambda m: jax.grad(lambda x: m.scale(x, factor=1).sum())(jnp.asarray(X)),
        VE,
        "cannot be differentiated",
    ),
    "backward function that is not there": (lambda m: m.scale.with_vjp("scale_back"), KeyError, "scale_back"),
    "backward function in Python": (
        lambda m: m.scale.with_vjp(lambda x, g: g),
        TE,
        r"scale.with_vjp\(\) takes the name of a function of the module.*use jax.custom_vjp",
    ),
    "backward function as a number": (lambda m: m.scale.with_vjp(1), TE, "with_vjp.*not 1"),
    "exception": (lambda m: m.fail(jnp.asarray(X)), JE, r"called\.fail: threw std::runtime_error: oh"),
    "exception without JAX": (
        lambda m: m.fail(X),
        kernix.KernelCallError,
        r"^called\.fail: threw std::runtime_error: oh$",
    ),
    "something thrown": (
        lambda m: m.fail_oddly(X),
        kernix.KernelCallError,
        "fail_oddly: threw the int 7",
    ),
    "wrong type through ffi_call": (
        lambda m: jax.ffi.ffi_call("called.fail", jax.ShapeDtypeStruct((4,), np.float32))(jnp.arange(4)),
        JE,
        r"called\.fail: argument 0 \(x\) takes float32, got int32",
    ),
    "target that is not there": (
        lambda m: jax.ffi.ffi_call("called.nothing", jax.ShapeDtypeStruct((4,), np.float32))(X),
        Exception,
        "called.nothing",
    ),
}


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("mistake", CALLS)
def test_call(mistake, called):
    action, error, message = CALLS[mistake]
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        jax.block_until_ready(action(called))


CHECKED = jax.ffi.ffi_call("called.check", jax.ShapeDtypeStruct((4,), np.float32))
PATHS = {
    "at once": lambda x: CHECKED(x),
    "by the module": lambda x: kernix.load_cpp_inline("called", CALLED).check(x),
    "jit": lambda x: jax.jit(CHECKED)(x),
    "jit, read as NumPy": lambda x: np.asarray(jax.jit(CHECKED)(x)),
    "jit, then a computation": lambda x: jax.jit(lambda x: CHECKED(x))(x) + 1,
    "as constant": lambda x: jax.jit(lambda: CHECKED(np.zeros(4, np.float32)))(),
    "compiled ahead": lambda x: jax.jit(CHECKED).lower(x).compile()(x),
    "scan": lambda x: jax.lax.scan(lambda c, _: (CHECKED(c), None), x, None, length=2),
    "vmap": lambda x: jax.vmap(
        jax.ffi.ffi_call("called.check", jax.ShapeDtypeStruct((4,), np.float32), vmap_method="sequential")
    )(jnp.stack([x, x])),
}


@pytest.mark.usefixtures("on_cpu", "called")
@pytest.mark.parametrize("path", PATHS)
def test_a_check_that_fails_in_a_first_call_is_jaxs_error_on_every_path(path):
    """JAX 0.5.0, 0.7.2, 0.10.2 and 0.12.0 do the same; what stands before the function's name differs."""
    with pytest.raises(JE, match="check: check failed at called:16: .*x is too short"):
        jax.block_until_ready(PATHS[path](jnp.asarray(X)))


# --- Warnings: name -> (what is done, text) ---------------------------------------------------------------------------


NUMBERS = itertools.count()  # a process hears of each value once


def with_unknown_variable(monkeypatch):
    monkeypatch.setenv(f"KERNIX_CACHEDIR{next(NUMBERS)}", "/x")
    return cpp()


def with_cuda_home(monkeypatch):
    monkeypatch.setenv("CUDA_HOME", f"/nowhere/cuda{next(NUMBERS)}")
    return cuda()


GREEDY = """
#include "brainevent/common.h"
__global__ void __launch_bounds__(1024, 2) greedy(float* p) {
    float values[64];
    #pragma unroll
    for (int i = 0; i < 64; ++i) values[i] = p[i * 1024 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 64; ++i) p[threadIdx.x * 64 + i] = values[i] * values[63 - i];
}
// @BE greedy_all
void greedy_all(BE::Tensor x, cudaStream_t stream) { greedy<<<1, 1024, 0, stream>>>(x.data_ptr<float>()); }
"""


@functools.cache
def other_bundle():
    """Return a bundle that has another module "mistake"."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kx-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "mistake.cpp").write_text(kernels.constant(8))
    make = [_environment.program("kernixctl"), "bundle", "make", folder / "mistake.cpp", "-o", folder / "other.kernix"]
    subprocess.run(make, check=True, capture_output=True)
    return folder / "other.kernix"


def with_other_bundle(_):
    return cpp(bundle=other_bundle())


def with_freeze(_):
    with kernix.freeze("warn"):
        return cpp(force_rebuild=True)


def with_lost_history(monkeypatch):
    monkeypatch.setenv("KERNIX_HISTORY", "1")
    monkeypatch.setattr("__main__.__file__", "/program.py", raising=False)
    pathlib.Path(kernix.get_cache_dir(), "history").write_text("")  # where a folder should be
    return cpp()


def spilling(**options):
    return cuda(GREEDY, **{"force_rebuild": True, **options})


WARNINGS = {
    "cuda-without-stream": (
        lambda _: cuda(function()),
        "mistake:3: function 'f' takes no stream.*Take a 'cudaStream_t stream'",
    ),
    "only-results": (
        lambda _: cpp(function("BE::Tensor x, BE::Tensor y")),
        "mistake:3: all arrays of function 'f' are results.*Write 'const BE::Tensor'.*// @BE f ret ret",
    ),
    "hidden-function": (
        lambda _: cpp(function(name="path")),
        r"function 'path' is hidden by CompiledModule.path. Call it as module\[\"path\"\]",
    ),
    "cuda-home": (with_cuda_home, r"CUDA_HOME=/nowhere/cuda\d+ does not lead to an nvcc.*/nowhere/cuda\d+/bin/nvcc"),
    "missing-include-path": (lambda _: cpp(extra_include_paths=["/nowhere"]), "/nowhere is not a folder"),
    "variable-without-effect": (
        with_unknown_variable,
        r"KERNIX_CACHEDIR\d+ has no effect: .*Did you mean KERNIX_CACHE_DIR",
    ),
    "register-spills": (
        lambda _: spilling(),
        r'module "mistake": each thread spills .* greedy\(float\*\) on sm_90 \(\d+ bytes stored, \d+ loaded.*bounds__',
    ),
    "not-in-bundle": (
        with_other_bundle,
        r'the bundle .*other.kernix has "mistake" from other inputs, which differ in source mistake',
    ),
    "build-after-freeze": (
        with_freeze,
        r"'mistake' was built in \d+ ms, in a process that was frozen by .*mistakes.py:\d+ at .*: force_rebuild. Load",
    ),
    "history-not-kept": (with_lost_history, r"not remembered for the next upgrade: .*/history: File exists"),
}


def messages(action):
    """Return the texts of kernix' warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(one.message) for one in caught if issubclass(one.category, kernix.KernelWarning)]


@pytest.mark.parametrize("name", WARNINGS)
def test_warning(name, monkeypatch, forget):
    action, text = WARNINGS[name]
    forget()
    (message,) = messages(lambda: action(monkeypatch))
    assert re.search(text, message, re.DOTALL)
    assert message.endswith(f"[KERNIX_WARNINGS=no-{name}]")
    forget()
    if name == "register-spills":
        assert messages(lambda: spilling(force_rebuild=False)) == [], "once for each build"
        assert messages(lambda: spilling(debug=True)) == [], "not optimised"
    elif name == "build-after-freeze":
        assert len(messages(lambda: action(monkeypatch))) == 1, "for each build"
    elif name == "not-in-bundle":
        assert messages(lambda: action(monkeypatch)) == [message], "on a hit, too"
    elif action not in (with_cuda_home, with_lost_history, with_unknown_variable):
        assert messages(lambda: action(monkeypatch)) == [message], "on a hit, too"
        assert messages(lambda: action(monkeypatch)) == [], "once in a process"
    forget()
    monkeypatch.setenv("KERNIX_WARNINGS", f"no-{name}")
    assert messages(lambda: action(monkeypatch)) == []


def test_pointers_without_const_are_warned_about(forget):
    forget()
    source = "// @BE k\n__global__ void k(float* x, float* y, int n) { y[threadIdx.x] = x[threadIdx.x]; }"
    (message,) = messages(lambda: cuda(source))
    assert re.search(r"mistake:2: all arrays of function 'k' are results, .* 'const float\* x' for an input", message)
    with pytest.raises(TypeError, match=r"takes 0 arrays, but 1 were given: x and y are results.*pointers to const"):
        cuda(source).k(X, n=4, grid=1, block=4)
    in_place = cuda("// @BE k\n__global__ void k(float* x, int n) { x[0] = n; }")
    with pytest.raises(TypeError, match=r"takes 0 arrays, but 1 were given: x is a result"):
        in_place.k(X, n=4, grid=1, block=4)
    mixed = cuda("// @BE k\n__global__ void k(float* x, const float* w, float* y) { y[0] = x[0] + w[0]; }")
    with pytest.raises(TypeError, match=r"takes 1 array, but 2 were given: x and y are results"):
        mixed.k(X, X, grid=1, block=4)


QUIET = {
    "kernel that fills an array": lambda: cuda("// @BE f\n__global__ void f(float* y) { *y = 1; }"),
    "kernel with tokens": lambda: cuda("// @BE f ret ret\n__global__ void f(float* x, float* y) { *y = *x = 1; }"),
    "kernel with typed results": lambda: cuda(
        HEAD + "// @BE f\n__global__ void f(BE::Out<float> x, BE::Out<float> y) { y[0] = x[0] = 1; }"
    ),
    "function that fills an array": lambda: cpp(function("BE::Tensor y")),
    "results with tokens": lambda: cpp(function("BE::Tensor x, BE::Tensor y"), {"f": ["ret", "ret"]}),
    "results by type": lambda: cpp(function("BE::Out<float> x, BE::Out<float> y")),
    "the reference's casts": lambda: cpp(
        function(body="const float* p = x.data_ptr<float>(); auto q = static_cast<const float*>(x.data_ptr());")
    ),
    "CUDA with a stream": lambda: cuda(kernels.VECTOR_ADD),
    "CUDA without a host function": lambda: cuda("// @BE f\n__global__ void f(const float* x, float* y) { *y = *x; }"),
}


@pytest.mark.parametrize("case", QUIET)
def test_no_warning(case, forget):
    forget()
    assert messages(QUIET[case]) == []


def test_a_switch_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv("KERNIX_WARNINGS", "no-cuda-hom")
    (message,) = messages(cpp)
    assert '"no-cuda-hom", which has no effect. Did you mean no-cuda-home?' in message


def test_names_of_warnings_stand_on_the_page():
    page = (conftest.HERE.parents[1] / "docs" / "python.md").read_text()
    table = page.partition("| warning |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)` \| ", table, re.MULTILINE) == list(WARNINGS)


def test_every_variable_of_the_page_is_known(monkeypatch):
    page = (conftest.HERE.parents[1] / "docs" / "environment.md").read_text()
    names = set(re.findall(r"KERNIX_[A-Z_]+[A-Z]", page)) - set(os.environ)
    with_effects = {"KERNIX_ADDRESS", "KERNIX_WARNINGS", "KERNIX_STARTED_BY_CLIENT"}
    harmless = names - with_effects
    for name in harmless:
        monkeypatch.setenv(name, "")
    assert len(harmless) > 20
    assert messages(cpp) == []


def test_compiler_warnings_are_shown_once_in_a_process(capfd, forget):
    source = function(body="int unused_number = 1;")
    cpp(source, extra_cflags=["-Wall"])
    built = capfd.readouterr().err
    assert "mistake:3:" in built
    assert "unused_number" in built
    forget()  # as another process
    assert cpp(source, extra_cflags=["-Wall"]).cache_hit
    assert capfd.readouterr().err == built
    cpp(source, extra_cflags=["-Wall"])
    assert capfd.readouterr().err == ""
    cpp(source, extra_cflags=["-Wall"], verbose=True)
    assert built in capfd.readouterr().err
    cpp(source)
    assert capfd.readouterr().err == ""


# --- kernixd and kernixctl --------------------------------------------------------------------------------------------


def kernixd(tmp_path, config, **environment):
    """Start kernixd with a configuration that it refuses; return what it says."""
    path = tmp_path / "kernixd.toml"
    path.write_text(config)
    started = subprocess.run(
        [_environment.program("kernixd"), "--config", path, "--store-directory", tmp_path / "store"],
        env={"PATH": "/usr/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)} | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert started.returncode != 0
    return started.stdout + started.stderr


CONFIGURATIONS = {
    "limit without a unit": (
        "cache_limit_bytes = 5",
        'kernixd.toml.*cache_limit_bytes.*"5" bytes hold no kernel.*10GiB',
    ),
    "limit that is no size": ('cache_limit_bytes = "huge"', "kernixd.toml.*cache_limit_bytes.*not a size"),
    "setting that is not there": ("cache_limit = 5", "kernixd.toml.*cache_limit"),
    "relative store": ('store_directory = "store"', "kernixd.toml.*store_directory.*not an absolute path"),
    "shared without toolchains": ("shared = true", r"\[\[toolchain\]\]"),
    "time without a unit": ('job_timeout = "soon"', "kernixd.toml.*job_timeout.*soon"),
}


@pytest.mark.parametrize("mistake", CONFIGURATIONS)
def test_configuration(mistake, tmp_path):
    config, message = CONFIGURATIONS[mistake]
    assert re.search(message, kernixd(tmp_path, config + "\n"), re.DOTALL)


@pytest.fixture
def store_on(own_place):
    """Return a function that mounts a file system with these options as the store."""
    own_place.store.mkdir(mode=0o700)
    mounted = False

    def mount(options):
        nonlocal mounted
        command = ["mount", "-t", "tmpfs", "-o", f"mode=0700,{options}", "tmpfs", own_place.store]
        mounted = subprocess.run(command, capture_output=True).returncode == 0
        if not mounted:
            pytest.skip("no file system can be mounted here")

    yield mount
    own_place.kernixctl("shutdown", check=False)
    if mounted:
        subprocess.run(["umount", "--lazy", own_place.store], check=True)


def load_elsewhere(place):
    """Load a kernel in a process that uses this place, and return what it prints as its error."""
    program = "import kernels, kernix; kernix.load_cpp_inline('elsewhere', kernels.ADD_ONE, auto_register=False)"
    return subprocess.run([sys.executable, "-c", program], env=place.environment, capture_output=True, text=True).stderr


def test_store_where_nothing_can_run(own_place, store_on):
    store_on("noexec")
    error = load_elsewhere(own_place)
    assert "KernelLoadError" in error
    assert "mount option noexec): choose another store with KERNIX_CACHE_DIR" in error


def reports(place, **variables):
    """Return what `kernixctl doctor` and `kernixctl status` say, with one line for each finding."""
    said = [
        subprocess.run(
            [_environment.program("kernixctl"), command],
            env=place.environment | variables,
            capture_output=True,
            text=True,
        ).stdout
        for command in ("doctor", "status")
    ]
    return [re.sub(r"\n {20}", " ", text) for text in said]


def test_store_that_cannot_be_written(own_place, store_on):
    store_on("size=64m")
    assert load_elsewhere(own_place) == ""
    own_place.kernixctl("shutdown")
    subprocess.run(["mount", "-o", "remount,ro", own_place.store], check=True)
    warning = f"KernelWarning: the store {own_place.store} cannot be written; builds go to {own_place.root}/run/"
    assert warning in load_elsewhere(own_place)
    assert load_elsewhere(own_place) == "", "who has not started kernixd is not warned"
    reads = f"{own_place.root}/run/.*/store, reads {own_place.store}"
    lack = f"{own_place.store} cannot be written .Read-only file system., so it is only read; .* in KERNIX_CACHE_DIR$"
    doctor, status = reports(own_place)
    assert re.search(f"^warn +store +{reads} {lack}", doctor, re.MULTILINE), doctor
    assert re.search(f"^store +{reads}$", status, re.MULTILINE), status
    assert re.search(f"^{lack}", status, re.MULTILINE), status
    subprocess.run(["mount", "-o", "remount,rw", own_place.store], check=True)
    assert "could not be written when kernixd started: `kernixctl shutdown`" in reports(own_place)[1]


def test_store_that_can_neither_be_written_nor_read(own_place, store_on):
    store_on("ro,size=1m")
    assert "cannot be written; builds go to" in load_elsewhere(own_place)
    assert f"{own_place.store} cannot be written (Read-only file system), nor read; builds go" in reports(own_place)[1]


def test_stores_that_are_only_read_are_named(own_place):
    assert load_elsewhere(own_place) == ""
    own_place.kernixctl("shutdown")
    first = own_place.root / "first"
    variables = {"KERNIX_CACHE_DIR": f"{first}:{own_place.store}"}
    try:
        doctor, status = reports(own_place, **variables)
        assert re.search(f"^ok +store +{first}, .* free, reads {own_place.store}$", doctor, re.MULTILINE), doctor
        assert re.search(f"^store +{first}, reads {own_place.store}$", status, re.MULTILINE), status
    finally:
        subprocess.run(
            [_environment.program("kernixctl"), "shutdown"], env=own_place.environment | variables, capture_output=True
        )


def test_full_disk(own_place, store_on):
    store_on("size=4m")
    own_place.kernixctl("doctor", check=False)  # starts kernixd, which makes its index there
    with contextlib.suppress(OSError), open(own_place.store / "ballast", "wb", buffering=0) as ballast:
        while ballast.write(b"x" * 4096):
            pass
    error = load_elsewhere(own_place)
    assert "KernelResourceError" in error
    assert re.search(f"[Nn]o (space|room).*{own_place.store}.*`kernixctl cache purge`", error)


def test_compile_without_nvcc_mentions_the_wheels(tmp_path, own_place):
    source = tmp_path / "add.cu"
    source.write_text(kernels.VECTOR_ADD)
    if os.path.exists("/usr/local/cuda/bin/nvcc"):
        pytest.skip("/usr/local/cuda has an nvcc that is always found")
    environment = own_place.environment | {"PATH": "/usr/bin:/bin"}
    for name in ("CUDA_HOME", "CUDA_PATH", "BRAINEVENT_NVCC_PATH"):
        environment.pop(name, None)
    done = subprocess.run(
        [_environment.program("kernixctl"), "compile", source, "--arch", "sm_90"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "no nvcc found" in done.stderr
    assert "--site-packages" in done.stderr


def test_there_are_a_hundred():
    tables = [LOADS, SURROUNDINGS, CALLS, WARNINGS, CONFIGURATIONS]
    assert all(isinstance(table, dict) for table in tables)
    assert sum(len(table) for table in tables) >= 100


# --- Texts that UTF-8 cannot encode ----------------------------------------------------------------------------------

ODD = "caf\udce9"  # os.fsdecode() makes it of Latin-1


def test_bytes_of_another_encoding_pass_through_a_source_and_its_path(tmp_path):
    source = function("BE::Out<float> y", "y[0] = 1;")
    cpp(f"{source}// {ODD}")
    kernix.load_cpp_inline("mistake", [source, f"// {ODD}"], auto_register=False)
    folder = tmp_path / ODD
    folder.mkdir()
    (folder / "one.h").write_text("#define ONE 1\n")
    path = folder / f"{ODD}.cpp"
    path.write_text('#include "one.h"\n' + source.replace("= 1", "= ONE"))
    for given in (path, str(path), os.fsencode(path)):
        kernix.load_cpp_file(given, name="mistake", auto_register=False)
    path.write_text(source + "nonsense;")
    with pytest.raises(C, match=r"caf.*\.cpp:\d+:\d+: error: .*nonsense"):
        kernix.load_cpp_file(path, name="mistake", auto_register=False)
    inline = '#include "one.h"\n' + source
    assert cpp(inline, extra_include_paths=[folder]).function_names == ["f"]


UNENCODABLE = {
    "source": lambda: cpp(function() + "// \ud800"),
    "name": lambda: kernix.load_cpp_inline(ODD, function(), auto_register=False),
    "flag": lambda: cpp(extra_cflags=["-O2", f'-DX="{ODD}"']),
    "flag of nvcc": lambda: cuda(extra_cuda_cflags=[f"-I{ODD}"]),
    "flag of the linker": lambda: cpp(extra_ldflags=[f"-L{ODD}"]),
    "macro": lambda: cpp(defines={"X": ODD}),
    "name of a macro": lambda: cpp(defines={ODD: 1}),
    "function": lambda: cpp(functions=[ODD]),
    "token": lambda: cpp(functions={"f": ["arg", f"ret:{ODD}"]}),
    "prefix": lambda: cpp(target_prefix=ODD),
    "target": lambda: kernix.register_ffi_target(ODD, cpp(), "f"),
    "label": lambda: cpp().source(ODD),
    "name in the cache": lambda: kernix.clear_cache(ODD),
    "cache": lambda: kernix.set_cache_dir(f"/tmp/{ODD}"),
    "policy": lambda: cpp(policy=f"cached{ODD}"),
    "architecture": lambda: cuda(compute_capability=f"sm_90{ODD}"),
}


@pytest.mark.parametrize("place", UNENCODABLE)
def test_other_texts_that_cannot_be_encoded_are_named_with_the_character(place):
    with pytest.raises(kernix.KernelRequestError, match=r"\\ud[8c][0e][09]") as caught:
        UNENCODABLE[place]()
    assert "incompatible" not in str(caught.value)


@pytest.mark.parametrize("tool", ["CXX", "NVCC_APPEND_FLAGS"])
def test_variables_that_cannot_be_encoded_are_shown(tool, tmp_path, monkeypatch):
    folder = tmp_path / ODD
    folder.mkdir()
    (folder / "g++").symlink_to(shutil.which("g++"))
    monkeypatch.setenv(tool, str(folder / "g++") if tool == "CXX" else f"-DX={ODD}")
    load = cpp if tool == "CXX" else cuda
    with pytest.raises(
        kernix.KernelRequestError, match='the compiler(\'s path| flag) "[^"]*\ufffd[^"]*" is not UTF-8$'
    ):
        load()


def test_a_text_that_is_none_is_named():
    for call, what in (
        (lambda: kernix.clear_cache(3), "clear_cache: the name"),
        (lambda: cpp(policy=3), "policy"),
        (lambda: kernix.register_ffi_target(3, cpp(), "f"), "target_name"),
    ):
        with pytest.raises(TypeError, match=f"^{what} must be a string, not 3$"):
            call()


def test_a_file_whose_name_names_no_module_asks_for_one(tmp_path):
    path = tmp_path / f"{ODD}.cpp"
    path.write_text(function())
    with pytest.raises(kernix.KernelRequestError, match=r"pass name=.*\\udce9"):
        kernix.load_cpp_file(path)


# --- What users of other libraries try -------------------------------------------------------------------------------


@pytest.mark.parametrize("out", [(3, 4), 3, (3,), "float32", np.float32, ((3, 4), "float32"), [3, 4, 5]], ids=str)
@pytest.mark.parametrize("array", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_an_out_that_describes_nothing_says_what_it_takes(called, out, array):
    with pytest.raises(TypeError, match=r"called.scale\(\): out \d is .*ShapeDtypeStruct\(\(3, 4\), \"float32\"\)"):
        called.scale(array(X), factor=1, out=out)


def test_a_compiled_module_of_a_path_says_how_to_load():
    for arguments in (("/tmp/a.so",), ("/tmp/a.so", ["f"])):
        with pytest.raises(TypeError, match=r"load_cpp_file.*kernix.load_library"):
            kernix.CompiledModule(*arguments)


FROM_ABOVE = {
    "a load": lambda _: cpp(function(body="nonsense;")),
    "a load that asks nobody": lambda _: cpp(extra_cflags="-O2"),
    "many loads": lambda _: kernix.load_many([{"name": "m", "cpp_sources": function(body="nonsense;")}]),
    "a call": lambda m: m.scale(X, 3),
    "a call that the kernel refuses": lambda m: m.fail(X),
    "a call by JAX": lambda m: m.fail(jnp.asarray(X)),
    "a call under jit": lambda m: jax.jit(m.scale)(X),
    "a gradient": lambda m: m.scale.with_vjp("nothing"),
    "a backward function": lambda m: jax.grad(lambda x: m.check.with_vjp("fail")(x).sum())(jnp.zeros(100, np.float32)),
    "an item": lambda m: m["nothing"],
    "tokens": lambda m: m.arg_spec("nothing"),
    "a handler": lambda m: m.get_handler("nothing"),
    "a target": lambda m: kernix.register_ffi_target("called.add", m, "scale"),
    "a name in the cache": lambda _: kernix.clear_cache(3),
    "a cache": lambda _: kernix.set_cache_dir(3),
}


@pytest.mark.parametrize("action", FROM_ABOVE)
def test_a_traceback_has_at_most_one_frame_of_kernix(called, action):
    errors = (kernix.KernelError, TypeError, KeyError, JE, VE, kernix.KernelBatchError)
    with pytest.raises(errors) as caught:
        FROM_ABOVE[action](called)
    paths = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    package = os.path.dirname(kernix.__file__)
    frames = 1 if action.startswith("a call") or action == "an item" else 0
    assert sum(path.startswith(package) for path in paths) == frames, paths
    if frames and action != "a call under jit":  # where JAX calls what calls kernix
        assert paths[-1].startswith(package)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("step", [1, 2], ids=["plain array", "array to copy"])
def test_ctrl_c_in_a_call_shows_one_frame_of_kernix(step):
    source = function(body="std::raise(SIGINT);").replace(HEAD, f"{HEAD}#include <csignal>\n")
    module = cpp(source)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            module.f(X[::step])
    finally:
        signal.signal(signal.SIGINT, before)
    paths = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert [path.startswith(os.path.dirname(kernix.__file__)) for path in paths] == [False, True]


def test_errors_of_many_loads_have_no_frame_of_kernix():
    loads = [{"name": "m", "cpp_sources": function(body="nonsense;")}, "/no/such/file.cpp"]
    later = kernix.load_cpp_inline("m", function(body="nonsense;"), wait=False).exception()
    for wait in (True, False):
        with pytest.raises(kernix.KernelBatchError) as caught:
            kernix.load_many(loads) if wait else kernix.load_many(loads, wait=False).result()
        assert [traceback.extract_tb(one.__traceback__) for one in (*caught.value.exceptions, later)] == [[], [], []]


def test_the_developer_mode_keeps_all_frames():
    program = "import kernix; kernix.load_cpp_inline('m', 3)"
    lengths = [
        subprocess.run(
            [sys.executable, *mode, "-c", program], capture_output=True, text=True, check=False
        ).stderr.count("  File ")
        for mode in ([], ["-X", "dev"])
    ]
    assert lengths[0] == 1 < lengths[1]


@pytest.mark.parametrize("arguments", ["--help", "--version", "completion bash", "bundle --help"])
def test_output_that_cannot_be_written_is_a_failure_of_kernixctl(arguments):
    command = [_environment.program("kernixctl"), *arguments.split()]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "kernixctl: cannot write the output: No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.stderr == b"", "who closes a pipe has read enough"


def test_setup_knows_its_users_before_it_begins(place):
    done = place.kernixctl("setup", "--dry-run", "--user", "nosuch", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert 'this machine has no user "nosuch"' in done.stderr
