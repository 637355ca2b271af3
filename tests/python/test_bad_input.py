# SPDX-License-Identifier: Apache-2.0
"""Every mistake gets a message of its own, and leaves daemon and cache as they were."""

import os
import re
import sys

import kernels
import pytest

import kernix

pytestmark = pytest.mark.usefixtures("daemon_and_cache_as_they_were")

TENSORS = "const BE::Tensor x, BE::Tensor y"


def function(signature=TENSORS, name="f", annotation=None):
    """Return a source with one function."""
    mark = f"// @BE {annotation}\n" if annotation else ""
    return f'#include "brainevent/common.h"\n{mark}void {name}({signature}) {{}}\n'


BAD_REQUESTS = {
    "unknown token": (function(), {"f": ["arg", "return"]}, "function 'f': unknown token 'return'"),
    "token that is nearly one": (function(), {"f": ["arg", "ret", "Stream"]}, "unknown token 'Stream'"),
    "duplicate stream": (
        function(TENSORS + ", int64_t a, int64_t b"),
        {"f": ["arg", "ret", "stream", "stream"]},
        "function 'f': duplicate 'stream'",
    ),
    "no ret": (function("const BE::Tensor x"), {"f": ["arg"]}, "function 'f': no 'ret'"),
    "no ret, inferred": (function("const BE::Tensor x"), ["f"], ":2: function 'f': no 'ret'"),
    "no identifier": (function(), {"not a name": ["arg", "ret"]}, r"name 'not a name' is not a C\+\+ identifier"),
    "keyword": (function(), {"class": ["arg", "ret"]}, r"'class' is a C\+\+ keyword"),
    "attribute that XLA cannot pass": (
        function(TENSORS + ", float a"),
        {"f": ["arg", "ret", "attr.a:text"]},
        "'attr.a:text' has the type 'text', which XLA cannot pass",
    ),
    "attribute without a name": (function(), {"f": ["arg", "ret", "attr.:int32"]}, "attribute '', which is not"),
    "attribute that is not in the signature": (function(), {"f": ["arg", "ret", "attr.gone"]}, "no parameter 'gone'"),
    "unreadable parameter": (
        function(TENSORS + ", std::vector<int> weights"),
        ["f"],
        ":2: .*'weights' .*cannot read: a parameter is",
    ),
    "unreadable parameter of an annotation": (
        "#include <cstdio>\n" + function(TENSORS + ", FILE* weights", annotation="f"),
        None,
        ":4: .*'weights' .*cannot read: a pointer",
    ),
    "function that is not there": (function(), ["g"], "'g': no signature 'void g"),
    "annotation without a function": (function(annotation="g"), None, "nothing here defines 'g'"),
    "annotation with a bad token": (function(annotation="f arg rett"), None, ":2: function 'f': unknown token 'rett'"),
    "no annotation": (function(), None, "no '// @BE <function>' annotation"),
    "empty source": ("", None, "the source is empty"),
    "source of blanks": ("  \n\t\n", {"f": ["arg", "ret"]}, "the source is empty"),
    "no function": (function(), [], "functions is empty"),
    "function named twice": (function(), ["f", "f"], "'f' is exported twice"),
    "no function at all": (function(), {}, "functions is empty"),
    "name that not every compiler takes": (function(), {"caf\u00e9": ["arg", "ret"]}, r"is not a C\+\+ identifier"),
    "name with code in it": (function(), {"f(); int x": ["arg", "ret"]}, r"'f\(\); int x' is not a C\+\+ identifier"),
    "name of an instance with code in it": (
        function(),
        {"f<1>(); g<2>": ["ret"]},
        "has template arguments that kernix cannot",
    ),
    "annotation of the same function twice": (
        function(annotation="f") + "// @BE f\n",
        None,
        ":4: function 'f' is exported twice",
    ),
    "attribute that is no identifier": (function(), {"f": ["ret", "attr.a-b:int32"]}, "attribute 'a-b', which is not"),
    "attribute of a name from elsewhere": (function(), {"f": ["ret", "attr.\u00e9:int32"]}, "which is not"),
    "attribute named twice": (
        function(TENSORS + ", int a, int b"),
        {"f": ["arg", "ret", "attr.a", "attr.a"]},
        "duplicate attribute 'a'",
    ),
    "complex attribute": (
        function(TENSORS + ", float a"),
        {"f": ["arg", "ret", "attr.a:complex64"]},
        "'complex64', which XLA cannot pass.*real and imaginary",
    ),
    "type of C++ instead of an attribute's": (
        function(TENSORS + ", float a"),
        {"f": ["arg", "ret", "attr.a:float"]},
        "'float', which XLA cannot pass.*float32",
    ),
    "attribute whose parameter is a pointer": (
        function(TENSORS + ", float* a"),
        {"f": ["arg", "ret", "attr.a"]},
        r":2: parameter 3 'a' .*'float\* a'.*pointer",
    ),
    "attribute whose parameter XLA cannot pass": (
        function(TENSORS + ", std::complex<float> a"),
        {"f": ["arg", "ret", "attr.a"]},
        ":2: parameter 3 'a' .*real and imaginary",
    ),
    "attribute of a function that is elsewhere": (
        "#include <cmath>\n",
        {"f": ["arg", "ret", "attr.a"]},
        "function 'f': nothing in .* defines it",
    ),
    "too few tokens": (
        function(TENSORS + ", float a"),
        {"f": ["arg", "ret"]},
        "has 3 parameters, but its arg_spec has 2",
    ),
    "too many tokens": (function(), {"f": ["arg", "arg", "ret"]}, "has 2 parameters, but its arg_spec has 3"),
    "number where a tensor is": (
        function(TENSORS + ", float a"),
        {"f": ["arg", "attr.a", "ret"]},
        "takes 'BE::Tensor y' as parameter 2, but its arg_spec says 'attr.a:float32'",
    ),
    "tensor where a number is": (
        function(TENSORS + ", float a"),
        {"f": ["arg", "ret", "ret"]},
        "takes 'float a' as parameter 3, but its arg_spec says 'ret'",
    ),
    "result by return": (function().replace("void f", "int f"), ["f"], ":2: function 'f' must return void"),
    "overloaded function": (
        function() + "void f(BE::Tensor y) {}\n",
        ["f"],
        "'f' is overloaded .*:2, .*:3.*name of its own",
    ),
    "one of several namespaces": (
        f"namespace a {{ void f({TENSORS}); }}\nnamespace b {{ void f({TENSORS}); }}\n",
        ["f"],
        "'f' is in several namespaces .*name the namespace, as in 'a::f'",
    ),
    "namespace that has no such function": (
        f"namespace a {{ void f({TENSORS}); }}\n",
        ["b::f"],
        "no signature 'void b::f",
    ),
    "template without its arguments": (
        f"template <class T> void f({TENSORS}, T z) {{}}\n",
        ["f"],
        "'f' is a template: name the instance to export, such as 'f<float>'",
    ),
    "instance that takes what XLA cannot pass": (
        f"template <class T> void f({TENSORS}, T z) {{}}\n",
        ["f<int*>"],
        r":1: parameter 3 'z' of function 'f<int\*>' .*pointer",
    ),
    "instances of one name": (
        f"template <int n> void f({TENSORS}) {{}}\n",
        ["f<1>", "f<-1>"],
        r"'f<1>' and 'f<-1>' both have the name 'f_1'.*such as 'void f_1_too\(...\) { f<-1>\(...\); }'",
    ),
    "instances of one name, annotated": (
        f"template <int n> void f({TENSORS}) {{}}\n// @BE f<1>\n// @BE f<-1>\n",
        None,
        ":3: 'f<1>' and 'f<-1>' both have the name 'f_1'",
    ),
    "instances that take too much to read": (
        "".join(
            f"struct V{i};\ntemplate <class T, int n> void f({TENSORS}, {'T, ' * 200} V{i}& v) {{}}\n"
            for i in range(16)
        ),
        {f"f<int, {i}>": ["arg", "ret"] for i in range(4096)},
        "template instances of this load have more than 1000000 words and signs. Load fewer",
    ),
    "source that takes too much to read": (
        function() + "const char table[] = {" + "1," * 500_000 + "};\n",
        ["f"],
        "the sources of this load have more than 1000000 words, numbers and signs. Put tables",
    ),
    "name in scratch that is a tensor and an attribute": (
        function("const BE::Tensor x, BE::Tensor y, int arg0, BE::Scratch s"),
        {"f": ["arg", "ret", "attr.arg0", "scratch:4*arg0"]},
        "'scratch:4\\*arg0' names 'arg0', which is both a tensor .* and an attribute: give the attribute another name",
    ),
    "scratch with a bracket alone": (
        function(TENSORS + ", BE::Scratch s"),
        {"f": ["arg", "ret", "scratch:]"]},
        r"'scratch:\]': its brackets do not match",
    ),
    "scratch of arguments that are not variadic": (
        function(TENSORS + ", BE::Scratch s"),
        {"f": ["arg", "ret", "scratch:args[0].nbytes()"]},
        r"names 'args', which does not exist: .*where the function has these tokens, are args\[i\]",
    ),
    "const that a macro decides": (
        "#ifdef ANYTHING\n#define IN const\n#else\n#define IN\n#endif\n" + function("IN BE::Tensor x, BE::Tensor y"),
        ["f"],
        ":7: function 'f' has an #if among its parameters, or a macro that an #if decides",
    ),
    "const that two declarations do not agree about": (
        "void f(BE::Tensor x, BE::Tensor y);\n" + function(),
        ["f"],
        r"'f' is declared twice \(.*:1, .*:3\), but a BE::Tensor is const in only one of them",
    ),
    "another Tensor": (
        function("const Tensor x, BE::Tensor y").replace("void", "struct Tensor {};\nvoid"),
        ["f"],
        ":3: parameter 1 'x' .*the source declares that type",
    ),
    "attribute that is not ASCII": (
        function("BE::Tensor y, float \u03bb"),
        ["f"],
        ":2: parameter 2 '\u03bb' .*an attribute's name may contain only the letters a to z.*with another name",
    ),
    "flag that takes over the output": (function(annotation="f"), None, '"-o" is not allowed', ["-o", "elsewhere"]),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_bad_request(case, fresh_name):
    source, functions, message, *flags = BAD_REQUESTS[case]
    with pytest.raises(kernix.KernelRequestError, match=message):
        kernix.load_cpp_inline(fresh_name, source, functions, extra_cflags=flags[0] if flags else None)
    assert not any(target.startswith(fresh_name) for target in kernix.list_registered_targets())


@pytest.mark.parametrize("name", ["", None, 7], ids=repr)
def test_name_of_a_module(name):
    with pytest.raises(kernix.KernelRequestError, match=f"name must be a non-empty string, not {name!r}"):
        kernix.load_cpp_inline(name, kernels.ADD_ONE)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cpp_sources": 3}, "cpp_sources must be a list of strings, not 3"),
        ({"cpp_sources": [3]}, "cpp_sources must be a list of strings, not .3."),
        ({"extra_cflags": 3}, "extra_cflags must be a list of strings, not 3"),
        ({"extra_ldflags": "-lm"}, "extra_ldflags must be a list of strings, not '-lm'"),
        ({"extra_include_paths": 3}, "extra_include_paths must be a list of folders, not 3"),
    ],
    ids=str,
)
def test_parameters_that_are_no_lists(parameters, message, fresh_name):
    with pytest.raises(TypeError, match=message):
        kernix.load_cpp_inline(fresh_name, **{"cpp_sources": kernels.ADD_ONE, **parameters})
    with pytest.raises(TypeError, match="path must be a list of files, not 3"):
        kernix.load_cpp_file(3)


