# SPDX-License-Identifier: Apache-2.0
"""Functions of a module as Python callables, in JAX's hands."""

import copy
import inspect
import keyword
import pickle
import pydoc
import re
import sys
import threading
import types
from fractions import Fraction

import jax
import jax.numpy as jnp
import kernels
import ml_dtypes
import numpy as np
import pytest

import kernix
from kernix.calling.attributes import convert_attributes
from kernix.calling.signature import Count

pytestmark = pytest.mark.usefixtures("on_cpu")

X = np.arange(6, dtype=np.float32).reshape(2, 3)

SOURCE = """
#include "brainevent/common.h"

// @BE add arg arg ret
void add(const BE::Tensor a, const BE::Tensor b, BE::Tensor y) {
    for (int64_t i = 0; i < y.numel(); ++i)
        y.data_ptr<float>()[i] = a.data_ptr<float>()[i] + b.data_ptr<float>()[i % b.numel()];
}

// @BE scale arg ret attr.factor:float32
void scale(const BE::Tensor x, BE::Tensor y, float factor) {
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = factor * x.data_ptr<float>()[i];
}

// @BE extremes arg ret ret
void extremes(const BE::Tensor x, BE::Tensor low, BE::Tensor high) {
    float least = x.data_ptr<float>()[0], most = least;
    for (int64_t i = 0; i < x.numel(); ++i) {
        least = std::min(least, x.data_ptr<float>()[i]);
        most = std::max(most, x.data_ptr<float>()[i]);
    }
    *low.data_ptr<float>() = least;
    *high.data_ptr<float>() = most;
}

// @BE fill ret attr.stream:int32
void fill(BE::Tensor y, int32_t stream) {
    for (int64_t i = 0; i < y.numel(); ++i) y.data_ptr<int32_t>()[i] = stream;
}

// How often it was called.
// @BE count arg ret
void count(const BE::Tensor, BE::Tensor y) {
    static float calls = 0;
    *y.data_ptr<float>() = ++calls;
}

// @BE path arg ret
void path(const BE::Tensor x, BE::Tensor y) { *y.data_ptr<float>() = 7; }
"""


@pytest.fixture(scope="module", name="module")
def module_fixture(place):
    with pytest.warns(kernix.KernelWarning, match="'path' is hidden"):
        return kernix.load_cpp_inline("function", SOURCE)


def spec(shape, dtype=np.float32):
    """Return what JAX takes as the description of an array."""
    return jax.ShapeDtypeStruct(shape, dtype)


# --- What a function is ----------------------------------------------------------------------------------------------


def test_a_function_shows_its_parameters(module):
    assert str(module.scale) == "function.scale(x, /, *, factor: float32, out=None)"
    assert repr(module.scale) == f"<kernix function {module.scale}>"
    assert module.scale.__name__ == "scale"
    assert "KernelCallError" in inspect.getdoc(type(module.scale))
    parameters = inspect.signature(module.scale).parameters
    assert list(parameters)[:3] == ["x", "factor", "out"]
    assert parameters["factor"].annotation == "float32"


def test_attributes_that_python_cannot_show(fresh_name):
    source = '#include "brainevent/common.h"\nvoid f(BE::Tensor x, BE::Tensor y, int a, int b) '
    source += "{ *y.data_ptr<int>() = a + b; }"
    spec = {"f": ["arg", "ret", "attr.lambda:int32", "attr.arg0:int32"]}
    function = kernix.load_cpp_inline(fresh_name, source, spec).f
    assert list(inspect.signature(function).parameters)[:3] == ["x", "arg0", "out"]
    assert inspect.signature(kernix.KernelFunction)
    assert function(np.zeros(1, np.int32), **{"lambda": 1, "arg0": 2}) == [3]


def test_functions_are_attributes_and_items(module):
    assert module["add"] is module.add is module["add"]
    assert {"add", "scale", "path", "get_handler"} <= set(dir(module))
    with pytest.raises(AttributeError, match="no function 'subtract' in module 'function'"):
        _ = module.subtract
    with pytest.raises(KeyError, match="no function 'subtract' in module 'function'"):
        module["subtract"]
    with pytest.raises(KeyError, match="no function 3 in module 'function'"):
        module[3]


def test_a_module_has_and_lists_its_functions(module):
    assert "scale" in module
    assert "subtract" not in module
    assert list(module) == module.function_names


def test_a_function_that_is_named_like_an_attribute_is_an_item(module):
    assert module.content_hash in module.path
    np.testing.assert_array_equal(module["path"](X[0, :1]), [7])


def test_a_module_that_is_only_being_made_has_no_functions(module):
    with pytest.raises(AttributeError):
        _ = kernix.CompiledModule.__new__(kernix.CompiledModule).add


def test_a_copy_of_a_module_is_the_module_and_pickle_says_what_to_do(module):
    assert copy.copy(module) is module
    assert copy.deepcopy(module) is module
    for thing in (module, module.add, {"a": [module]}):
        with pytest.raises(
            TypeError, match="module 'function' cannot be pickled: .* Load it in the other process, too"
        ):
            pickle.dumps(thing)


# --- Calls by JAX ----------------------------------------------------------------------------------------------------


def test_a_result_like_the_arguments_is_inferred(module):
    y = module.add(jnp.asarray(X), X)
    assert isinstance(y, jax.Array)
    np.testing.assert_array_equal(y, 2 * X)
    np.testing.assert_array_equal(jax.jit(module.add)(X, X), 2 * X)


