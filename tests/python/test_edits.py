# SPDX-License-Identifier: Apache-2.0
"""Which steps of a CUDA build an edit runs again: what it does not concern is taken from the build before."""

import functools
import time

import kernels
import pytest

import kernix

SOURCE = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
__constant__ float factor = 2;
__device__ float twice(float x) { return factor * x; }
__global__ void scale_kernel(float* x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] = twice(x[threadIdx.x]);
}
__global__ void shift_kernel(float* x) { x[threadIdx.x] += 1; }
constexpr int block() { return 32; }
constexpr int kBlock = block();
__global__ void fill_kernel(float* x) {
  __shared__ float all[kBlock];
  all[threadIdx.x] = 1;
  x[threadIdx.x] = all[31 - threadIdx.x];
}
static int grid(int n) { return (n + 31) / 32; }
// @BE scale ret stream
void scale(BE::Tensor x, cudaStream_t stream) {
  scale_kernel<<<grid(x.numel()), block(), 0, stream>>>(x.data_ptr<float>(), x.numel());
}
// @BE shift_all
void shift_all(BE::Out<float> x, cudaStream_t stream) {
  shift_kernel<<<1, x.size() > 0 ? 32 : 1, 0, stream>>>(x.data());
}
"""
TEMPLATES = SOURCE.replace(
    "__global__ void shift_kernel",
    "template <int by> __global__ void add_kernel(float* x) { x[threadIdx.x] += by; }\n__global__ void shift_kernel",
).replace("scale_kernel<<<", "add_kernel<1><<<1, 1, 0, stream>>>(x.data_ptr<float>());\n  scale_kernel<<<")
DEVICE_STEPS = ("cicc compute_90", "ptxas sm_90")

# A macro that the runtime header itself asks for: kernixd then takes the whole header, from the first kernel on.
WHOLE_HEADER = ["-DCUDA_ENABLE_DEPRECATED"]


@pytest.fixture(name="counter")
def counter_fixture(place):
    """A function that returns how many compiles kernixd counts as having gone a way."""

    def counter(way):
        lines = place.kernixctl("metrics").stdout.splitlines()
        return sum(int(line.split()[-1]) for line in lines if f'how="{way}"' in line)

    return counter


@pytest.fixture(name="load")
def load_fixture(fresh_name, learn):
    """A function that loads a CUDA module without JAX, once kernixd knows what its headers declare."""
    kernix.load_cpp_inline(fresh_name, kernels.constant(4501), auto_register=False)  # starts kernixd
    learn(TEMPLATES)
    return functools.partial(load_cuda, fresh_name)


def load_cuda(name, source, flags, number=0, compute_capability="9.0", **how):
    """Load a CUDA module without JAX."""
    return kernix.load_cuda_inline(
        f"{name}_{number}",
        source,
        auto_register=False,
        compute_capability=compute_capability,
        extra_cuda_cflags=list(flags),
        **how,
    )


@pytest.fixture(name="learn")
def learn_fixture(fresh_name, counter):
    """A function that has kernixd learn what a source needs of the runtime header."""

    def learn(source):
        for number in range(1, 30):
            before = counter("whole_not_known_yet")
            load_cuda(fresh_name, f"{source}\nstatic const int number = {number};\n", [], number)
            if counter("whole_not_known_yet") == before:
                break
            time.sleep(1)

    return learn


def device_steps_run(module):
    """Return which steps of the device's code a build has run."""
    ways = {step.name: step.how for step in module.trace().steps}
    return [step for step in DEVICE_STEPS if ways[step] == "run"]


@pytest.fixture(name="flags", params=[[], WHOLE_HEADER], ids=["parts of the header", "whole header"])
def flags_fixture(request):
    """Flags with which kernixd takes one or the other."""
    return request.param


def edit(source, before, after):
    """Return the source after an edit that did change it."""
    assert source.count(before) == 1
    return source.replace(before, after)


