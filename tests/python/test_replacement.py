# SPDX-License-Identifier: Apache-2.0
"""What happens under a target name that is taken."""

import functools
import sys
import warnings

import jax
import kernels
import numpy as np
import pytest

import kernix

pytestmark = pytest.mark.usefixtures("on_cpu")

X = np.zeros(1, np.float32)
SPEC = jax.ShapeDtypeStruct((1,), np.float32)


def call(target):
    """Call a target of one argument and one result like it."""
    return float(jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(X.shape, X.dtype))(X)[0])


def test_other_code_under_a_live_name_is_refused(fresh_name):
    kernix.load_cpp_inline(fresh_name, kernels.constant(1))
    with pytest.raises(kernix.KernelRegistrationError) as caught:
        kernix.load_cpp_inline(fresh_name, kernels.constant(2))
    assert f"{fresh_name}.value" in str(caught.value)
    assert "replace=True" in str(caught.value)
    assert "target_prefix" in str(caught.value)
    assert call(f"{fresh_name}.value") == 1


def test_loading_the_same_again_is_a_no_op(fresh_name, counters):
    first = kernix.load_cpp_inline(fresh_name, kernels.constant(3))
    counters.start()
    assert kernix.load_cpp_inline(fresh_name, kernels.constant(3)) is first
    assert (counters.hits, counters.builds) == (0, 0)  # the daemon was not even asked


def test_replacement_is_live_inside_compiled_functions(fresh_name):
    target = f"{fresh_name}.value"
    kernix.load_cpp_inline(fresh_name, kernels.constant(1))
    compiled = jax.jit(lambda x: jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(x.shape, x.dtype))(x))
    assert compiled(X)[0] == 1

    kernix.load_cpp_inline(fresh_name, kernels.constant(2), replace=True)
    assert compiled(X)[0] == 2
    assert call(target) == 2


def test_replaced_code_brings_its_own_inline_tables(fresh_name):
    def table(value):
        return f"""
#include "brainevent/common.h"
inline float table[4] = {{{value}, {value}, {value}, {value}}};
template <typename T> struct Counter {{ static inline T start = {value}; }};
// @BE value arg ret
void value(const BE::Tensor x, BE::Tensor y) {{ y.data_ptr<float>()[0] = table[1] + Counter<float>::start; }}
"""

    kernix.load_cpp_inline(fresh_name, table(1))
    assert call(f"{fresh_name}.value") == 2
    kernix.load_cpp_inline(fresh_name, table(7), replace=True)
    assert call(f"{fresh_name}.value") == 14


def test_replacing_back_and_forth(fresh_name):
    for round_number in range(3):
        for value in (1, 2):
            module = kernix.load_cpp_inline(fresh_name, kernels.constant(value), replace=True)
            assert call(f"{fresh_name}.value") == value, round_number
            assert kernix.load_cpp_inline(fresh_name, kernels.constant(value)) is module


def test_code_that_was_replaced_is_refused_again_without_replace(fresh_name):
    kernix.load_cpp_inline(fresh_name, kernels.constant(1))
    kernix.load_cpp_inline(fresh_name, kernels.constant(2), replace=True)
    with pytest.raises(kernix.KernelRegistrationError, match="replace=True"):
        kernix.load_cpp_inline(fresh_name, kernels.constant(1))
    assert call(f"{fresh_name}.value") == 2


def test_old_handler_stays_callable(fresh_name):
    old = kernix.load_cpp_inline(fresh_name, kernels.constant(1))
    kernix.load_cpp_inline(fresh_name, kernels.constant(2), replace=True)
    kernix.register_ffi_target(f"{fresh_name}.old", old, "value")
    assert (call(f"{fresh_name}.old"), call(f"{fresh_name}.value")) == (1, 2)


def pair(value, parameters="", attribute=""):
    """Return a source with one function that takes `parameters` before its result."""
    return f"""#include "brainevent/common.h"
void value({parameters}BE::Out<float> y{attribute}) {{ y[0] = {value}; }}
"""


OLD = pair(1, "BE::In<float> x, ")
CHANGES = {  # the new source, how to call it, what a call that was compiled before says
    "argument": (pair(2, "BE::In<float> x, BE::In<float> w, "), {}, (X, X), r"expected 2 arguments, got 1\."),
    "attribute": (pair(2, "BE::In<float> x, ", ", int n"), {"n": 3}, (X,), r"attribute 'n' \(int32\) is missing\."),
    "type": (pair(2, "BE::In<int> x, "), {}, (X.astype(np.int32),), r"argument 0 \(x\) takes int32, got float32\."),
}


