# SPDX-License-Identifier: Apache-2.0
"""Functions of a module called on tensors of PyTorch in host memory; tests/gpu has those on a GPU."""

import warnings

import numpy as np
import pytest

import kernix

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

SOURCE = """
#include "brainevent/common.h"
// @BE inc arg ret
void inc(const BE::Tensor x, BE::Tensor y) {
    const int64_t n = x.dtype() == BE::DType::Complex64 ? 2 * x.numel() : x.numel();
    for (int64_t i = 0; i < n; ++i) y.data_ptr<float>()[i] = x.data_ptr<float>()[i] + 1;
}
"""


@pytest.fixture(scope="module", name="module")
def module_fixture(place):
    return kernix.load_cpp_inline("torch_kernels", SOURCE, auto_register=False)


@pytest.fixture(autouse=True)
def quiet_fixture():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the prototypes that PyTorch warns of
        yield


def conjugated():
    return torch.tensor([1 + 2j, 3 + 4j], dtype=torch.complex64).conj()


# --- What a tensor says is what a kernel sees ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: torch.tensor(1 + 2j).conj().imag, id="a negated number"),
        pytest.param(lambda: conjugated().imag[:1], id="one negated element"),
        pytest.param(lambda: conjugated().imag, id="negated elements with gaps"),
        pytest.param(lambda: torch._neg_view(torch.ones(3)), id="negated elements"),
        pytest.param(lambda: torch.arange(6.0).reshape(2, 3).T, id="transposed"),
        pytest.param(lambda: torch.ones(1).expand(3), id="expanded"),
        pytest.param(lambda: torch.zeros(0), id="empty"),
        pytest.param(lambda: torch.nn.Parameter(torch.ones(2)).detach(), id="detached"),
        pytest.param(lambda: torch.ones(2).as_subclass(type("Own", (torch.Tensor,), {})), id="a class of its own"),
    ],
)
def test_arguments(module, make):
    x = make()
    y = module.inc(x)
    assert isinstance(y, torch.Tensor)
    assert torch.equal(y, x + 1)


def test_a_conjugated_argument(module):
    x = conjugated()
    assert torch.equal(module.inc(x), x + (1 + 1j))


@pytest.mark.parametrize("make", [lambda: torch._neg_view(torch.zeros(3)), lambda: conjugated()[:1].imag])
def test_a_negated_result_is_refused(module, make):
    y = make()
    before = y.clone()
    with pytest.raises(ValueError, match="result 0 is a view that conjugates or negates its values"):
        module.inc(torch.ones(y.shape), out=y)
    assert torch.equal(y, before)


# --- Gradients -------------------------------------------------------------------------------------------------------


def test_a_tensor_that_requires_a_gradient_is_refused_where_gradients_are_computed(module):
    x = torch.ones(3, requires_grad=True)
    message = r"inc\(\): argument 0 requires a gradient, which a kernel does not provide: pass its .detach\(\)"
    with pytest.raises(TypeError, match=message):
        module.inc(x)
    with pytest.raises(TypeError, match="argument 0 requires a gradient"):
        module.inc(2 * x)
    with pytest.raises(TypeError, match="result 0 requires a gradient"):
        module.inc(torch.ones(3), out=x)
    with torch.no_grad():
        assert module.inc(x).tolist() == [2, 2, 2]
        assert module.inc(x, out=x) is x
    assert x.tolist() == [2, 2, 2]
    assert x.requires_grad


def test_a_kernel_in_an_autograd_function(module):
    class Inc(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return module.inc(x)

        @staticmethod
        def backward(_, dy):
            return dy

    x = torch.ones(3, requires_grad=True)
    Inc.apply(x).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_a_tangent_is_not_lost(module):
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(torch.ones(3), torch.ones(3))
        with pytest.raises(TypeError, match="argument 0 has a tangent, which a kernel does not provide"):
            module.inc(x)


def test_a_result_counts_as_written_to(module):
    """Autograd keeps tensors for the backward pass, and refuses to go on when one was changed meanwhile."""
    w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    loss = (w * x).sum()
    module.inc(x, out=x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with torch.inference_mode():
        y = torch.ones(3)
        assert module.inc(y, out=y).tolist() == [2, 2, 2]


# --- Tensors without memory of their own -----------------------------------------------------------------------------


def fake():
    with torch._subclasses.fake_tensor.FakeTensorMode():
        return torch.empty(3)


def freed():
    tensor = torch.ones(3)
    tensor.untyped_storage().resize_(0)
    return tensor


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: torch.eye(3).to_sparse(), "is not dense .layout torch.sparse_coo.: pass its", id="sparse"),
        pytest.param(lambda: torch.nested.nested_tensor([torch.ones(2)]), "is not dense .layout nested", id="nested"),
        pytest.param(
            lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
            "is quantised .torch",
            id="quantised",
        ),
        pytest.param(lambda: torch.empty(3, device="meta"), "is on the device meta, which has no memory", id="meta"),
        pytest.param(fake, "is a FakeTensor, which is not a plain tensor", id="fake"),
        pytest.param(
            lambda: torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])),
            "is a MaskedTensor, which is not a plain tensor: pass the tensor in it",
            id="masked",
        ),
        pytest.param(lambda: torch._efficientzerotensor(3), "has no memory: the address", id="zeros"),
        pytest.param(freed, "has no memory: the address of its elements is null", id="freed"),
    ],
)
def test_tensors_without_memory_are_refused(module, make, message):
    x = make()
    with pytest.raises((TypeError, ValueError), match=rf"inc\(\): argument 0 {message}"):
        module.inc(x, out=np.empty(3, np.float32))
    with pytest.raises((TypeError, ValueError), match=rf"inc\(\): result 0 {message}"):
        module.inc(np.ones(3, np.float32), out=x)


@pytest.mark.parametrize("transform", ["vmap", "grad", "functionalize"])
def test_transformed_tensors_are_refused(module, transform):
    transformed = getattr(torch.func, transform)(lambda x: module.inc(x).sum())
    with pytest.raises((TypeError, ValueError), match=r"inc\(\): argument 0 (has no memory|requires a gradient)"):
        transformed(torch.ones(2, 3))


def test_a_call_that_a_trace_does_not_see_is_refused(module):
    x = torch.arange(3.0)
    with pytest.raises(
        TypeError, match=r"inc\(\): argument 0 is in a function that torch.jit.trace records, but the trace cannot"
    ):
        torch.jit.trace(lambda x: 2 * module.inc(x), x)
    assert module.inc(x).tolist() == [1, 2, 3]


def test_a_kernel_in_a_custom_op_is_traced(module):
    @torch.library.custom_op("kernix_test_torch::inc", mutates_args=())
    def inc(x: torch.Tensor) -> torch.Tensor:
        return module.inc(x)

    inc.register_fake(torch.empty_like)
    x = torch.arange(3.0)
    traced = torch.jit.trace(lambda x: 2 * inc(x), x)
    assert traced(x + 1).tolist() == [4, 6, 8]