def test_what_devices_do_not_see_runs_nothing_for_them(load, flags):
    first = load(SOURCE, flags)
    edits = {
        "a comment": edit(SOURCE, "factor * x;", "factor /* twice */ * x;"),
        "a comment on a line of its own": edit(SOURCE, "__device__", "// Doubles.\n/* Really. */\n__device__"),
        "empty lines": edit(SOURCE, "__constant__", "\n" * 20 + "__constant__"),
        "white space": edit(SOURCE, "if (threadIdx.x < n) x", "if  ( threadIdx.x<n )\n    x"),
        "the host's code": edit(SOURCE, "scale_kernel<<<", "int spare = 3;\n  if (spare > 2) scale_kernel<<<"),
        "the code of a typed one": edit(SOURCE, "? 32 : 1,", "? 64 : 1,"),
        "a host function": edit(SOURCE, "(n + 31) / 32", "n / 32 + (n % 32 != 0)"),
    }
    for what, source in edits.items():
        module = load(source, flags)
        assert device_steps_run(module) == [], what
        assert module.key != first.key, what


def test_host_functions_that_device_code_names_run_nothing_for_devices(load):
    """What refers to a host function makes no device code of it, and neither does what only has its name."""
    flags = WHOLE_HEADER  # these names need parts of it that `load` has not made known
    source = edit(
        SOURCE,
        "__global__ void shift_kernel",
        """int shift(int n) { return 2 * n; }
int size(int n) { return 3 * n; }
int type(int n) { return 4 * n; }
struct Span {
  int length;
  __device__ int size() const { return length; }
};
__host__ __device__ int call(int (*function)(int), int n) { return n > 64 ? function(n) : n; }
__host__ __device__ int maybe_shift(int n) { return call(shift, n); }
__global__ void named_kernel(float* x, int shift) {
  decltype(type(1)) type = Span{shift}.size();
  x[threadIdx.x] += type + maybe_shift(shift);
}
__global__ void shift_kernel""",
    )
    source = edit(
        source,
        "shift_kernel<<<",
        "named_kernel<<<1, 32, 0, stream>>>(x.data(), shift(size(type(1))));\n  shift_kernel<<<",
    )
    load(source, flags, keep=True)
    for body in ("2 * n", "3 * n", "4 * n"):
        edited = edit(source, body, "n > 5 ? 77777 * n : n")
        module = load(edited, flags, keep=True)
        assert device_steps_run(module) == [], body
        assert module.ptx() == load(edited, flags, keep=True, force_rebuild=True).ptx(), body


def test_a_host_function_that_is_declared_for_devices_is_compiled_again(load, flags):
    flags = [*flags, "-w"]  # nvcc warns of such a function
    source = edit(SOURCE, "__constant__", "__device__ int(grid)(int);\n__constant__")
    source = edit(edit(source, "static int grid", "int grid"), "grid(x.numel())", "4")
    source = edit(source, "+= 1;", "+= grid(threadIdx.x);")
    assert "cicc compute_90" in device_steps_run(load(source, flags))
    assert device_steps_run(load(edit(source, "__constant__", "\n__constant__"), flags)) == []
    assert "cicc compute_90" in device_steps_run(load(edit(source, "(n + 31) / 32", "n / 32"), flags))


def test_what_devices_see_is_compiled_again(load, flags):
    load(SOURCE, flags)
    edits = {
        "a kernel": edit(SOURCE, "+= 1;", "+= 2;"),
        "a device function": edit(SOURCE, "factor * x", "factor * x * x"),
        "a variable": edit(SOURCE, "factor = 2", "factor = 3"),
        "a constant of both": edit(SOURCE, "return 32;", "return 64;"),
        "a kernel more": edit(SOURCE, "constexpr int block", "__global__ void empty_kernel() {}\nconstexpr int block"),
    }
    for what, source in edits.items():
        assert "cicc compute_90" in device_steps_run(load(source, flags)), what