def test_a_result_is_as_said(module):
    x = jnp.asarray(X)
    np.testing.assert_array_equal(module.add(x, x[0], out=spec((2, 3))), X + X[0])
    np.testing.assert_array_equal(module.add(x, x[0], out=x), X + X[0])
    (low,) = module.scale(x, factor=1, out=[spec((2, 3))])
    np.testing.assert_array_equal(low, X)
    low, high = module.extremes(x, out=(spec(()), spec(())))
    assert (low, high) == (0, 5)


def test_calls_while_another_thread_imports_jax(module, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    assert type(module.scale(X, factor=2, out=np.empty_like(X))) is np.ndarray


def test_a_jax_that_must_not_be_imported_counts_as_not_installed(fresh_name, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    module = kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE)
    np.testing.assert_array_equal(module.add_one(X), X + 1)


def test_numpy_arguments_with_a_spec_are_jax_business(module):
    assert isinstance(module.add(X, X, out=spec((2, 3))), jax.Array)
    assert isinstance(module.fill(out=spec((2,), np.int32), attributes={"stream": 3}), jax.Array)


def test_arguments_that_differ_need_a_spec(module):
    with pytest.raises(TypeError, match=r"add\(\) needs out=.*float32\[2, 3\], float32\[3\]"):
        module.add(jnp.asarray(X), X[0])
    with pytest.raises(TypeError, match="needs out=.*float32.*int32"):
        module.add(jnp.asarray(X), X.astype(np.int32))
    with pytest.raises(TypeError, match=r"extremes\(\) has 2 results: pass their shapes"):
        module.extremes(jnp.asarray(X))
    with pytest.raises(TypeError, match=r"extremes\(\) has 2 results, but out= names 1"):
        module.extremes(jnp.asarray(X), out=spec(()))
    with pytest.raises(TypeError, match="out 0 is of type tuple; it must have shape and dtype"):
        module.scale(jnp.asarray(X), factor=1, out=[(2, 3)])


def test_the_number_of_arguments_is_checked_first(module):
    with pytest.raises(TypeError, match=r"add\(\) takes 2 arrays, but 1 were given; it is function.add\(a, b,"):
        module.add(jnp.asarray(X))
    with pytest.raises(TypeError, match="takes 1 array, but 3 were given"):
        module.scale(X, None, None, factor=1)
    with pytest.raises(TypeError, match="out 0 is a NumPy array, which JAX cannot write into"):
        module.scale(jnp.asarray(X), factor=1, out=np.empty_like(X))
    with pytest.raises(TypeError, match="argument 1 is None"):
        module.add(jnp.asarray(X), None)
    with pytest.raises(TypeError, match="argument 1 is of type list in a call by JAX"):
        module.add(jnp.asarray(X), [1.0])
    with pytest.raises(TypeError, match="stream= is for calls without JAX"):
        module.add(jnp.asarray(X), X, stream=1)


def test_attributes_are_constants_of_a_compiled_function(module):
    np.testing.assert_array_equal(jax.jit(lambda x: module.scale(x, factor=3))(X), 3 * X)
    static = jax.jit(module.scale, static_argnames="factor")
    np.testing.assert_array_equal(static(X, factor=2.5), 2.5 * X)
    with pytest.raises(TypeError, match="'factor' is traced by JAX.*static_argnames"):
        jax.jit(module.scale)(X, factor=3)
    np.testing.assert_array_equal(module.scale(jnp.asarray(X), factor=jnp.float32(2)), 2 * X)


def test_an_attribute_may_be_called_self(fresh_name):
    source = '#include "brainevent/common.h"\nvoid f(BE::Tensor y, int self) { *y.data_ptr<int>() = self; }'
    module = kernix.load_cpp_inline(fresh_name, source, {"f": ["ret", "attr.self:int32"]})
    assert module.f(self=3, out=np.zeros(1, np.int32)).tolist() == [3]


def test_an_attribute_with_the_name_of_a_parameter(module):
    result = module.fill(out=spec((2,), np.int32), attributes={"stream": 5})
    np.testing.assert_array_equal(result, [5, 5])
    with pytest.raises(TypeError, match="attributes must be a dict of names and values, not 3; an attribute with the"):
        module.fill(out=spec((2,), np.int32), attributes=3)
    with pytest.raises(TypeError, match="attribute 'factor' is given twice"):
        module.scale(X, factor=1, attributes={"factor": 2})


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap_method(module, method):
    batch = jnp.stack([X, X + 1])
    if method == "sequential":
        mapped = jax.vmap(lambda x: module.scale(x, factor=2, vmap_method=method))
    else:  # the function sees the whole batch
        mapped = jax.vmap(lambda x: module.add(x, x, vmap_method=method))
    np.testing.assert_array_equal(jax.jit(mapped)(batch), 2 * batch)


@pytest.mark.skipif(jax.__version_info__ < (0, 6), reason="JAX 0.5 maps without a method, one after another")
def test_vmap_without_a_method_is_refused_by_jax(module):
    with pytest.raises(NotImplementedError, match="vmap"):
        jax.vmap(module.add)(jnp.stack([X, X]), jnp.stack([X, X]))


def test_options_reach_jax(module):
    aliased = jax.jit(lambda x: module.scale(x, factor=2, input_output_aliases={0: 0}))
    assert "output_operand_alias" in aliased.lower(X).as_text()
    np.testing.assert_array_equal(aliased(X), 2 * X)
    effect = jax.make_jaxpr(lambda x: module.scale(x, factor=2, has_side_effect=True))(X)
    assert effect.effects
    np.testing.assert_array_equal(module.scale(jnp.asarray(X), factor=2, input_output_aliases=[(0, 0)]), 2 * X)


def test_options_that_jax_does_not_take(module):
    x = jnp.asarray(X)
    with pytest.raises(TypeError, match=r"scale\(\): input_output_aliases is of type int; it must be a dict from the"):
        module.scale(x, factor=2, input_output_aliases=5)
    for options in ({"input_output_aliases": {0: [0]}}, {"vmap_method": ["expand_dims"]}):
        with pytest.raises((TypeError, ValueError)) as jax_says:
            jax.ffi.ffi_call(module.scale.target, spec(X.shape), **options)(x, factor=np.float32(2))
        with pytest.raises(jax_says.type, match=f"^{re.escape(str(jax_says.value))}$"):
            module.scale(x, factor=2, **options)


@pytest.mark.parametrize("x", [np.zeros(1, np.float32), np.float32(0)], ids=["array", "scalar"])
def test_side_effects_of_compiled_functions_happen_when_these_run(module, x):
    before = module.count(x).item()
    compiled = jax.jit(lambda: module.count(x, has_side_effect=True))
    assert [compiled().item() for _ in range(2)] == [before + 1, before + 2]
    assert module.count(x, has_side_effect=True).item() == before + 3
    assert type(module.count(x, has_side_effect=True)) is np.ndarray
    with pytest.raises(TypeError, match="out 0 is a NumPy array, which JAX cannot write into"):
        jax.jit(lambda: module.count(x, has_side_effect=True, out=np.zeros(1, np.float32)))()
    with pytest.raises(TypeError, match="argument 0 is of type Foreign in a call by JAX; convert it to a JAX array"):
        jax.jit(lambda: module.count(Foreign(), has_side_effect=True))()


class Foreign:
    """An array that JAX does not know."""

    __dlpack__, __dlpack_device__ = X.__dlpack__, X.__dlpack_device__
    shape, dtype = X.shape, X.dtype


def test_arrays_of_numpy_that_jax_does_not_take(module):
    with pytest.raises(ValueError, match=r"add\(\): argument 1 has a foreign byte order .dtype >f4."):
        module.add(jnp.asarray(X), X.astype(">f4"))
    with pytest.raises(TypeError, match=r"add\(\): argument 1 has the element type object, which JAX does not have"):
        module.add(jnp.asarray(X), X.astype(object))


@pytest.fixture(name="made")
def made_fixture(monkeypatch):
    """Record what ``jax.ffi.ffi_call`` is asked for."""
    made = []
    ffi_call = jax.ffi.ffi_call
    monkeypatch.setattr(jax.ffi, "ffi_call", lambda *args, **options: made.append(args) or ffi_call(*args, **options))
    return made


def test_the_same_call_is_made_ready_once(module, made, monkeypatch):
    x = jnp.linspace(0, 1, 5)
    for factor in (2, 3, -0.0, 0.0, np.float32(4)):
        for out in (None, x, spec((5,))):
            np.testing.assert_array_equal(module.scale(x, factor=factor, out=out), x * np.float32(factor))
    assert np.signbit(module.scale(x, factor=-0.0)[1])
    assert len(made) == 3
    module.scale(x[:4], factor=1)
    module.scale(jnp.arange(5), factor=1)
    module.scale(x, factor=1, vmap_method="sequential")
    module.scale(x, factor=1, input_output_aliases={0: 0})
    module.scale(x, factor=1, has_side_effect=True)
    assert len(made) == 8
    assert module.scale(x, factor=1, out=(x,))[0].shape == module.scale(x, factor=1, out=spec((5,), np.int32)).shape
    assert len(made) == 9
    monkeypatch.setattr("kernix.calling.by_jax._MOST_KEPT", 3)
    for size in range(10, 20):
        assert module.scale(np.ones(size, np.float32), factor=1, out=spec((size,))).shape == (size,)
    assert len(module.scale._jax_calls._kept) <= 3
    jax.jit(lambda x: module.scale(x, factor=1))(x)
    assert len(module.scale._jax_calls._kept) <= 3
    assert module.scale(x, factor=1, out=spec((5,), np.int32)).dtype == np.int32


def test_a_call_that_jax_refuses_is_not_kept(module, monkeypatch):
    def refuse(*_, **__):
        raise TypeError("as JAX does")

    x, wanted = jnp.asarray(X), {"factor": 1, "vmap_method": "broadcast_all"}
    with monkeypatch.context() as refusing:
        refusing.setattr(jax.ffi, "ffi_call", lambda *_, **__: refuse)
        with pytest.raises(TypeError, match="as JAX does"):
            module.scale(x, **wanted)
    np.testing.assert_array_equal(module.scale(x, **wanted), X)


@pytest.mark.parametrize("no", [np.False_, 0, None])
def test_side_effects_are_a_matter_of_truth(fresh_name, no):
    module = kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE)
    for has_side_effect in (no, False):
        result = module.add_one(jnp.asarray(X), has_side_effect=has_side_effect)
        np.testing.assert_array_equal(result, X + 1)


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: np.zeros_like(X), id="NumPy"),
        pytest.param(lambda: np.ma.zeros(X.shape, np.float32), id="masked"),
        pytest.param(lambda: np.zeros_like(X).view(type("Own", (np.ndarray,), {})), id="a class of its own"),
        pytest.param(Foreign, id="DLPack"),
    ],
)
def test_memory_that_jax_would_not_write_into(module, make):
    x = jnp.asarray(X)
    for description in (read_only(np.zeros_like(X)), x):
        np.testing.assert_array_equal(module.scale(x, factor=1, out=description), X)
    assert module.count(x, out=np.float32(0)).shape == ()
    with pytest.raises(TypeError, match=r"out 0 is (a NumPy array|of type Foreign), which JAX cannot write into"):
        module.scale(x, factor=1, out=make())