@pytest.mark.parametrize(("source", "attributes", "arguments", "problem"), CHANGES.values(), ids=CHANGES)
def test_a_signature_may_change_under_a_live_name(fresh_name, source, attributes, arguments, problem):
    """What the errors advise helps: the new module's function, and jax.clear_caches() for what was compiled."""
    old = module = kernix.load_cpp_inline(fresh_name, OLD, ["value"])
    compiled = jax.jit(lambda x, *more, **values: module.value(x, *more, out=SPEC, **values), static_argnames="n")
    assert compiled(X) == 1
    module = kernix.load_cpp_inline(fresh_name, source, ["value"], replace=True)
    problem += r".* call jax\.clear_caches\(\) and use the new module's function"
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match=f"value: {problem}"):
        compiled(X)
    jax.clear_caches()
    assert compiled(*arguments, **attributes) == 2
    assert module.value(*arguments, out=np.zeros(1, np.float32), **attributes) == 2
    advice = r"value has another signature since a later load: use the function of the module that that load returned"
    for x, out in [(X, np.zeros(1, np.float32)), (jax.numpy.asarray(X), SPEC)]:
        with pytest.raises(TypeError, match=advice):
            old.value(x, out=out)
    with pytest.raises(TypeError, match=advice):
        old.value(*arguments, out=SPEC, **attributes)

    module = kernix.load_cpp_inline(fresh_name, OLD, ["value"], replace=True)
    jax.clear_caches()
    assert (compiled(X), old.value(X)) == (1, 1)


def test_another_order_of_parameters_is_the_same_signature(fresh_name):
    old = kernix.load_cpp_inline(fresh_name, pair(1, "BE::In<float> x, int n, "), ["value"])
    kernix.load_cpp_inline(fresh_name, pair(2, "int n, BE::In<float> other, "), ["value"], replace=True)
    assert old.value(X, n=3) == 2


# --- All or nothing --------------------------------------------------------------------------------------------------


def several(**functions):
    """Return a source with one function for each name: it writes its value to its result."""
    parts = ['#include "brainevent/common.h"']
    for name, value in functions.items():
        parts.append(f"// @BE {name} arg ret")
        parts.append(f"void {name}(const BE::Tensor x, BE::Tensor y) {{ *y.data_ptr<float>() = {value}; }}")
    return "\n".join(parts)


def test_a_taken_name_keeps_new_ones_from_being_registered(fresh_name):
    kernix.load_cpp_inline(fresh_name, several(b=1))
    with pytest.raises(kernix.KernelRegistrationError, match="replace=True"):
        kernix.load_cpp_inline(fresh_name, several(a=2, b=2))
    assert f"{fresh_name}.a" not in kernix.list_registered_targets()


@pytest.mark.parametrize("refused", ["a", "c"])
def test_a_name_that_jax_refuses_is_not_registered(fresh_name, monkeypatch, refused):
    """JAX says no to one of two new names, next to one that would be replaced."""
    kernix.load_cpp_inline(fresh_name, several(b=1))
    register = jax.ffi.register_ffi_target

    def reluctant(name, *arguments, **options):
        if name == f"{fresh_name}.{refused}":
            raise ValueError("no room")
        register(name, *arguments, **options)

    monkeypatch.setattr(jax.ffi, "register_ffi_target", reluctant)
    load = functools.partial(kernix.load_cpp_inline, fresh_name, several(a=2, b=2, c=2), replace=True)
    with pytest.raises(kernix.KernelRegistrationError, match="no room"):
        load()
    assert call(f"{fresh_name}.b") == 1
    assert not {f"{fresh_name}.a", f"{fresh_name}.c"} & set(kernix.list_registered_targets())
    if refused == "c":  # JAX has got a
        with pytest.raises(jax.errors.JaxRuntimeError, match="no kernel is loaded"):
            call(f"{fresh_name}.a")

    monkeypatch.undo()
    load()
    assert [call(f"{fresh_name}.{name}") for name in "abc"] == [2, 2, 2]


