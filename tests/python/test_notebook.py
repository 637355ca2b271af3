# SPDX-License-Identifier: Apache-2.0
"""A real notebook with a real IPython kernel: cells of C++ and CUDA, their functions, progress, errors."""

import inspect
import pathlib
import re
import subprocess
import sys

import kernels
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from notebooks import run_cells
from test_docs import on_page

import kernix

PACKAGE = pathlib.Path(kernix.__file__).parent
CUDA = kernels.VECTOR_ADD.lstrip()


def cpp(value):
    """Return the body of a cell whose function ``value`` writes `value` to its result."""
    return kernels.constant(value).lstrip()


# A body with two errors for each of 20 lines; the first is in line 3 of the cell.
VERY_WRONG = "// @BE f\n" + 'int x = "a", y = "b";\n' * 20 + "void f(BE::Tensor y);"
WRONG = """#include "brainevent/common.h"
// @BE f
void f(const BE::Tensor x, BE::Tensor y) {
    nothing(x);
}"""

# Cell -> what its error ends with. `scale` is from the page.
WRONG_CALLS = {
    "def call(x):\n    return scale(x, factor=2)\ncall(np.arange(4))": (
        "TypeError: cell.scale(): argument 0 (x) takes float32, got int64"
    ),
    "jax.jit(lambda x: scale(x, factor=2))(jnp.arange(4))": (
        "TypeError: cell.scale(): argument 0 (x) takes float32, got int32"
    ),
    "scale(X, factor=2, out=np.zeros(4, np.float32)[::2])": (
        "ValueError: cell.scale(): result 0 is not contiguous in row-major (C) order; "
        "write into a contiguous array and copy it"
    ),
    "failing.f(X)": "KernelCallError: failing.f: threw std::runtime_error: oh",
    'failing["g"]': "KeyError: \"no function 'g' in module 'failing'; it has f\"",
    "failing.g": "AttributeError: no function 'g' in module 'failing'; it has f",
    'failing.arg_spec("g")': "KeyError: \"no function 'g' in module 'failing'; it has f\"",
    'failing.f.with_vjp("g")': "KeyError: \"no function 'g' in module 'failing'; it has f\"",
    "failing.f.with_vjp(failing.f, argnums=3)": (
        "ValueError: argnums=[3] names an argument that failing.f(x: float32, /, *, out=None) does not have"
    ),
    "jax.grad(lambda x: scale.with_vjp('scale')(x, factor=2)[0])(jnp.ones(1))": (
        "TypeError: cell.scale() takes 1 array, but 2 were given: y is a result, which out= describes (inputs are a "
        "BE::In and a const BE::Tensor); it is cell.scale(x: float32, /, *, factor: float32, out=None)"
    ),
    "kernix.load_cpp_inline('m', 3)": "TypeError: cpp_sources must be a list of strings, not 3",
    "kernix.load_cpp_file('missing.cpp')": "FileNotFoundError: [Errno 2] No such file or directory: 'missing.cpp'",
    "failing.f(jnp.asarray(X))": "JaxRuntimeError: INTERNAL: failing.f: threw std::runtime_error: oh",
}