def test_a_host_function_counts_where_it_makes_device_code(load, flags):
    load(TEMPLATES, flags)
    other = load(edit(TEMPLATES, "add_kernel<1>", "add_kernel<2>"), flags)
    assert "cicc compute_90" in device_steps_run(other)
    moved = load(edit(TEMPLATES, "__constant__", "// A comment.\n__constant__"), flags)
    assert device_steps_run(moved) == []


def test_a_host_function_counts_where_device_code_is_kept_for_other_units(load):
    place = "template <typename T> __device__ T* place() { static T value; return &value; }\n// @BE scale"
    use = "static_cast<void>(&place<int>);\n  scale_kernel<<<"
    source = edit(edit(SOURCE, "// @BE scale", place), "scale_kernel<<<", use)
    flags = [*WHOLE_HEADER, "-rdc=true"]
    load(source, flags)
    assert "cicc compute_90" in device_steps_run(load(edit(source, "&place<int>", "&place<double>"), flags))
    assert device_steps_run(load(edit(source, "__constant__", "// A comment.\n__constant__"), flags)) == []


def test_debug_information_has_the_lines_of_its_text(load):
    for flag in ("-lineinfo", "-g"):
        load(SOURCE, [flag])
        moved = edit(SOURCE, "__constant__", "\n\n__constant__")
        assert "cicc compute_90" in device_steps_run(load(moved, [flag])), flag


def test_a_warning_shows_the_line_of_its_text(load, flags, capfd):
    source = edit(SOURCE, "scale_kernel<<<", "bool less = grid(1) < 2u;\n  if (less) scale_kernel<<<")
    flags = [*flags, "-Xcompiler=-Wall"]
    lines = source.splitlines()
    load(source, flags)
    assert f"_0:{lines.index('  bool less = grid(1) < 2u;') + 1}:" in capfd.readouterr().err
    moved = load(edit(source, "__constant__", "// A comment.\n__constant__"), flags)
    assert f"_0:{lines.index('  bool less = grid(1) < 2u;') + 2}:" in capfd.readouterr().err
    assert "cicc compute_90" in device_steps_run(moved)


def test_a_warning_that_only_cicc_gives_is_shown(load, flags, capfd):
    load(SOURCE, flags)
    capfd.readouterr()
    edits = {
        '#177-D: variable "spare"': edit(SOURCE, "scale_kernel<<<", "int spare = 3;\n  scale_kernel<<<"),
        '#550-D: variable "spare"': edit(SOURCE, "scale_kernel<<<", "int spare;\n  spare = 3;\n  scale_kernel<<<"),
    }
    for warning, source in edits.items():
        for _ in range(2):  # the second text has other lines
            load(source, flags, verbose=True)
            assert f"warning {warning}" in capfd.readouterr().err
            source = f"\n{source}"


def test_a_warning_of_the_host_compiler_preprocesses_nothing_again(load, counter):
    source = f'#pragma GCC diagnostic warning "-Wsign-compare"\n{SOURCE}'
    load(source, [])
    before = counter("again_for_lines")
    module = load(edit(source, "scale_kernel<<<", "bool less = grid(1) < 2u;\n  if (less) scale_kernel<<<"), [])
    assert counter("again_for_lines") > before
    assert [step.name for step in module.trace().steps].count("preprocess host") == 1


def test_an_error_shows_the_line_of_its_text(load, flags):
    load(SOURCE, flags)
    wrong = edit(SOURCE, "(n + 31) / 32", "\n\n\n  undeclared(n)")
    with pytest.raises(kernix.KernelCompilationError, match=r"_0\(20\): error: .*undeclared"):
        load(wrong, flags)


@pytest.mark.usefixtures("load")
def test_headers_that_need_other_parts_of_the_runtime_header_do_not_take_all_of_it(learn, counter):
    """The part with the shuffles uses another one."""
    before = counter("whole_after_preprocessing")
    learn(edit(SOURCE, "+= 1;", "= __shfl_down_sync(~0u, x[threadIdx.x], 1);"))
    assert counter("whole_after_preprocessing") == before, "preprocessed twice"