@pytest.mark.parametrize("platform", ["cpu", "CUDA"])
def test_a_name_that_somebody_else_registered_is_refused(fresh_name, platform):
    """On the CPU JAX itself says so; for CUDA, whose backend does not run here, it would take any number for now."""
    module = kernix.load_cpp_inline(fresh_name, several(a=1, b=1), auto_register=False)
    capsule = jax.ffi.pycapsule(module.get_handler("b"))  # as another package would register one of its own
    jax.ffi.register_ffi_target(f"{fresh_name}.b", capsule, platform=platform)
    with pytest.raises(kernix.KernelRegistrationError, match=f"JAX refused.*{fresh_name}.b.*target_prefix"):
        kernix.register_ffi_target(f"{fresh_name}.b", module, "b", platform=platform)
    assert f"{fresh_name}.b" not in kernix.list_registered_targets()


@pytest.mark.parametrize("missing", ["xla_platform_names", "_custom_callback"])
def test_a_jaxlib_without_its_private_tables_registers_all_the_same(fresh_name, monkeypatch, missing):
    from jaxlib import xla_client

    module = kernix.load_cpp_inline(fresh_name, several(a=3), auto_register=False)
    with monkeypatch.context() as patch:
        patch.delattr(xla_client, missing)
        # JAX's own registering reads both tables, so it is looked at by itself.
        assert kernix.jax.targets._waiting_in_jax("cpu") == set()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "jaxlib.xla_client", None)
        patch.delattr("jaxlib.xla_client")
        kernix.register_ffi_target(f"{fresh_name}.a", module, "a")
    assert call(f"{fresh_name}.a") == 3


def test_force_rebuild_of_the_same_source_builds_the_same(fresh_name, counters):
    first = kernix.load_cpp_inline(fresh_name, kernels.constant(4))
    counters.start()
    again = kernix.load_cpp_inline(fresh_name, kernels.constant(4), force_rebuild=True)
    assert counters.builds == 1
    assert again.content_hash == first.content_hash  # builds are reproducible
    assert call(f"{fresh_name}.value") == 4


def test_force_rebuild_of_changed_source_makes_it_live(fresh_name):
    kernix.load_cpp_inline(fresh_name, kernels.constant(1))
    kernix.load_cpp_inline(fresh_name, kernels.constant(2), force_rebuild=True)
    assert call(f"{fresh_name}.value") == 2


def test_two_names_share_one_library(fresh_name, counters):
    first = kernix.load_cpp_inline(fresh_name, kernels.constant(5))
    second = kernix.load_cpp_inline(fresh_name, kernels.constant(5), target_prefix=f"{fresh_name}_too")
    assert counters.builds <= 1
    assert first.content_hash == second.content_hash
    kernix.load_cpp_inline(fresh_name, kernels.constant(6), replace=True)
    assert (call(f"{fresh_name}.value"), call(f"{fresh_name}_too.value")) == (6, 5)


def test_many_targets(fresh_name):
    module = kernix.load_cpp_inline(fresh_name, kernels.constant(7), auto_register=False)
    for index in range(2000):
        kernix.register_ffi_target(f"{fresh_name}.{index}", module, "value")
    assert call(f"{fresh_name}.1999") == 7


def test_captured_cuda_graphs_are_warned_about(fresh_name):
    options = {"compute_capability": "sm_90"}
    changed = kernels.VECTOR_ADD.replace("a[idx] + b[idx]", "b[idx] + a[idx] + 0.0f")
    kernix.load_cuda_inline(fresh_name, kernels.VECTOR_ADD, **options)
    with pytest.warns(kernix.KernelWarning, match="CUDA graph.*allow_cuda_graph=False") as caught:
        kernix.load_cuda_inline(fresh_name, changed, replace=True, **options)
    assert caught[0].filename == __file__