def test_threads(module):
    results = [None] * 8
    start = threading.Barrier(len(results))

    def work(i):
        start.wait()
        results[i] = np.asarray(jax.jit(lambda x: module.scale(x, factor=i))(X))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, i * X)


# --- What is live ----------------------------------------------------------------------------------------------------


def test_a_registered_function_is_what_is_live_under_its_name(fresh_name):
    first = kernix.load_cpp_inline(fresh_name, kernels.constant(1))
    x = np.zeros(1, np.float32)
    compiled = jax.jit(first.value)
    assert first.value.target == f"{fresh_name}.value"
    assert (first.value(x), first.value(jnp.asarray(x)), compiled(x)) == (1, 1, 1)
    second = kernix.load_cpp_inline(fresh_name, kernels.constant(2), replace=True)
    for function in (first.value, second.value):
        assert (function(x), function(jnp.asarray(x)), compiled(x)) == (2, 2, 2)


def test_a_function_that_is_not_registered_stays_what_it_was(fresh_name):
    modules = [kernix.load_cpp_inline(fresh_name, kernels.constant(n), auto_register=False) for n in (1, 2)]
    x = np.zeros(1, np.float32)
    assert [module.value(x) for module in modules] == [1, 2]
    assert [module.value(jnp.asarray(x)) for module in modules] == [1, 2]
    assert modules[0].value.target == f"kernix.{modules[0].content_hash}.value"
    assert modules[0].value.target in kernix.list_registered_targets()


