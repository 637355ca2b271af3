# SPDX-License-Identifier: Apache-2.0
"""Functions of a module called without JAX: on NumPy arrays, and on whatever has DLPack.

PyTorch and CuPy are tested by tests/gpu, where they are installed; here a small exporter stands for them, which hands
out NumPy's capsules, of DLPack 1 and of the version before.
"""

import sys
import threading
import types
import weakref

import jax
import ml_dtypes
import numpy as np
import pytest

import kernix
from kernix import _core
from kernix.jax import targets

X = np.arange(6, dtype=np.float32).reshape(2, 3)

SOURCE = """
#include <chrono>
#include <cstring>
#include <stdexcept>
#include "brainevent/common.h"

// @BE copy arg ret
void copy(const BE::Tensor x, BE::Tensor y) {
    BE_CHECK(x.nbytes() == y.nbytes()) << "the result has another size";
    std::memcpy(y.data_ptr(), x.data_ptr(), x.nbytes());
}

// @BE scale arg ret attr.factor:float64
void scale(const BE::Tensor x, BE::Tensor y, double factor) {
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = factor * x.data_ptr<float>()[i];
}

// @BE describe arg ret
void describe(const BE::Tensor x, BE::Tensor y) {
    int64_t* out = y.data_ptr<int64_t>();
    out[0] = x.ndim();
    for (int i = 0; i < x.ndim(); ++i) out[1 + i] = x.size(i);
}

// @BE iota ret
void iota(BE::Tensor y) {
    for (int64_t i = 0; i < y.numel(); ++i) y.data_ptr<int32_t>()[i] = static_cast<int32_t>(i);
}

// @BE twice arg ret ret
void twice(const BE::Tensor, BE::Tensor, BE::Tensor) {}

// @BE all args... rets...
void all(BE::Span<const BE::Tensor>, BE::Span<BE::Tensor>) {}

// @BE fail arg ret
void fail(const BE::Tensor, BE::Tensor) { throw std::runtime_error("the kernel's own words"); }

// @BE wait arg ret
void wait(const BE::Tensor flag, BE::Tensor done) {
    const volatile int32_t* raised = flag.data_ptr<int32_t>();
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (*raised == 0 && std::chrono::steady_clock::now() < give_up) {}
    *done.data_ptr<int32_t>() = *raised;
}

// Says 1 when it has begun; told 2, writes that to the result.
// @BE handshake arg ret
void handshake(const BE::Tensor flag, BE::Tensor done) {
    volatile int32_t* state = flag.data_ptr<int32_t>();
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    *state = 1;
    while (*state == 1 && std::chrono::steady_clock::now() < give_up) {}
    if (*state == 2) *done.data_ptr<int32_t>() = 2;
}
"""


@pytest.fixture(scope="module", name="module")
def module_fixture(place):
    return kernix.load_cpp_inline("direct", SOURCE)


# --- NumPy -----------------------------------------------------------------------------------------------------------

DTYPES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]


@pytest.mark.parametrize("name", DTYPES)
def test_element_types(module, name):
    x = np.array([0, 1, 1, 0, 1]).astype(getattr(ml_dtypes, name, name))
    y = module.copy(x)
    assert (type(y), y.dtype) == (np.ndarray, x.dtype)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (1,) * 8], ids=str)
def test_shapes(module, shape):
    x = np.ones(shape, np.float32)
    y = module.copy(x)
    assert y.shape == shape
    np.testing.assert_array_equal(y, x)
    description = module.describe(x, out=np.full(1 + len(shape), -1, np.int64))
    assert description.tolist() == [len(shape), *shape]


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(X.T, id="transposed"),
        pytest.param(X[:, ::2], id="strided"),
        pytest.param(X[::-1], id="reversed"),
        pytest.param(np.broadcast_to(X[0], (4, 3)), id="broadcast"),
        pytest.param(np.frombuffer(b"-" + X.tobytes(), np.float32, 6, 1), id="not aligned"),
        pytest.param(np.float32(4), id="scalar"),
        pytest.param(np.frombuffer(X.tobytes(), np.float32), id="read-only"),
    ],
)
def test_inputs_of_any_layout(module, x):
    np.testing.assert_array_equal(module.copy(x), x)