def test_no_warning_if_the_code_is_the_same(fresh_name):
    options = {"compute_capability": "sm_90", "replace": True}
    two = kernels.VECTOR_ADD + kernels.VECTOR_ADD.replace("vector_", "other_").replace("add_kernel", "other")
    module = kernix.load_cuda_inline(fresh_name, two, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = kernix.load_cuda_inline(fresh_name, two, **options)
    with pytest.warns(kernix.KernelWarning, match="vector_add' was replaced"):
        kernix.register_ffi_target(f"{fresh_name}.vector_add", module, "other_add", replace=True)


def test_no_warning_without_graphs(fresh_name):
    kernix.load_cpp_inline(fresh_name, kernels.constant(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernix.load_cpp_inline(fresh_name, kernels.constant(2), replace=True)


def test_register_ffi_target(fresh_name):
    module = kernix.load_cpp_inline(fresh_name, kernels.constant(8), auto_register=False)
    assert f"{fresh_name}.value" not in kernix.list_registered_targets()
    kernix.register_ffi_target(f"{fresh_name}.mine", module, "value", platform="CPU")
    kernix.register_ffi_target(f"{fresh_name}.mine", module, "value")
    assert f"{fresh_name}.mine" in kernix.list_registered_targets()
    assert kernix.list_registered_targets() == sorted(kernix.list_registered_targets())
    assert call(f"{fresh_name}.mine") == 8


def test_register_ffi_target_mistakes(fresh_name):
    module = kernix.load_cpp_inline(fresh_name, kernels.constant(9), auto_register=False)
    with pytest.raises(KeyError, match="value"):
        kernix.register_ffi_target(fresh_name, module, "nothing")
    with pytest.raises(kernix.KernelRequestError, match="tpu"):
        kernix.register_ffi_target(fresh_name, module, "value", platform="tpu")
    with pytest.raises(KeyError, match="value"):
        module.get_handler("nothing")


# --- Static variables ------------------------------------------------------------------------------------------------

COUNTERS = """#include "brainevent/common.h"
static int plain = 0;
inline int shared = 0;
template <typename T> struct Holder { static inline T value = 0; };
int& local() { static int value = 0; return value; }
// @BE count
void count(BE::Out<int> y) { y[0] = ++plain; y[1] = ++shared; y[2] = ++Holder<int>::value; y[3] = ++local(); }
"""


def counted(module):
    """Count once more, and return the number that all counters have reached."""
    (number,) = set(module.count(out=np.zeros(4, np.int32)).tolist())
    return number


@pytest.mark.parametrize("options", [{"replace": True}, {"force_rebuild": True}], ids=["replace", "force_rebuild"])
@pytest.mark.parametrize("registered", [True, False], ids=["registered", "not registered"])
def test_a_load_that_replaces_begins_anew(fresh_name, options, registered):
    first = kernix.load_cpp_inline(fresh_name, COUNTERS, auto_register=registered)
    assert [counted(first), counted(first)] == [1, 2]
    second = kernix.load_cpp_inline(fresh_name, COUNTERS, auto_register=registered, **options)
    assert [counted(second), counted(second)] == [1, 2]
    assert counted(first) == 3  # by its name if it is registered, and there are the new ones then
    assert kernix.load_cpp_inline(fresh_name, COUNTERS, auto_register=registered) is second
    assert counted(second) == (4 if registered else 3)


def test_compiled_functions_see_the_new_variables(fresh_name):
    source = COUNTERS.replace("count(BE::Out<int> y) { y[0]", "count(BE::In<float> x, BE::Out<float> y) { y[0]")
    source = source.partition(" y[1]")[0] + " }\n"
    module = kernix.load_cpp_inline(fresh_name, source)
    compiled = jax.jit(lambda x: module.count(x, out=SPEC))
    assert [float(compiled(X)[0]), float(compiled(X)[0])] == [1, 2]
    kernix.load_cpp_inline(fresh_name, source, replace=True)
    assert float(compiled(X)[0]) == 1


def test_modules_of_other_names_have_variables_of_their_own(fresh_name, tmp_path):
    path = tmp_path / "counters.cpp"
    path.write_text(COUNTERS)
    modules = [kernix.load_cpp_file(path, name=f"{fresh_name}_{i}", auto_register=i < 2) for i in range(4)]
    assert len({module.content_hash for module in modules}) == 1
    assert [counted(module) for module in (*modules, *modules)] == [1] * 4 + [2] * 4
    results = [jax.ffi.ffi_call(module.count.target, jax.ShapeDtypeStruct((4,), np.int32))() for module in modules]
    assert np.asarray(results).tolist() == [[3] * 4] * 4
    other_defines = kernix.load_cpp_inline(f"{fresh_name}_5", COUNTERS, defines={"OTHER": 1})
    assert counted(other_defines) == 1


def test_loads_of_one_name_share_variables_unless_they_replace(fresh_name):
    first = kernix.load_cpp_inline(fresh_name, COUNTERS)
    assert counted(first) == 1
    commented = kernix.load_cpp_inline(fresh_name, "// a comment\n" + COUNTERS)
    other_name = kernix.load_cpp_inline(f"{fresh_name}_too", COUNTERS, target_prefix=fresh_name)
    unregistered = kernix.load_cpp_inline(fresh_name, COUNTERS, auto_register=False)
    assert [counted(module) for module in (commented, other_name, unregistered, first)] == [2, 3, 4, 5]
    assert counted(kernix.load_cpp_inline(fresh_name, COUNTERS, target_prefix=f"{fresh_name}_more")) == 1