def test_annotation_error_names_the_line(fresh_name):
    source = "\n\n" + function(annotation="f arg rett")
    with pytest.raises(kernix.KernelRequestError, match=f"{fresh_name}:4"):
        kernix.load_cpp_inline(fresh_name, source)


def test_compile_error_shows_the_users_line_and_the_caret(fresh_name, counters):
    source = kernels.ADD_ONE.replace("in[i] + 1.0f", "in[i] + one")
    line = 1 + source[: source.index("+ one")].count("\n")
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cpp_inline(fresh_name, source)
    output = caught.value.compiler_output
    assert f"{fresh_name}:{line}:" in output
    assert "out[i] = in[i] + one" in output
    assert any(text.strip().strip("|").strip().startswith("^") for text in output.splitlines())
    assert "g++" in caught.value.command or "c++" in caught.value.command
    assert f"{fresh_name}:{line}:" in str(caught.value)
    assert counters.failures == 1


def test_compile_error_in_a_file_shows_its_path(tmp_path):
    path = tmp_path / "broken.cpp"
    path.write_text(kernels.ADD_ONE.replace("in[i] + 1.0f", "in[i] + one"))
    with pytest.raises(kernix.KernelCompilationError) as caught:
        kernix.load_cpp_file(path)
    assert f"{path}:" in str(caught.value)