# What is wrong, and whether the rest of the runtime header is read before it is said.
ERRORS = {
    "a semicolon": ("__global__ void wrong(float* x) { *x = 1 }", False),
    "a name": ("__global__ void wrong(float* x) { *x = nothing; }", False),
    "a name for devices only": (
        "__global__ void wrong(float* x) {\n#ifdef __CUDA_ARCH__\n  *x = nothing;\n#endif\n}",
        False,
    ),
    "a template's argument": (
        "template <typename T> __device__ T sum(T x, T y) { return x + y; }\n"
        "__global__ void wrong(float* x) { *x = sum(1, 2.0); }",
        False,
    ),
    "an assertion in a template": (
        "template <typename T> struct Size { static_assert(sizeof(T) == 8, "
        '"eight bytes"); };\n__global__ void wrong(float* x) { Size<float> size; }',
        False,
    ),
    "a member": ("struct S { int a; };\n__global__ void wrong(float* x) { S s; *x = s.b; }", False),
    "an overload": (
        "__device__ int over(int*); __device__ int over(char*);\n__global__ void wrong(float* x) { *x = over(x); }",
        False,
    ),
    "a host function": ("int host_only(int);\n__global__ void wrong(float* x) { *x = host_only(1); }", False),
    "an operator": ("struct S { int a; };\n__global__ void wrong(float* x) { S s; *x = (s + s).a; }", False),
    "an operator on what std declares": (
        "#include <cstddef>\nstruct S { int a; };\nbool wrong(std::byte b, S s) { return b == s; }",
        True,
    ),
    "an overload in headers": ('__global__ void wrong(float* x) { *x = abs("a"); }', False),
    "a template in headers": (
        "#include <algorithm>\nstruct S { int a; };\nvoid wrong(S* s) { std::swap(s, *s); }",
        False,
    ),
    "a declaration": ("int wrong();\nfloat wrong();", False),
    "a header": ('#include "no_such_header.h"', False),
    "a directive": ("#error wrong", False),
    "a directive for devices": ("#ifdef __CUDA_ARCH__\n#error wrong\n#endif", False),
    "what the host compiler warns of": (
        '#pragma GCC diagnostic error "-Wsign-compare"\n'
        "bool wrong(int n) { int spare = 3; unsigned size = 1; return n < size; }",
        False,
    ),
    "what only the host compiler refuses": (
        'extern "C" void wrong();\nvoid alias() __attribute__((alias("nothing")));',
        False,
    ),
    "a variable twice": ("__global__ void wrong(float* x) { int i = 0; int i = 1; *x = i; }", False),
    "a variable of the host twice": ("int wrong() { int i = 0; int i = 1; return i; }", False),
    "a break": ("__global__ void wrong() { break; }", False),
    "a character": ("__global__ void wrong(float* x) { *x = @; }", False),
    "a type": ("wrong(int);", False),
    "too many values": ("__constant__ int wrong[2] = {1, 2, 3};", False),
    "a case twice": ("__device__ void wrong(int n) { switch (n) { case 1: case 1: break; } }", False),
    "a label": ("__device__ void wrong() { goto out; }", False),
    "a value of shared memory": ("__global__ void wrong(int* x) { __shared__ int q = 3; *x = q; }", False),
    "a device function": ("__device__ int only() { return 1; }\nint wrong() { return only(); }", False),
    "a result": ("__global__ int wrong() { return 1; }", False),
    "a private member": ("class P { int a; };\n__device__ int wrong(P p) { return p.a; }", False),
    "a size": ("__global__ void wrong(int* x) { int a[-1]; *x = a[0]; }", False),
    "a reference": ("__global__ void wrong(float* x) { float& r = 3; *x = r; }", False),
    "a literal": ("__global__ void wrong(float* x) { *x = 1.0g; }", False),
    "a cast": ("__device__ int wrong(float* y) { return *static_cast<int*>(y); }", False),
    "a class": ("struct Q;\n__device__ int wrong(Q* q) { return q->x; }", False),
    "a constant": ("__global__ void wrong(const float* x) { *x = 1; }", False),
    "a template's arguments": ("template <class T> T one();\nint wrong() { return one<int, float>(); }", False),
    "a member's type": ("struct S { x(); };", False),
    "a lambda": ("void wrong() { auto l = [] __device__(int i) { return i; }; }", False),
    "a condition": ("#if 1 +\n#endif", False),
    "a macro's arguments": ("#define WRONG(a, b) a + b\nint wrong = WRONG(1);", False),
    "a brace": ("__global__ void wrong(int n) { if (n) {", False),
    "a quote": ('__global__ void wrong() { printf("abc); }', False),
    "a name that is almost one": ("__global__ void wrong(float* x) { *x = sinff(1.f); }", False),
    "an assembler's instruction": ('void wrong() { asm("nonsense"); }', False),
    "an instruction": ('__global__ void wrong(float* x) { asm("nonsense;"); }', False),
}


