# SPDX-License-Identifier: Apache-2.0
"""Access to the memory of arrays from NumPy, PyTorch, CuPy, and other libraries with DLPack."""

from __future__ import annotations

import functools
import math
import sys
from abc import ABC, abstractmethod
from contextlib import nullcontext
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

from kernix import _core
from kernix.jax.interop import ONLY_DESCRIBES, imported_jax, is_description

CPU, CUDA = "CPU", "CUDA"

#: Maps names of element types, as in NumPy and ml_dtypes, to XLA_FFI_DataType (xla/ffi/api/c_api.h).
_XLA_TYPES = {
    "bool": 1,
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "uint8": 6,
    "uint16": 7,
    "uint32": 8,
    "uint64": 9,
    "float16": 10,
    "float32": 11,
    "float64": 12,
    "complex64": 15,
    "bfloat16": 16,
    "complex128": 18,
    "float8_e5m2": 19,
    "float8_e4m3fn": 20,
    "float8_e4m3b11fnuz": 23,
    "float8_e5m2fnuz": 24,
    "float8_e4m3fnuz": 25,
    "float8_e4m3": 28,
    "float8_e3m4": 29,
    "float8_e8m0fnu": 33,
}
#: Smaller than a byte: JAX packs them for a kernel, and no other library does.
_ONLY_IN_JAX = ("float4_e2m1fn", "int2", "int4", "uint2", "uint4")
_NAMES = {number: name for name, number in _XLA_TYPES.items()}

# DLDataTypeCode (dlpack.h): kinds whose names end with the number of bits, and kinds with a fixed name.
_DLPACK_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_DLPACK_NAMES = {
    6: "bool",
    7: "float8_e3m4",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
}

# DLDeviceType (dlpack.h), by the platform that can use the memory.
_DLPACK_DEVICES = {CPU: (1, 3), CUDA: (2, 3, 13)}
_HOST, _GPU = 1, 2
_DLPACK_METHODS = ("__dlpack__", "__dlpack_device__")


class View(NamedTuple):
    """The memory of an array. Valid while `owner` exists."""

    data: int
    type: int  # XLA_FFI_DataType
    shape: tuple[int, ...]
    nbytes: int
    device: int | None  # number of the GPU that owns the memory; None for host memory
    owner: Any

    def core(self) -> tuple[int, int, tuple[int, ...]]:
        """Return the memory in the form that libkernix takes."""
        return self.data, self.type, self.shape