CELLS = {
    "start": """%load_ext kernix
import sys, tempfile, jax, numpy as np, kernix, kernix.loading.console
kernix.loading.console._PROGRESS_AFTER_SECONDS = 0
X = np.zeros(1, np.float32)
def jit():
    return jax.jit(lambda x: value(jax.numpy.asarray(x)))""",
    "unnamed": f"%%cpp\n{cpp(1)}",
    "call": "old = jit()\nfloat(value(X)[0]), float(old(X)[0])",
    "unnamed again": f"%%cpp\n{cpp(2)}",
    "call again": "float(value(X)[0]), float(old(X)[0]), float(jit()(X)[0])",
    "named": f"%%cpp --extra-cflags=-O0 mine -D 'V=f(7)' --defines G={{3 + 1}} -v\n#define f(x) (x + G)\n{cpp('V')}",
    "module": "type(mine).__name__, mine.name, value is mine.value, float(value(X)[0])",
    "debug": f"%%cpp debug --debug\n#ifdef __OPTIMIZE__\n#error optimised\n#endif\n{cpp(5)}",
    "debug after": "value is debug.value",
    "cuda": f"%%cuda gpu --compute-capability sm_90 -O 1 --keep\n{CUDA}",
    "cuda module": "vector_add is gpu.vector_add, gpu.platform, '.target sm_90' in gpu.ptx()",
    "cuda again": f"%%cuda gpu --compute-capability sm_90\n{CUDA}\n// changed",
    "cuda module again": "vector_add is gpu.vector_add, 'changed' in gpu.source()",
    "cuda unchanged": f"%%cuda gpu --compute-capability sm_90\n{CUDA}\n// changed",
    "wrong arch": f"%%cuda gpu --compute-capability sm_900\n{CUDA}",
    "wrong: no arch": f"%%cuda gpu --compute-capability ,\n{CUDA}",
    "wrong: no value": f"%%cpp -D 'V={{nope}}'\n{cpp('V')}",
    "wrong: its own name": f"%%cpp -D 'V={{zero}}'\n{cpp('target_prefix + build_directory')}",
    "wrong: no library": '%%cpp\nextern "C" void inflate();\n// @BE f\nvoid f(BE::Out<float>) { inflate(); }',
    "wrong": f"%%cpp\n{WRONG}",
    "command": "sys.last_value.command",
    "command again": "!{sys.last_value.save(tempfile.mkdtemp())}",
    "very wrong": f"%%cpp\n{VERY_WRONG}",
    "all of it": "sys.last_value.compiler_output.count('error: ')",
    "wrong cuda": f"%%cuda --compute-capability=sm_90\n{WRONG}",
    "wrong load": "def load(source):\n    return kernix.load_cpp_inline('loaded', source)\nload('// @BE')",
    "wrong: no annotation": "%%cuda --compute-capability sm_90\n__global__ void f(float* y) { *y = 1; }",
    "no such option": "%%cuda --nonsense\nint x;",
    "value apart": "%%cpp --extra-cflags -Wall\nint x;",
    "bad name": "%%cpp my-kernel\nint x;",
    "bad level": "%%cuda -O x\nint x;",
    "open quote": "%%cpp -D 'x\nint x;",
    **{f"page {i}": cell for i, cell in enumerate(on_page("notebook.md", "ipython"))},
    "failing": '%%cpp failing\n// @BE f\nvoid f(BE::In<float> x, BE::Out<float> y) { throw std::runtime_error("oh"); }',
    **{f"wrong call {i}": cell for i, cell in enumerate(WRONG_CALLS)},
    "help": "print(get_ipython().find_cell_magic('cuda').__doc__)",
}


@pytest.fixture(name="cells", scope="module")
def cells_fixture(place, tmp_path_factory):
    """All cells, run once by one kernel."""
    return run_cells(CELLS, tmp_path_factory.mktemp("jupyter"), JAX_PLATFORMS="cpu")


def test_cells_without_mistakes_report_none(cells):
    names = [name for name in CELLS if "wrong" not in name]
    assert {name: cells[name].error for name in names} == dict.fromkeys(names)


def test_functions_are_in_the_notebook_by_name(cells):
    assert cells["call"].kept == ["(1.0, 1.0)"]
    assert cells["module"].kept == ["('CompiledModule', 'mine', True, 11.0)"]
    assert cells["debug after"].kept == ["True"]
    assert cells["cuda module"].kept == ["(True, 'CUDA', True)"]


def test_running_a_cell_again_replaces(cells):
    assert cells["call again"].kept == ["(2.0, 2.0, 2.0)"]
    assert cells["cuda module again"].kept == ["(True, True)"]


def test_warnings_point_at_the_cell(cells):
    assert re.search(r"ipykernel\S+:1: KernelWarning: 'gpu.vector_add' was replaced", cells["cuda again"].printed)
    assert "was replaced" not in cells["cuda unchanged"].printed


def test_progress_becomes_the_result(cells):
    *progress, _ = cells["cuda"].displayed
    assert progress
    assert [line for line in progress if not line.startswith("kernix: gpu: ")] == []
    assert re.fullmatch(r"gpu: vector_add \(built in \d+ ms: new source\)", "".join(cells["cuda"].kept))
    assert cells["wrong"].kept == ["cell: not loaded"]


def test_an_unchanged_cell_says_so(cells):
    assert "".join(cells["cuda unchanged"].kept) == "gpu: vector_add (unchanged)"


def test_errors_name_the_option(cells):
    assert "sm_900" in cells["wrong arch"].error
    assert '--compute-capability "," names no architecture' in cells["wrong: no arch"].error
    assert "pass -lz in --extra-ldflags" in cells["wrong: no library"].error


def test_errors_name_what_python_has_not_put_into_the_line(cells):
    first = cells["wrong: no value"].error.splitlines()[0]
    assert first.endswith("{nope} is what the line of the magic says: Python has no such value")
    assert "target_prefix" in cells["wrong: its own name"].error
    assert "{zero}" not in cells["wrong: its own name"].error.splitlines()[0]