def test_the_prefix_of_a_target(fresh_name):
    module = kernix.load_cpp_inline(fresh_name, kernels.ADD_ONE, target_prefix=f"{fresh_name}_prefix")
    assert module.add_one.target == f"{fresh_name}_prefix.add_one"
    np.testing.assert_array_equal(module.add_one(jnp.asarray(X)), X + 1)


def test_code_for_another_platform_than_the_arrays_are_on(fresh_name):
    source = """
    #include "brainevent/common.h"
    // @BE f
    void f(BE::Tensor y, BE::Span<const BE::Tensor>, cudaStream_t) {}
    """
    module = kernix.load_cuda_inline(fresh_name, source, compute_capability="sm_90", auto_register=False)
    for _ in range(2):
        with pytest.raises(
            TypeError, match=r"f\(\) is CUDA code, which runs on the GPU, but its arguments are on the CPU"
        ):
            module.f(jnp.asarray(X))
        with pytest.raises(TypeError, match=r"but JAX's default device is on the CPU: use jax.device_put"):
            module.f(out=spec((2,)))
    with pytest.raises(jax.errors.JaxRuntimeError, match="f"):  # only JAX knows where a compiled function runs
        jax.jit(module.f)(X)


# --- Parameters beyond arrays and attributes -------------------------------------------------------------------------


@pytest.fixture(scope="module", name="extended")
def extended_fixture(place):
    return kernix.load_cpp_inline(
        "extended",
        """
        #include "brainevent/common.h"
        // @BE sum args... ret
        void sum(BE::Span<const BE::Tensor> xs, BE::Tensor y) {
            for (int64_t i = 0; i < y.numel(); ++i) {
                float sum = 0;
                for (const BE::Tensor& x : xs) sum += x.data_ptr<float>()[i];
                y.data_ptr<float>()[i] = sum;
            }
        }
        // @BE plus arg arg? ret
        void plus(const BE::Tensor a, const BE::Tensor* b, BE::Tensor y) {
            for (int64_t i = 0; i < y.numel(); ++i)
                y.data_ptr<float>()[i] = a.data_ptr<float>()[i] + (b ? b->data_ptr<float>()[i] : 100);
        }
        // @BE copies arg rets...
        void copies(const BE::Tensor x, BE::Span<BE::Tensor> ys) {
            for (BE::Tensor& y : ys) *y.data_ptr<float>() = *x.data_ptr<float>();
        }
        // @BE reversed arg ret scratch:arg0.nbytes() device_ordinal
        void reversed(const BE::Tensor x, BE::Tensor y, BE::Scratch room, int device) {
            float* copy = room.as<float>();
            for (int64_t i = 0; i < x.numel(); ++i) copy[i] = x.data_ptr<float>()[i];
            for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = copy[x.numel() - 1 - i] + device;
        }
        """,
    )


@pytest.mark.parametrize("asarray", [jnp.asarray, np.asarray], ids=["JAX", "NumPy"])
def test_extended_parameters(extended, asarray):
    x = asarray(X)
    np.testing.assert_array_equal(extended.sum(x, x, x), 3 * X)
    np.testing.assert_array_equal(extended.plus(x), X + 100)
    np.testing.assert_array_equal(extended.plus(x, None), X + 100)
    np.testing.assert_array_equal(extended.plus(x, x), 2 * X)
    if asarray is np.asarray or jax.__version_info__ >= (0, 6):
        np.testing.assert_array_equal(extended.reversed(x), X[::-1, ::-1])
    else:
        with pytest.raises(jax.errors.JaxRuntimeError, match="'device_ordinal' needs .* use jaxlib 0.6.0 or newer"):
            extended.reversed(x)
    one = x[:1, 1]
    out = [asarray(np.empty(1, np.float32)) for _ in range(3)]
    assert [float(y[0]) for y in extended.copies(one, out=out)] == [1, 1, 1]
    with pytest.raises(
        TypeError, match=r"plus\(\) takes 1 to 2 arrays, but 3 were given: y is a result.*a, b=None, /,"
    ):
        extended.plus(x, x, x)
    with pytest.raises(TypeError, match=r"copies\(\) has 0 or more results: pass"):
        extended.copies(x)