def assert_same_words(load, wrong, flags, **options):
    """Check that an error has the words of a whole call of nvcc."""
    said = []
    for how in ({}, {"force_rebuild": True}):
        with pytest.raises(kernix.KernelError) as error:
            load(wrong, flags, **options, **how)
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("what", ERRORS)
def test_an_error_is_what_a_whole_call_says(load, learn, counter, what):
    wrong, is_asked_again = ERRORS[what]
    learn(f"{SOURCE}\n#if 0\n{wrong}\n#endif\n")
    before = counter("whole_after_error"), counter("whole_after_failure")
    assert_same_words(load, f"{SOURCE}\n{wrong}\n", [])
    assert (counter("whole_after_error") > before[0]) == is_asked_again
    assert counter("whole_after_failure") == before[1], "no whole call was needed"


def test_an_open_condition_is_preprocessed_once(load, learn, counter):
    learn(SOURCE)
    before = counter("whole_after_error")
    assert_same_words(load, f"#if 1\n{SOURCE}", [])
    assert counter("whole_after_error") == before


def test_an_instruction_for_two_architectures_needs_no_whole_call(load, counter):
    before = counter("whole_after_failure")
    assert_same_words(load, f"{SOURCE}\n{ERRORS['an instruction'][0]}\n", [], compute_capability="sm_80,sm_90")
    assert counter("whole_after_failure") == before


@pytest.mark.parametrize("what", ["an operator on what std declares", "an overload in headers"])
def test_an_error_with_the_whole_header_is_what_a_whole_call_says(load, counter, what):
    before = counter("whole_after_failure")
    assert_same_words(load, f"{SOURCE}\n{ERRORS[what][0]}\n", WHOLE_HEADER)
    assert counter("whole_after_failure") == before


def test_an_error_after_an_edit_of_host_code_shows_the_line_of_its_text(load, counter):
    source = f'#pragma GCC diagnostic error "-Wsign-compare"\n{SOURCE}'
    load(source, [])
    before = counter("again_for_lines")
    wrong = edit(source, "scale_kernel<<<", "bool less = grid(1) < 2u;\n  if (less) scale_kernel<<<")
    assert_same_words(load, f"// A comment.\n{wrong}", [])
    assert counter("again_for_lines") > before


def test_an_error_in_code_for_devices_shows_its_line_also_where_they_get_a_text_without_lines(load, counter):
    before = counter("again_for_lines"), counter("whole_after_failure")
    assert_same_words(load, f"{SOURCE}\n{ERRORS['a name for devices only'][0]}\n", ["-rdc=true"])
    assert counter("again_for_lines") > before[0]
    assert counter("whole_after_failure") == before[1]