def test_link_error(fresh_name):
    source = kernels.constant("missing()").replace("// @BE", "float missing();\n// @BE")
    with pytest.raises(kernix.KernelCompilationError, match="missing"):
        kernix.load_cpp_inline(fresh_name, source)


def test_library_that_the_linker_cannot_find(fresh_name):
    with pytest.raises(kernix.KernelCompilationError, match="no_such_library"):
        kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, extra_ldflags=["-lno_such_library"])


def test_header_that_is_not_there(fresh_name):
    with pytest.raises(kernix.KernelCompilationError, match=r"no_such_header\.h"):
        kernix.load_cpp_inline(fresh_name, '#include "no_such_header.h"\n' + kernels.ADD_ONE)


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.cpp"):
        kernix.load_cpp_file(tmp_path / "gone.cpp")


def test_folder_without_sources(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(kernix.KernelRequestError, match=rf"\*\.cu.*{tmp_path}|{tmp_path}.*\*\.cu"):
        kernix.load_cuda_dir(tmp_path)


@pytest.mark.parametrize("functions", [{1: ["ret"]}, {"f": [1]}, [b"f"], 7], ids=repr)
def test_functions_of_another_type(functions, fresh_name):
    with pytest.raises((TypeError, kernix.KernelRequestError), match="functions"):
        kernix.load_cpp_inline(fresh_name, function(), functions)


# --- The surroundings ------------------------------------------------------------------------------------------------


def test_no_nvcc(monkeypatch, tmp_path):
    (tmp_path / "g++").symlink_to("/usr/bin/g++")
    for variable in ("CUDA_HOME", "CUDA_PATH", "BRAINEVENT_NVCC_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if not os.path.isdir(f"{folder}/nvidia")])
    _skip_with_toolkit()
    with pytest.raises(kernix.KernelToolchainError, match="no nvcc found.*NVIDIA's wheels in .* \\(none\\)"):
        kernix.load_cuda_inline("surroundings", kernels.VECTOR_ADD, compute_capability="sm_90", auto_register=False)


def _skip_with_toolkit():
    if os.path.exists("/usr/local/cuda/bin/nvcc"):
        pytest.skip("/usr/local/cuda has an nvcc that is always found")


def test_no_host_compiler(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(kernix.KernelToolchainError, match=r"g\+\+"):
        kernix.load_cpp_inline("surroundings", kernels.ADD_ONE)


def test_host_compiler_that_does_not_exist(monkeypatch):
    monkeypatch.setenv("CXX", "/no/such/compiler")
    with pytest.raises(kernix.KernelToolchainError, match="/no/such/compiler"):
        kernix.load_cpp_inline("surroundings", kernels.ADD_ONE)


def test_host_compiler_too_new_for_nvcc(monkeypatch, tmp_path):
    compiler = tmp_path / "g++"
    compiler.write_text('#!/bin/sh\nexec /usr/bin/g++ -U__GNUC__ -D__GNUC__=99 "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(kernix.KernelToolchainError, match="does not support GCC"):
        kernix.load_cuda_inline("surroundings", kernels.VECTOR_ADD, compute_capability="sm_90")


def test_unwritable_store(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("KERNIX_CACHE_DIR", str(tmp_path / "file" / "store"))
    with pytest.raises(kernix.KernelResourceError, match="store"):
        kernix.load_cpp_inline("surroundings", kernels.ADD_ONE)


def test_unwritable_cache_dir(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(kernix.KernelResourceError, match="file"):
        kernix.set_cache_dir(tmp_path / "file" / "store")


def test_request_over_the_limit(own_place, run_python):
    message = run_python("load_too_much.py", where=own_place, KERNIX_MAX_REQUEST_BYTES="100000")
    assert message.startswith("KernelRequestError")
    assert "100000" in message
    assert own_place.stats()["entries"] == 1  # of the small one that followed


def test_job_over_the_time_limit(own_place, run_python):
    message = run_python("load_too_long.py", where=own_place, KERNIX_JOB_TIMEOUT="1s")
    assert message.startswith("KernelResourceError")
    assert "job_timeout" in message
    assert "1 s" in message or "1s" in message
    assert own_place.stats()["entries"] == 0


def test_unreachable_address(monkeypatch, tmp_path):
    monkeypatch.setenv("KERNIX_ADDRESS", f"unix:{tmp_path}/nobody.sock")
    with pytest.raises(kernix.KernelDaemonError, match=r"nobody\.sock"):
        kernix.load_cpp_inline("surroundings", kernels.ADD_ONE)


WRONG_TYPES = {
    "compute_capability": (90, 'compute_capability must be a string such as "sm_90" or "9.0", not 90'),
    "optimization_level": ("fast", "optimization_level must be an integer, not 'fast'"),
    "ninja_workers": ("4", "ninja_workers must be an integer or None, not '4'"),
    "use_fast_math": ("no", "use_fast_math must be a bool, not 'no'"),
    "verbose": ("yes", "verbose must be a bool, not 'yes'"),
    "force_rebuild": ("no", "force_rebuild must be a bool, not 'no'"),
    "policy": (1, "policy must be a string, not 1"),
    "extra_include_paths": ([5], "extra_include_paths: 5 is not the path of a folder"),
    "build_directory": (5, "build_directory: 5 is not the path of a folder"),
    "target_prefix": (5, "target_prefix must be a string, not 5"),
}


@pytest.mark.parametrize("option", WRONG_TYPES)
def test_an_option_of_a_wrong_type_is_named(option):
    value, message = WRONG_TYPES[option]
    with pytest.raises(TypeError, match=re.escape(message)):
        kernix.load_cuda_inline("wrong", kernels.VECTOR_ADD, **{option: value})


MISSING = {
    "cblas_sdot": "It may be part of BLAS: pass -lopenblas in extra_ldflags",
    "omp_get_max_threads": "It may be part of OpenMP: compile with -fopenmp",
}


@pytest.mark.parametrize("symbol", MISSING)
def test_a_symbol_of_a_known_library_names_the_library(symbol):
    source = f'extern "C" int {symbol}();\n' + function(name="f").replace("{}", f"{{ {symbol}(); }}")
    with pytest.raises(kernix.KernelCompilationError, match=re.escape(MISSING[symbol])) as caught:
        kernix.load_cpp_inline("missing", source, {"f": ["arg", "ret"]})
    assert f"undefined reference to `{symbol}'" in str(caught.value)