# --- Attributes ------------------------------------------------------------------------------------------------------


class Broken:
    """Something that claims to be a number."""

    def __index__(self):
        raise ValueError("I am broken")


class Column:
    """Something that NumPy can convert to an array, like a column of a data frame."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.dtype = self._values.dtype
        self.shape = self._values.shape

    def mask(self):
        raise AssertionError("pandas has this method")

    def __array__(self, dtype=None, copy=None):
        return self._values.astype(dtype or self.dtype)


def convert(kind, value):
    return convert_attributes("f", {"a": kind}, {"a": value})["a"].value


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("bool", True, True),
        ("bool", np.bool_(False), False),
        ("bool", 1, True),
        ("int8", -128, -128),
        ("uint8", np.int64(255), 255),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("int64", np.array(5), 5),
        ("int32", True, 1),
        ("int8", -128.0, -128),
        ("uint64", np.float32(2**63), 2**63),
        ("bool", 1.0, True),
        ("float32", 0.1, float(np.float32(0.1))),
        ("float32", 3, 3.0),
        ("float32", np.float64(2.5), 2.5),
        ("float32", float("inf"), float("inf")),
        ("float64", 0.1, 0.1),
        ("float16", 1.5, 0x3E00),
        ("float16", np.float16(-2), 0xC000),
        ("float16", np.uint16(3), 0x4200),
        ("bfloat16", 1.5, 0x3FC0),
        ("bfloat16", ml_dtypes.bfloat16(-2), 0xC000),
        ("bfloat16", float("inf"), 0x7F80),
        ("bfloat16", 256, 0x4380),
        ("bfloat16", 257.0, 0x4380),
        ("bfloat16", 1 + 2**-8 + 2**-40, 0x3F81),  # not by way of a float32, which is halfway
        ("bfloat16", -0.0, 0x8000),
        ("float64", Fraction(1, 4), 0.25),
        ("int64", Fraction(2**53 + 1), 2**53 + 1),
        ("uint64", np.longdouble(2**63) + 1, 2**63 + 1),
        ("float32", np.longdouble(1e30), float(np.float32(1e30))),
        ("float64", np.longdouble(0.5), 0.5),
        ("float64", np.longdouble("inf"), float("inf")),
        ("string", "text", "text"),
        ("string", b"\xff\0", b"\xff\0"),
        ("int32[]", [1, 2], [1, 2]),
        ("int32[]", np.array([1.0, 2.0]), [1, 2]),
        ("float32[]", (0.5, 1), [0.5, 1.0]),
        ("float64[]", np.array([[1.0, 2], [3, 4]]), [1, 2, 3, 4]),
        ("float32[]", np.float32([[0.1], [0.2]]), [float(np.float32(0.1)), float(np.float32(0.2))]),
        ("int32[]", [[1, 2], (3, 4)], [1, 2, 3, 4]),
        ("bool[]", np.array([True, False]), [True, False]),
        pytest.param("int32[]", Column([1, 2]), [1, 2], id="column"),
        pytest.param("float64[]", Column([0.5, 2]), [0.5, 2.0], id="column of the very type"),
        ("bfloat16[]", [1.5], [0x3FC0]),
        ("int8[]", [], []),
    ],
)
def test_values_become_the_declared_type(kind, value, expected):
    converted = convert(kind, value)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize("kind", ["int32[]", "uint8[]", "float32[]", "float64[]"])
@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8", "float64", ">i4", ">f4"])
def test_arrays_and_lists_of_them_are_converted_at_once(kind, dtype, monkeypatch):
    monkeypatch.setattr("kernix.calling.attributes._element", None)  # what looks at them one by one
    values = np.array([[1, 0], [1, 1]], dtype)
    expected = np.array([1, 0, 1, 1], kind.removesuffix("[]")).tolist()
    for given in (values, values.tolist(), values.reshape(-1).tolist(), jnp.asarray(values.astype(bool))):
        converted = convert(kind, given)
        assert converted == expected
        assert set(map(type, converted)) == set(map(type, expected))


def test_plain_values_of_foreign_byte_order_are_converted():
    assert convert("float32", np.array(2.5, ">f4")) == 2.5
    assert convert("int32[]", np.array([1, 2], ">i2")) == [1, 2]
    assert convert("uint8[]", np.array([1, 2], ">i8")) == [1, 2]


@pytest.mark.parametrize("value", [0.1, -3.3e38, 1e-40, 65504.0, 1.00390625, 1.01171875, float("nan"), 3.3e38])
def test_bfloat16_is_rounded_as_ml_dtypes_does(value):
    assert convert("bfloat16", value) == ml_dtypes.bfloat16(value).view(np.uint16)


@pytest.mark.parametrize(
    ("kind", "value", "error", "message"),
    [
        ("int8", 128, ValueError, "128, which does not fit int8 .-128 to 127"),
        ("uint32", -1, ValueError, "-1, which does not fit uint32"),
        ("uint64", 2**64, ValueError, "does not fit uint64"),
        ("bool", 2, ValueError, "does not fit bool"),
        ("int32", 1.5, ValueError, "is 1.5; it must be a whole number for int32"),
        ("bool", float("nan"), ValueError, "is nan; it must be a whole number for bool"),
        ("int64", 2.0**63, ValueError, "is 9223372036854775808, which does not fit int64"),
        ("int64", float("inf"), ValueError, "is inf; it must be a whole number for int64"),
        ("float32", 1e39, ValueError, "does not fit float32"),
        ("float32", 2**24 + 1, ValueError, "the integer 16777217, which float32 cannot hold exactly"),
        pytest.param("float64", 10**400, ValueError, "does not fit float64", id="float64 of a huge integer"),
        ("float16", 65536.0, ValueError, "does not fit float16"),
        ("float16", 2049, ValueError, "the integer 2049, which float16 cannot hold exactly"),
        ("bfloat16", 1e39, ValueError, "does not fit bfloat16"),
        pytest.param("float16", 10**400, ValueError, "does not fit float16", id="float16 of a huge integer"),
        pytest.param("bfloat16", 10**400, ValueError, "does not fit bfloat16", id="bfloat16 of a huge integer"),
        ("bfloat16", 3.4e38, ValueError, "does not fit bfloat16"),
        ("float32", 1j, TypeError, "is of type complex; it must be a number for float32"),
        ("float32", "1", TypeError, "is of type str"),
        ("float32", None, TypeError, "attribute 'a' is None; it must be a number for float32"),
        ("float32", [1.0], TypeError, "is of type list"),
        ("float32", np.ones(2), TypeError, "is of type ndarray"),
        ("string", 3, TypeError, "is of type int; it must be a str or bytes"),
        ("string", "a\udc80", ValueError, "has a lone surrogate at 1, which UTF-8 cannot encode; pass bytes"),
        ("int32[]", 3, TypeError, "is of type int; it must be a list, tuple or array of int32"),
        ("int32[]", "12", TypeError, "is of type str; it must be a list"),
        ("int32[]", [1, None], TypeError, "at element 1 is of type NoneType"),
        ("uint8[]", [1, 256], ValueError, "at element 1 is 256, which does not fit uint8"),
        ("int32[]", [[1, 2], [3]], TypeError, "at element 0 is of type list"),
        ("int32[]", {1, 2}, TypeError, "is of type set; it must be a list"),
        ("int32[]", {1: 2}, TypeError, "is of type dict; it must be a list"),
        ("int32[]", np.ma.masked_array([1, 2], [True, False]), TypeError, "is of type MaskedArray"),
        ("float32", np.ma.masked, TypeError, "is of type MaskedConstant; it must be a number for float32"),
        ("int32", np.ma.masked_array(3, True), TypeError, "is of type MaskedArray; it must be a whole number"),
        ("float64[]", [1.0, np.ma.masked], TypeError, "at element 1 is of type MaskedConstant"),
        pytest.param("float32", 10**5000, ValueError, "is an integer of 16610 bits, which does not fit", id="huge"),
        pytest.param("int32", -(10**5000), ValueError, "is an integer of 16610 bits, which does not", id="huge int"),
        pytest.param("int32[]", [10**5000], ValueError, "at element 0 is an integer of 16610 bits", id="huge element"),
        pytest.param("float64", Fraction(10**400), ValueError, "is a Fraction that no float can hold", id="fraction"),
        ("float64", np.longdouble("1e4000"), ValueError, r"is 1e\+4000, which no float can hold"),
        ("int32", Fraction(10**17 + 1, 10**17), ValueError, r"is a Fraction close to 1\.0, but not a whole number"),
        ("int32", Fraction(1, 2), ValueError, r"is 0\.5; it must be a whole number for int32"),
        ("int32", np.longdouble("inf"), ValueError, "is inf; it must be a whole number for int32"),
        pytest.param("int32", Fraction(10**400), ValueError, "is an integer of 1329 bits", id="whole fraction"),
        ("int32", Broken(), TypeError, "is of type Broken, which does not convert to a number: I am broken"),
        ("bfloat16", 257, ValueError, "is the integer 257, which bfloat16 cannot hold exactly; pass a float"),
        ("int32[]", np.array(3), TypeError, "is a single number; it must be a list"),
        ("int32[]", np.array([1, 2**31]), ValueError, "at element 1 is 2147483648, which does not fit int32"),
        ("uint8[]", np.array([3.0, -1.0]), ValueError, "at element 1 is -1, which does not fit uint8"),
        ("int32[]", np.array([1.0, np.inf]), ValueError, "at element 1 is inf; it must be a whole number"),
        ("float32[]", np.array([1, 2**24 + 1]), ValueError, "at element 1 is the integer 16777217, which float32"),
        ("float32[]", np.array([1, 1e39]), ValueError, r"at element 1 is 1e\+39, which does not fit float32"),
        pytest.param("int32[]", Column([1, None]), TypeError, "at element 1 is of type NoneType", id="column"),
        ("int32[]", None, TypeError, "is None; it must be a list, tuple or array of int32"),
    ],
)
def test_values_that_do_not_fit_are_refused(kind, value, error, message):
    with pytest.raises(error, match=message):
        convert(kind, value)


@pytest.mark.parametrize("value", [jnp.float32(1), jnp.ones(2)], ids=["number", "array"])
def test_traced_elements_are_refused(value):
    with pytest.raises(TypeError, match="attribute 'a' at element 1 is traced by JAX.*static_argnames"):
        jax.jit(lambda x: convert("float32[]", [1.0, x]))(value)


@pytest.fixture(scope="module", name="collections")
def collections_fixture(place):
    """Functions with a string and arrays among their attributes."""
    types = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
    parts = ['#include "brainevent/common.h"']
    parts.append("// @BE length ret attr.text:string")
    parts.append("void length(BE::Tensor y, std::string_view text) {")
    parts.append("    y.data_ptr<int32_t>()[0] = text.size() == 0 ? 0 : text.back() * 1000 + text.size(); }")
    for name in types:
        c_type = {"float32": "float", "float64": "double"}.get(name, f"{name}_t")
        parts.append(f"// @BE sum_{name} ret attr.values:{name}[]")
        parts.append(f"void sum_{name}(BE::Tensor y, BE::Span<const {c_type}> values) {{")
        parts.append("    double sum = 0; for (auto value : values) sum = 2 * sum + static_cast<double>(value);")
        parts.append("    *y.data_ptr<float>() = static_cast<float>(sum); }")
    return kernix.load_cpp_inline("collections", "\n".join(parts))


@pytest.mark.parametrize("out", [spec((1,)), np.zeros(1, np.float32)], ids=["JAX", "NumPy"])
@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("values", [[1, 2, 100], (3,), [], np.array([[1, 2], [3, 4]]), [True, False]], ids=str)
def test_array_attributes(collections, name, values, out):
    expected = 0
    for value in np.ravel(values):
        expected = 2 * expected + int(value)
    assert collections[f"sum_{name}"](values=values, out=out)[0] == expected


@pytest.mark.parametrize("out", [spec((1,)), np.zeros(1, np.float32)], ids=["JAX", "NumPy"])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_real_array_attributes(collections, name, out):
    assert collections[f"sum_{name}"](values=[0.5, 1, np.float16(2)], out=out)[0] == 6


@pytest.mark.parametrize("out", [spec((1,), np.int32), np.zeros(1, np.int32)], ids=["JAX", "NumPy"])
def test_string_attributes(collections, out):
    assert collections.length(text="some text", out=out)[0] == ord("t") * 1000 + 9
    assert collections.length(text="é", out=out)[0] % 1000 == 2
    assert collections.length(text="", out=out)[0] == 0
    assert collections.length(text=b"t\xff\0t", out=out)[0] == ord("t") * 1000 + 4


def test_missing_and_unknown_attributes(module):
    with pytest.raises(TypeError, match=r"scale\(\) needs the attribute factor: float32 by keyword"):
        module.scale(X)
    with pytest.raises(TypeError, match=r"scale\(\) has no attribute 'faktor'; its attributes: factor: float32"):
        module.scale(X, faktor=1)
    with pytest.raises(TypeError, match=r"add\(\) has no attribute 'factor'; its attributes: none"):
        module.add(X, X, factor=1)


# --- Signatures ------------------------------------------------------------------------------------------------------

SHOWN = """
#include "brainevent/common.h"
// @BE every arg:float32[2] arg arg? ret device_ordinal attr.n:int32 attr.x:float32?
void every(BE::In<float, 2> weights, const BE::Tensor bias, const BE::Tensor* mask, BE::Tensor y, int device, int n,
           float x = 1) {}