def test_results_are_written_where_the_caller_says(module):
    y = np.zeros_like(X)
    assert module.scale(X, factor=2, out=y) is y
    np.testing.assert_array_equal(y, 2 * X)
    (z,) = module.scale(X, factor=3, out=(y,))
    assert z is y
    assert module.scale(y, factor=2, out=y) is y  # in place
    np.testing.assert_array_equal(y, 6 * X)
    assert module.iota(out=np.empty(3, np.int32)).tolist() == [0, 1, 2]


def test_a_spec_makes_an_array(module):
    class Spec:
        shape, dtype = (4,), np.int64

    y = module.describe(X, out=Spec)
    assert (type(y), y.shape, y.dtype, y.tolist()[:3]) == (np.ndarray, (4,), np.int64, [2, 2, 3])


@pytest.mark.parametrize(
    ("out", "message"),
    [
        pytest.param(np.zeros((3, 2), np.float32).T, "result 0 is not contiguous", id="not contiguous"),
        pytest.param(np.broadcast_to(np.float32(0), (2, 3)), "result 0 is read-only", id="read-only"),
        pytest.param(np.zeros((2, 3), ">f4"), "result 0 has a foreign byte order", id="byte order"),
    ],
)
def test_results_that_cannot_be_written(module, out, message):
    with pytest.raises(ValueError, match=message):
        module.copy(X, out=out)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        pytest.param([1.0], "argument 0 is of type list, which is not an array", id="list"),
        pytest.param(X.astype(">f4"), "argument 0 has a foreign byte order", id="byte order"),
        pytest.param(np.array(["a"]), "argument 0 has the element type str32, which kernels do not support", id="str"),
        pytest.param(np.array([None]), "argument 0 has the element type object", id="object"),
        pytest.param(np.zeros(2, ml_dtypes.int4), "argument 0 has the element type int4", id="int4"),
    ],
)
def test_arguments_that_are_no_arrays_for_a_kernel(module, x, message):
    with pytest.raises((TypeError, ValueError), match=message):
        module.copy(x, out=np.zeros(2, np.float32))


def test_mistakes_before_the_call(module):
    with pytest.raises(TypeError, match="runs on the CPU and takes no stream"):
        module.copy(X, stream=7)
    with pytest.raises(TypeError, match="input_output_aliases= is for JAX; pass the array itself as out="):
        module.copy(X, input_output_aliases={0: 0})
    with pytest.raises(TypeError, match=r"iota\(\) needs an array to know what memory"):
        module.iota()
    with pytest.raises(TypeError, match=r"all\(\) needs an array to know what memory to run on"):
        module.all(out=())
    with pytest.raises(TypeError, match="out 0 is 'y'; it must have shape and dtype"):
        module.copy(X, out="y")
    with pytest.raises(TypeError, match=r"copy\(\): argument 0 is of type list, which is not an array"):
        module.copy([1, 2])
    with pytest.raises(TypeError, match=r"copy\(\): out 0 is <class 'numpy.float32'>; it must have shape"):
        module.copy(X, out=np.float32)
    with pytest.raises(TypeError, match="argument 0 is a masked array"):
        module.copy(np.ma.masked_equal(X, 1))
    with pytest.raises(ValueError, match=r"copy\(\): out 0 .*negative"):
        module.copy(X, out=types.SimpleNamespace(shape=(-1,), dtype=np.float32))
    with pytest.raises(TypeError, match=r"copy\(\) has 1 result, but out= names 2"):
        module.copy(X, out=[X, X])


PLAIN = {
    "plain": X,
    "empty": X[:0],
    "scalar": np.float32(4),
    "transposed": X.T,
    "not aligned": np.frombuffer(b"-" + X.tobytes(), np.float32, 6, 1),
    "byte order": X.astype(">f4"),
    "masked": np.ma.masked_equal(X, 1),
    "matrix": X.view(np.matrix),
    "object": X.astype(object),
    "unknown type": X.astype(np.float16),
    "list": [1.0],
    "JAX": jax.numpy.asarray(X),
}


@pytest.mark.parametrize("name", PLAIN)
def test_what_needs_no_look_from_python(module, name):
    """Calls on arrays that are all plain take a way of their own; anything else is left to the general one."""
    plain = _core.PlainArrays(np.ndarray, np.empty, {np.dtype(np.float32): 11})
    x, handler = PLAIN[name], _core.target_address("direct.copy", "cpu")
    y = plain.call(handler, (x,), None, {})
    assert (y is not None) == (name in ("plain", "empty"))
    if y is None:
        assert plain.call(handler, (X,), (x,), {}) is None
    else:
        np.testing.assert_array_equal(y[0], x)
        out = np.empty_like(x)
        assert plain.call(handler, (x,), (out,), {})[0] is out
        np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("wrap", [lambda array: array, lambda array: Exporter(array)], ids=["NumPy", "DLPack"])