def test_errors_are_short_and_name_the_lines_of_the_cell(cells):
    wrong = cells["wrong"].error
    assert "cell:5:5: error: 'nothing' was not declared" in wrong
    assert "    5 |     nothing(x);" in wrong
    assert len(wrong.splitlines()) <= 10
    assert "KernelCompilationError: compile failed: cell(5): error: " in cells["wrong cuda"].error
    assert len(cells["wrong cuda"].error.splitlines()) <= 10
    assert "unit.cc" in cells["command"].kept[0]
    assert "cell:5:5: error: 'nothing' was not declared" in cells["command again"].printed
    assert "unit.cc" not in wrong


def test_a_cell_without_an_annotation_is_told_what_a_cell_needs(cells):
    lines = cells["wrong: no annotation"].error.splitlines()
    message = "cell: no '// @BE <function>' annotation says what to export. Add one above the function"
    assert lines == [f"KernelRequestError: {message}"]


def test_long_errors_are_cut(cells):
    lines = cells["very wrong"].error.splitlines()
    assert "cell:3:9: error: " in lines[0]
    assert len(lines) <= 13
    assert re.match(r"\.\.\. \d+ more lines are in sys.last_value.compiler_output", lines[-1])
    assert cells["all of it"].kept == ["40"]


def test_errors_of_loads_show_the_frames_of_the_user(cells):
    error = cells["wrong load"].error
    assert "----> 2     return kernix.load_cpp_inline('loaded', source)" in error
    assert "----> 3 load('// @BE')" in error
    assert error.splitlines()[-1].startswith("KernelRequestError: loaded: ")
    assert "python/kernix" not in error
    assert "_load_cpp" not in error


@pytest.mark.parametrize("call", WRONG_CALLS)
def test_errors_of_calls_show_the_frames_of_the_user(cells, call):
    error = cells[f"wrong call {list(WRONG_CALLS).index(call)}"].error
    assert error.splitlines()[-1].endswith(WRONG_CALLS[call])
    for number, line in enumerate(call.splitlines(), start=1):
        assert line.startswith("def ") or f"----> {number} {line}" in error
    assert "File " not in error  # of kernix, of JAX
    assert len(error.splitlines()) <= 12


def test_cells_of_the_page_print_what_their_comments_say(cells):
    printing = [name for name in CELLS if name.startswith("page") and CELLS[name].startswith("print(")]
    assert printing
    for name in printing:
        assert cells[name].printed.splitlines() == re.findall(r"^print\(.*  # (.*)$", CELLS[name], re.MULTILINE)


WRONG_LINES = {
    "no such option": "UsageError: %%cuda: unrecognized arguments: --nonsense. %%cuda? lists the options",
    "value apart": "expected one argument (join a value that begins with - to its option: --extra-cflags=-Wall)",
    "bad name": "'my-kernel' cannot be the name of a variable",
    "bad level": "argument -O/--optimization-level: invalid int value: 'x'",
    "open quote": "%%cpp: No closing quotation",
}


@pytest.mark.parametrize("name", WRONG_LINES)
def test_wrong_line(cells, name):
    assert WRONG_LINES[name] in cells[name].printed
    assert len(cells[name].printed.splitlines()) == 1


def test_help_names_the_parameters_of_loads(cells):
    options = re.findall(r"(?<= )--(?!no-)([a-z-]+)", cells["help"].printed)
    parameters = inspect.signature(kernix.load_cuda_inline).parameters
    assert len(set(options)) > 10
    assert {option.replace("-", "_") for option in options} <= set(parameters)


@pytest.mark.parametrize("use_jedi", [True, False])
def test_options_of_cells_complete(use_jedi):
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "kernix")
    shell.Completer.use_jedi = use_jedi

    def completed(text):
        with provisionalcompleter():
            return [one.text for one in shell.Completer.completions(text, len(text))]

    assert {"--debug", "--defines", "--policy", "--verbose"} < set(completed("%%cpp --"))
    assert "--compute-capability" in completed("%%cuda mine --keep -D A=1 --comp")
    assert "--compute-capability" not in completed("%%cpp --comp")


def test_ipython_on_a_terminal(place, tmp_path):
    lines = ["%load_ext kernix", f"get_ipython().run_cell_magic('cpp', 'm', {cpp(3)!r})", "print(m.value is value)"]
    command = [sys.executable, "-m", "IPython", "--quick", "--colors=nocolor", "-c", "\n".join(lines)]
    environment = place.environment | {"IPYTHONDIR": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert re.fullmatch(r"m: value \(.*\)\nTrue\n", done.stdout), done.stdout + done.stderr