// @BE rest arg args... arg:int32 rets... scratch:1024 ret.token
void rest(const BE::Tensor first, BE::Span<const BE::Tensor> all, BE::In<int> last, BE::Span<BE::Tensor> outs,
          BE::Scratch memory) {}
// @BE clash arg arg arg arg ret attr.n:int32
void clash(const BE::Tensor out, const BE::Tensor in, const BE::Tensor out_, const BE::Tensor, BE::Tensor y, int n) {}
"""


def test_a_signature_without_tokens_shows_the_same_names(fresh_name):
    source = (
        '#include "brainevent/common.h"\n// @BE f\nvoid f(BE::In<float> x, const BE::Tensor* mask, BE::Out<float> y) {}'
    )
    module = kernix.load_cpp_inline(fresh_name, source)
    assert str(module.f).removeprefix(f"{fresh_name}.") == "f(x: float32, mask=None, /, *, out=None)"


def test_signatures_show_the_names_of_cpp(fresh_name):
    module = kernix.load_cpp_inline(fresh_name, SHOWN)
    assert str(module.every).removeprefix(f"{fresh_name}.") == (
        "every(weights: float32[2], bias, mask=None, /, *, n: int32, x: float32 = ..., out=None)"
    )
    assert str(module.rest).removeprefix(f"{fresh_name}.") == "rest(first, *args, out=None)"
    assert str(inspect.signature(module.rest)).startswith("(first, /, *args, out")
    assert str(module.clash).removeprefix(f"{fresh_name}.") == "clash(out_, in_, out__, arg3, /, *, n: int32, out=None)"
    every, rest = module.every._signature, module.rest._signature
    assert (every.arguments, every.results, every.defaults) == (Count(2, 3), Count(1, 1), {"x"})
    assert (rest.arguments, rest.results, rest.order_tokens) == (Count(2, None), Count(0, None), ("ret.token",))
    assert [str(count) for count in (Count(1, 1), Count(1, 3), Count(2, None))] == ["1", "1 to 3", "2 or more"]
    assert inspect.signature(module.every).parameters["mask"].default is None
    with pytest.raises(TypeError, match=r"rest\(\) has tokens for the order of side effects.*ffi_call"):
        module.rest(X)


# --- Names of attributes ---------------------------------------------------------------------------------------------

# Those of the call itself, of what it calls in kernix and in JAX (jax/_src/ffi.py), and of Python.
NAMES = [
    "out",
    "vmap_method",
    "input_output_aliases",
    "has_side_effect",
    "attributes",
    "self",
    "args",
    "kwargs",
    "attrs",
    "arguments",
    "outputs",
    "values",
    "name",
    "target",
    "target_name",
    "call_target_name",
    "result_shape_dtypes",
    "result_avals",
    "input_layouts",
    "output_layouts",
    "operand_layouts",
    "result_layouts",
    "custom_call_api_version",
    "legacy_backend_config",
    "backend_config",
    "api_version",
    "operands",
    "params",
    "avals_in",
    "prim",
    "dims",
    "function",
    "handler",
    "primals",
    "tangents",
    "grid",
    "block",
    "shared",
    "cluster",
    "cooperative",
    "lambda",
    "None",
    "is",
    "platform",
]


@pytest.fixture(scope="module", name="named")
def named_fixture(place):
    parts = ['#include "brainevent/common.h"']
    for name in NAMES:
        parts.append(f"// @BE f_{name} arg ret attr.{name}:float32")
        parts.append(f"void f_{name}(BE::In<float> x, BE::Out<float> y, float value) {{ y[0] = value; }}")
    return kernix.load_cpp_inline("named_attributes", "\n".join(parts))


@pytest.mark.parametrize("name", NAMES)
def test_an_attribute_may_have_any_name(named, name):
    function = named[f"f_{name}"]
    with pytest.raises(TypeError) as left_out:
        function(np.zeros(1, np.float32))
    needs_dict = f'attributes={{"{name}": ...}}' in str(left_out.value)
    assert needs_dict == (name in kernix.calling.call.OPTIONS or keyword.iskeyword(name))
    given = {"attributes": {name: 2.0}} if needs_dict else {name: 2.0}
    x = jnp.zeros(1, jnp.float32)
    for call in (function, jax.jit(lambda x: function(x, **given))):
        assert float((call(x, **given) if call is function else call(x))[0]) == 2
    assert float(function(np.zeros(1, np.float32), **given)[0]) == 2
    mapped = jax.vmap(lambda x: function(x, vmap_method="sequential", **given))(x[None])
    assert mapped.tolist() == [[2]]


def test_a_name_that_jax_cannot_pass_is_refused_at_load(fresh_name):
    source = '#include "brainevent/common.h"\nvoid f(const BE::Tensor x, BE::Tensor y, float ctx) {}'
    for functions in (["f"], {"f": ["arg", "ret", "attr.ctx"]}, {"f": ["arg", "ret", "attr.ctx:float32"]}):
        with pytest.raises(kernix.KernelRequestError, match="cannot pass an attribute named 'ctx'.*rename"):
            kernix.load_cpp_inline(fresh_name, source, functions)
    module = kernix.load_cpp_inline(fresh_name, source, {"f": ["arg", "ret", "attr.context:float32"]})
    assert module.f(jnp.zeros(1, jnp.float32), context=1).shape == (1,)


# --- What print, help and notebooks show -----------------------------------------------------------------------------

DESCRIBED = """#include "brainevent/common.h"
/* Not this. */