def test_results_need_arrays_of_their_own(module, wrap):
    y = np.zeros(4, np.float32)
    for one, two in [(y, y), (y, y[:]), (y[1:], y[:2]), (y[:2], y.view(np.int16)[3:])]:
        with pytest.raises(ValueError, match=r"twice\(\): results 0 and 1 share memory: pass a separate array"):
            module.twice(X, out=(wrap(one), wrap(two)))
    module.twice(X, out=(wrap(y[2:]), wrap(y[:2])))
    module.twice(X, out=(wrap(y[:0]), wrap(y)))


def test_what_the_kernel_reports(module):
    with pytest.raises(kernix.KernelCallError, match=r"fail.*the kernel's own words"):
        module.fail(X)
    with pytest.raises(RuntimeError, match="the result has another size"):
        module.copy(X, out=np.zeros(2, np.float32))
    with pytest.raises(kernix.KernelCallError, match="9 dimensions"):
        module.copy(np.ones((1,) * 9, np.float32))
    np.testing.assert_array_equal(module.copy(X), X)


def test_other_threads_run_during_a_call(module):
    """The kernel spins until a thread of Python raises its flag: with the GIL held it would until it gives up."""
    flag, done = np.zeros(1, np.int32), np.zeros(1, np.int32)
    thread = threading.Thread(target=lambda: module.wait(flag, out=done), daemon=True)
    thread.start()
    assert done[0] == 0
    flag[0] = 1
    thread.join()
    assert done[0] == 1


def test_a_list_of_results_that_changes_during_the_call(module):
    flag, out = np.zeros(1, np.int32), [np.zeros(1 << 24, np.int32)]
    result, done = weakref.ref(out[0]), []
    module.copy(flag)  # so that the element type is known, and the call needs no look from Python
    thread = threading.Thread(target=lambda: done.append(module.handshake(flag, out=out)))
    thread.start()
    while flag[0] == 0 and thread.is_alive():
        pass
    out.clear()
    held = result() is not None
    flag[0] = 2 if held else 3  # to write what is gone would be the end of all tests
    thread.join()
    assert held
    assert done[0] == (result(),)
    assert result()[0] == 2


def test_a_cuda_function_refuses_host_memory(place):
    source = '#include "brainevent/common.h"\n// @BE nothing arg ret\nvoid nothing(const BE::Tensor x, BE::Tensor y) {}'
    module = kernix.load_cuda_inline("direct_cuda", source, compute_capability="sm_90", auto_register=False)
    with pytest.raises(TypeError, match="argument 0 is a NumPy array, in host memory, but the function runs on a GPU"):
        module.nothing(X)
    with pytest.raises(TypeError, match="argument 0 is in host memory, but the function runs on a GPU"):
        module.nothing(Exporter(X), out=Exporter(X))


# --- DLPack ----------------------------------------------------------------------------------------------------------