class Library(ABC):
    """An array library's part of a call. Errors are ``TypeError`` or ``ValueError`` and do not name the array."""

    @abstractmethod
    def view(self, array: Any, platform: str, stream: int | None, *, writable: bool) -> View:
        """Return the memory of `array`, ready for use on `stream`. Results must be `writable`."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
        """Make an array on the device of `like`. The element type may come from any library."""

    # Of libraries without streams and current devices, and of those whose streams are unknown.

    def stream(self, like: Any) -> int:
        """Return the current stream of the device of `like`, as a ``cudaStream_t``."""
        return 0

    def device(self, like: Any) -> Any:
        """Return a context in which the device of `like` is current."""
        return nullcontext()

    def memory_for(self, like: Any, stream: int | None) -> Any:
        """Return a context in which new memory on the device of `like` belongs to `stream`."""
        return nullcontext()


def dtype_name(number: int) -> str:
    """Return the name of an XLA_FFI_DataType."""
    return _NAMES[number]


def is_array(value: Any) -> bool:
    """Return whether a kernel can be called on the memory of `value`."""
    numpy = sys.modules.get("numpy")
    is_scalar = numpy is not None and isinstance(value, numpy.generic)
    return is_scalar or (all(hasattr(value, name) for name in _DLPACK_METHODS) and not isinstance(value, type))


def is_on_gpu(array: Any) -> bool:
    """Return whether an array is in the memory of a GPU, rather than in host memory that GPUs can access."""
    try:
        return bool(array.__dlpack_device__()[0] == _GPU)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return False  # view() reports the problem later


def library_of(array: Any) -> Library:
    """Return the library that handles `array`."""
    for name, library in _LIBRARIES.items():
        module = sys.modules.get(name)
        if module is not None and library.owns(module, array):
            found: Library = library(module)
            return found
    for method in _DLPACK_METHODS:
        if not hasattr(array, method):
            if is_description(array):
                raise TypeError(ONLY_DESCRIBES)
            raise TypeError(f"is of type {type(array).__qualname__}, which is not an array: it has no {method}()")
    return _Dlpack()


def plain_arrays() -> _core.PlainArrays | None:
    """Return the fast path for plain NumPy arrays, or ``None`` before NumPy is imported."""
    numpy = sys.modules.get("numpy")
    return _plain_arrays(numpy) if hasattr(numpy, "__version__") else None  # not while NumPy is still being imported


@functools.cache
def _plain_arrays(numpy: Any) -> _core.PlainArrays:
    return _core.PlainArrays(numpy.ndarray, numpy.empty, _NumPy._types)


class _NumPy(Library):
    """Host memory, read directly. Covers arrays that NumPy does not export, such as bfloat16 and read-only ones."""

    # Known dtypes, because reading a dtype's name is slow. Only those of this machine's byte order. PlainArrays reads
    # this dict.
    _types: ClassVar[dict[Any, int]] = {}

    def __init__(self, module: ModuleType) -> None:
        self._numpy = module

    def _type(self, dtype: Any) -> int:
        if dtype not in self._types:
            self._types[dtype] = _xla_type(dtype.name)
        return self._types[dtype]

    @staticmethod
    def owns(module: ModuleType, array: Any) -> bool:
        return isinstance(array, (module.ndarray, module.generic))

    def view(self, array: Any, platform: str, stream: int | None, *, writable: bool) -> View:
        if platform != CPU:
            raise TypeError("is a NumPy array, in host memory, but the function runs on a GPU: pass a GPU array")
        if not array.dtype.isnative:
            raise ValueError(f"has a foreign byte order (dtype {array.dtype.str})")
        if type(array) is not self._numpy.ndarray and hasattr(array, "mask"):
            raise TypeError("is a masked array, whose mask a kernel does not see: pass its .filled() or its .data")
        flags = array.flags
        if writable and not flags.writeable:
            raise ValueError("is read-only")
        if not (flags.c_contiguous and flags.aligned):
            if writable:
                raise ValueError("is not contiguous in row-major (C) order; write into a contiguous array and copy it")
            array = array.copy(order="C")
        memory = self._numpy.asarray(array)
        address = memory.__array_interface__["data"][0]
        return View(address, self._type(array.dtype), array.shape, array.nbytes, None, memory)

    def empty(self, shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
        return self._numpy.empty(shape, name_of_dtype(dtype) if _is_foreign(dtype) else dtype)


class _Dlpack(Library):
    """Any array with ``__dlpack__``. kernix can read and write such arrays, but cannot make them."""

    def view(self, array: Any, platform: str, stream: int | None, *, writable: bool) -> View:
        jax = imported_jax()
        if writable and jax is not None and isinstance(array, jax.Array):
            raise TypeError("is a JAX array, which must not be written to")
        device_type, _ = array.__dlpack_device__()
        if device_type not in _DLPACK_DEVICES[platform]:
            where = "host memory" if device_type == _HOST else f"memory of another device (DLPack type {device_type})"
            runs = "the CPU" if platform == CPU else "a GPU"
            raise TypeError(f"is in {where}, but the function runs on {runs}")
        tensor = _export(array, stream if device_type not in _DLPACK_DEVICES[CPU] else None)
        if writable:
            _check_writable(tensor)
        if not tensor.contiguous:
            return self._copied(array, platform, stream, writable=writable)
        code, bits, lanes = tensor.dtype
        nbytes = math.prod(tensor.shape) * bits * lanes // 8
        if nbytes and not tensor.data:
            raise ValueError("has no memory: the address of its elements is null")
        kind, number = tensor.device
        device = number if kind == _GPU else None
        return View(tensor.data, _xla_type(_name_of_dlpack(code, bits, lanes)), tensor.shape, nbytes, device, tensor)

    def _copied(self, array: Any, platform: str, stream: int | None, *, writable: bool) -> View:
        raise ValueError("is not contiguous in row-major (C) order; pass a contiguous copy")

    def empty(self, shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
        raise TypeError(
            f"kernix cannot make an array like {type(like).__qualname__}: pass arrays to write into as out="
        )


class _Torch(_Dlpack):
    def __init__(self, module: ModuleType) -> None:
        self._torch = module

    @staticmethod
    def owns(module: ModuleType, array: Any) -> bool:
        return hasattr(module, "Tensor") and isinstance(array, module.Tensor)

    def view(self, array: Any, platform: str, stream: int | None, *, writable: bool) -> View:
        self._check_tracing()
        self._check_memory(array)
        self._check_gradient(array)
        array = array.detach() if array.requires_grad else array
        if array.is_conj() or array.is_neg():
            array = self._resolved(array, platform, writable)
        try:
            with self.device(array):  # PyTorch exports no memory while another GPU is current
                view = super().view(array, platform, stream, writable=writable)
        except RuntimeError as error:
            raise TypeError(
                f"has no memory that PyTorch exports ({error}); in a function that torch.vmap or torch.func "
                "transforms, make the call in a torch.library.custom_op"
            ) from error
        if writable and hasattr(self._torch.autograd.graph, "increment_version"):
            self._torch.autograd.graph.increment_version(array)  # as PyTorch's own functions do for what they write
        return view

    def _check_tracing(self) -> None:
        """Refuse a call that PyTorch's tracer would not record, because its result would become a constant."""
        if self._torch.jit.is_tracing():
            raise TypeError(
                "is in a function that torch.jit.trace records, but the trace cannot record a kernel; make the call in "
                "a torch.library.custom_op"
            )

    def _check_memory(self, tensor: Any) -> None:
        """Refuse tensors whose values are not in their memory."""
        if type(tensor).__torch_dispatch__ is not self._torch.Tensor.__torch_dispatch__:
            raise TypeError(f"is a {type(tensor).__qualname__}, which is not a plain tensor: pass the tensor in it")
        if tensor.layout is not self._torch.strided or tensor.is_nested:
            layout = "nested" if tensor.is_nested else str(tensor.layout)
            raise TypeError(f"is not dense (layout {layout}): pass its .to_dense(), or the tensors that it consists of")
        if tensor.is_quantized:
            raise TypeError(f"is quantised ({tensor.dtype}): pass its .int_repr(), or its .dequantize()")
        if tensor.is_meta:
            raise TypeError("is on the device meta, which has no memory: pass a tensor on a real one")

    def _check_gradient(self, tensor: Any) -> None:
        """Refuse tensors that would lose a gradient while PyTorch records gradients."""
        if tensor.requires_grad and self._torch.is_grad_enabled():
            raise TypeError(
                "requires a gradient, which a kernel does not provide: pass its .detach(), call under torch.no_grad(), "
                "or make the call in a torch.autograd.Function"
            )
        if self._torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
            raise TypeError("has a tangent, which a kernel does not provide: pass the primal, or write a jvp() for it")

    def _resolved(self, tensor: Any, platform: str, writable: bool) -> Any:
        """Resolve a lazily conjugated or negated view, if it may be copied (see :meth:`_copied`)."""
        if writable:
            raise ValueError("is a view that conjugates or negates its values; write into a tensor and copy it")
        if platform != CPU:
            raise ValueError("is a view that conjugates or negates; pass its .resolve_conj().resolve_neg()")
        return tensor.resolve_conj().resolve_neg()

    def _copied(self, array: Any, platform: str, stream: int | None, *, writable: bool) -> View:
        # On a GPU, a copy would have to live until the stream has used it, at a cost that the user may not expect.
        if writable or platform != CPU:
            raise ValueError("is not contiguous in row-major (C) order; pass its .contiguous()")
        return self.view(array.contiguous(), platform, stream, writable=False)

    def empty(self, shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
        if not isinstance(dtype, self._torch.dtype):
            name = name_of_dtype(dtype)
            dtype = getattr(self._torch, name, None)
            if not isinstance(dtype, self._torch.dtype):
                raise TypeError(f"PyTorch has no element type {name}: pass a NumPy or CuPy array as out=")
        return self._torch.empty(shape, dtype=dtype, device=like.device)

    def stream(self, like: Any) -> int:
        return int(self._torch.cuda.current_stream(like.device).cuda_stream) if like.is_cuda else 0

    def device(self, like: Any) -> Any:
        return self._torch.cuda.device(like.device) if like.is_cuda else nullcontext()

    def memory_for(self, like: Any, stream: int | None) -> Any:
        if stream is None or stream == self.stream(like):
            return nullcontext()
        return self._torch.cuda.stream(self._torch.cuda.ExternalStream(stream, device=like.device))


class _CuPy(_Dlpack):
    def __init__(self, module: ModuleType) -> None:
        self._cupy = module

    @staticmethod
    def owns(module: ModuleType, array: Any) -> bool:
        return hasattr(module, "ndarray") and isinstance(array, module.ndarray)

    def empty(self, shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
        return self._cupy.empty(shape, name_of_dtype(dtype) if _is_foreign(dtype) else dtype)

    def stream(self, like: Any) -> int:
        with like.device:
            return int(self._cupy.cuda.get_current_stream().ptr)

    def device(self, like: Any) -> Any:
        return like.device

    def memory_for(self, like: Any, stream: int | None) -> Any:
        if stream is None or stream == self.stream(like):
            return nullcontext()
        cuda = self._cupy.cuda
        if hasattr(cuda.Stream, "from_external"):  # since CuPy 14
            return cuda.Stream.from_external(_Stream(stream))
        return cuda.ExternalStream(stream, like.device.id)


class _Stream:
    """A stream handle with the protocol that other libraries read."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


_LIBRARIES: dict[str, Any] = {"numpy": _NumPy, "torch": _Torch, "cupy": _CuPy}


def _export(array: Any, stream: int | None) -> _core.DlpackTensor:
    """Request the memory of `array`, ordered after the work on its library's own stream."""
    # In DLPack, CUDA's legacy default stream is 1; as a cudaStream_t, it may also be 0.
    options = {} if stream is None else {"stream": stream or 1}
    try:
        capsule = array.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a library that predates DLPack 1.0
        capsule = array.__dlpack__(**options)
    if type(capsule).__name__ != "PyCapsule":
        kind = type(capsule).__qualname__
        raise TypeError(f"has a __dlpack__() that returned an object of type {kind}; DLPack requires a capsule")
    return _core.DlpackTensor(capsule)


def _check_writable(tensor: _core.DlpackTensor) -> None:
    if tensor.read_only:
        raise ValueError("is read-only")
    if tensor.copied:
        raise ValueError("is copied by its __dlpack__(), so a result would not arrive in it")


def _xla_type(name: str) -> int:
    try:
        return _XLA_TYPES[name]
    except KeyError:
        if name in _ONLY_IN_JAX:
            raise TypeError(f"has the element type {name}, which only calls by JAX have: pass a JAX array") from None
        raise TypeError(f"has the element type {name}, which kernels do not support") from None


def _name_of_dlpack(code: int, bits: int, lanes: int) -> str:
    name = _DLPACK_NAMES.get(code) or f"{_DLPACK_KINDS.get(code, f'of DLPack code {code} and bits ')}{bits}"
    return name if lanes == 1 else f"{name}x{lanes}"


def _is_foreign(dtype: Any) -> bool:
    """Return whether an element type is PyTorch's."""
    return type(dtype).__module__.partition(".")[0] == "torch"


def name_of_dtype(dtype: Any) -> str:
    """Return the name of an element type of any library: ``float32`` for ``torch.float32`` and ``np.float32``."""
    if _is_foreign(dtype):
        return str(dtype).removeprefix("torch.")
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    return name if isinstance(name, str) else str(dtype)