// Multiplies each element by lam.
// Lengths are arbitrary.
// @BE scale
void scale(BE::In<float> x, BE::Out<float> y, float lam) {}

/** Adds
 * one. */
void bare(BE::In<float> x, BE::Out<float> y) {}
void silent(BE::In<float> x, BE::Out<float> y) {}
"""


def test_help_shows_the_signature_and_the_comment(place):
    module = kernix.load_cpp_inline("described", DESCRIBED, ["scale", "bare", "silent"])
    text = pydoc.plain(pydoc.render_doc(module.scale))
    assert "described.scale(x: float32, /, *, lam: float32, out=None)" in text
    assert "Multiplies each element by lam.\n" in text
    assert "Lengths are arbitrary." in text
    assert "Not this" not in text
    assert "save_results" not in text
    assert len(text.splitlines()) < 12
    assert "Adds\none." in module.bare.__doc__
    assert "Adds" not in module.silent.__doc__
    assert "described.silent(" in module.silent.__doc__
    assert "Parameters" in kernix.KernelFunction.__doc__


def test_modules_show_a_table_and_complete_their_names(place):
    module = kernix.load_cpp_inline("tabled", DESCRIBED, ["scale", "bare"])
    lines = str(module).splitlines()
    assert re.match("module 'tabled' on cpu, (from the cache|built in)", lines[0])
    assert lines[1:] == [
        "  scale(x: float32, /, *, lam: float32, out=None)",
        "  bare(x: float32, /, *, out=None)",
    ]
    assert "<code>scale(x: float32, /, *, lam: float32, out=None)</code>" in module._repr_html_()
    assert module._ipython_key_completions_() == ["scale", "bare"]


# --- vmap_method of a function ---------------------------------------------------------------------------------------


def test_a_function_may_have_a_vmap_method(place):
    module = kernix.load_cpp_inline(
        "doubles",
        """#include "brainevent/common.h"
// @BE twice
void twice(BE::In<float, 1> x, BE::Out<float, 1> y) { for (int64_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i]; }
// @BE twice_back
void twice_back(BE::In<float, 1> x, BE::In<float, 1> dy, BE::Out<float, 1> dx) {
    for (int64_t i = 0; i < x.size(); ++i) dx[i] = 2 * dy[i];
}""",
    )
    batch = jnp.ones((2, 3), jnp.float32)
    twice = module.twice.with_vmap_method("sequential")
    assert jax.vmap(twice)(batch).tolist() == [[2] * 3] * 2
    with pytest.raises(Exception, match="vmap_method"):
        jax.vmap(module.twice)(batch)
    differentiable = twice.with_vjp("twice_back")
    assert jax.vmap(jax.grad(lambda x: differentiable(x).sum()))(batch).tolist() == [[2] * 3] * 2
    with pytest.raises(jax.errors.JaxRuntimeError, match="vmap"):
        jax.block_until_ready(jax.vmap(lambda x: twice(x, vmap_method="expand_dims"))(batch))
    assert twice(np.ones(1, np.float32)).tolist() == [2]