class Exporter:
    """An array of another library: it has DLPack and an element type, and nothing of NumPy's."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device
        self.shape, self.dtype = array.shape, array.dtype
        self.asked = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.array.__dlpack__(**options)


class Copier(Exporter):
    """The same that gives copies away."""

    def __dlpack__(self, **options):
        return self.array.__dlpack__(copy=True, **options)


class OldExporter(Exporter):
    """The same from before DLPack 1."""

    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__(stream=stream)


@pytest.mark.parametrize("exporter", [Exporter, OldExporter])
def test_dlpack_arrays(module, exporter):
    x, y = exporter(X), exporter(np.zeros_like(X))
    assert module.scale(x, factor=2, out=y) is y
    np.testing.assert_array_equal(y.array, 2 * X)


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "bfloat16"])  # which NumPy does not export
def test_element_types_through_dlpack(module, name):
    x = np.array([0, 1, 1, 0, 1]).astype(name)
    np.testing.assert_array_equal(module.copy(Exporter(x), out=np.empty_like(x)), x)


def test_a_stream_is_none_of_host_memory(module):
    x = Exporter(X)
    module.copy(x, out=np.empty_like(X))
    assert x.asked == [{"max_version": (1, 0)}]


def test_memory_is_given_back(module):
    x = X.copy()
    before = sys.getrefcount(x)
    for _ in range(3):
        module.copy(Exporter(x), out=np.empty_like(x))
    assert sys.getrefcount(x) == before


def test_dlpack_arrays_that_are_refused(module):
    y = np.empty_like(X)
    with pytest.raises(ValueError, match="argument 0 is not contiguous in row-major"):
        module.copy(Exporter(X.T), out=y)
    with pytest.raises(ValueError, match="result 0 is read-only"):
        module.copy(X, out=Exporter(np.frombuffer(X.tobytes(), np.float32)))
    with pytest.raises(ValueError, match=r"result 0 is copied by its __dlpack__\(\), so a result would"):
        module.copy(X, out=Copier(np.zeros_like(X)))
    module.copy(Copier(X), out=y)
    np.testing.assert_array_equal(y, X)
    with pytest.raises(TypeError, match="argument 0 is in memory of another device .DLPack type 2., but .* the CPU"):
        module.copy(Exporter(X, device=(2, 0)), out=y)
    with pytest.raises(TypeError, match="result 0 is a JAX array, which must not be written to"):
        module.copy(Exporter(X), out=jax.numpy.zeros((2, 3), np.float32))
    with pytest.raises(TypeError, match="result 0: kernix cannot make an array like Exporter: pass"):
        module.copy(Exporter(X))


def test_dlpack_that_is_none(module):
    class NoCapsule(Exporter):
        def __dlpack__(self, **options):
            return 7

    class NoDevice:
        __dlpack__ = X.__dlpack__

    class UsedCapsule(Exporter):
        def __dlpack__(self, **options):
            capsule = self.array.__dlpack__()
            _core.DlpackTensor(capsule)
            return capsule

    y = np.empty_like(X)
    with pytest.raises(TypeError, match=r"copy\(\): argument 0 has a __dlpack__\(\) that returned .* type int; DLPack"):
        module.copy(NoCapsule(X), out=y)
    with pytest.raises(TypeError, match=r"copy\(\): argument 0 is of type .*NoDevice, which is not an array"):
        module.copy(NoDevice())
    with pytest.raises(TypeError, match=r"copy\(\): argument 0 is of type .*NoDevice, .* it has no __dlpack_device__"):
        module.copy(NoDevice(), out=y)
    with pytest.raises(ValueError, match=r"argument 0 has a __dlpack__\(\) that returned a capsule named 'used"):
        module.copy(UsedCapsule(X), out=y)


def test_a_capsule_is_used_once():
    capsule = X.__dlpack__()
    tensor = _core.DlpackTensor(capsule)
    assert (tensor.shape, tensor.dtype, tensor.device, tensor.contiguous) == ((2, 3), (2, 32, 1), (1, 0), True)
    with pytest.raises(ValueError, match="'used_dltensor', which holds no tensor or has already been used"):
        _core.DlpackTensor(capsule)


@pytest.mark.parametrize(
    ("x", "contiguous"), [(X, True), (X.T, False), (X[:1].T, True), (X[:, :0].T, True), (X[:, 1:], False)]
)
def test_contiguity(x, contiguous):
    assert _core.DlpackTensor(x.__dlpack__()).contiguous == contiguous == x.flags.c_contiguous


# --- No JAX ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["not imported", "not installed"])
def test_without_jax(run_python, how):
    assert run_python("without_jax.py", how) == "add_one: [2. 3. 4.]\n"


def test_a_missing_jax_is_searched_for_now_and_then(monkeypatch):
    clock, searches = types.SimpleNamespace(now=100.0), []
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(targets, "time", clock)
    monkeypatch.setattr(targets, "_searched_in_vain", 0.0)
    monkeypatch.setattr("importlib.util.find_spec", searches.append)
    with monkeypatch.context() as hidden:
        hidden.delitem(sys.modules, "jax")
        assert [targets.jax_is_installed() for _ in range(3)] == [False] * 3
        assert searches == ["jax"]
        clock.now += targets._SEARCH_EVERY_S
        assert not targets.jax_is_installed()
        assert searches == ["jax"] * 2
    assert targets.jax_is_installed()  # imported meanwhile
    assert len(searches) == 2
