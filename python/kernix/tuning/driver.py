# SPDX-License-Identifier: Apache-2.0
"""The part of CUDA's driver that a tuning needs: events, the end of all work, memory, and what GPU this is."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernix._errors import KernelCallError, KernelToolchainError

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...
_L2_CACHE_SIZE = 38  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
_NAME_BYTES = 256
_NOT_READY = 600  # CUDA_ERROR_NOT_READY
_LONGEST_S = 60.0  # that measured calls may take together
_SPIN_S = 0.002


class KernelNeverEndsError(KernelCallError):
    """A kernel that was started runs on and on."""


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise KernelToolchainError(
            f"there is no NVIDIA driver here ({error}): pass compile_only=True to see which variants compile"
        ) from None
    _check(library, "cuInit", library.cuInit(0))
    return library


def _call(name: str, *arguments: object) -> None:
    library = _library()
    _check(library, name, getattr(library, name)(*arguments))


def _check(library: ctypes.CDLL, name: str, code: int) -> None:
    if code == 0:
        return
    text = ctypes.c_char_p()
    library.cuGetErrorString(code, ctypes.byref(text))
    raise KernelCallError(f"{name}: {(text.value or b'unknown error').decode()} (error {code})")


@contextmanager
def in_context_of(device: int) -> Iterator[None]:
    """Make the context of a GPU, which CUDA's runtime and JAX use, current in this thread."""
    handle, context, old = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuDeviceGet", ctypes.byref(handle), device)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
    try:
        _call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            _library().cuCtxPopCurrent_v2(ctypes.byref(old))  # after a kernel has crashed, this fails, as all does
    finally:
        _library().cuDevicePrimaryCtxRelease_v2(handle)


@contextmanager
def events_of(stream: int) -> Iterator[Callable[[Callable[[], None], int], float]]:
    """Give a function that makes a call a number of times on a stream, and returns the seconds until the last ended."""
    begin, end, took = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
    _call("cuEventCreate", ctypes.byref(begin), 0)
    _call("cuEventCreate", ctypes.byref(end), 0)

    def seconds(call: Callable[[], None], count: int) -> float:
        _call("cuEventRecord", begin, ctypes.c_void_p(stream))
        for _ in range(count):
            call()
        _call("cuEventRecord", end, ctypes.c_void_p(stream))
        _wait_for(end)
        _call("cuEventElapsedTime", ctypes.byref(took), begin, end)
        return took.value / 1e3

    try:
        yield seconds
    finally:
        for event in (begin, end):
            _library().cuEventDestroy_v2(event)


def _wait_for(event: ctypes.c_void_p) -> None:
    """Wait for an event. Unlike cuEventSynchronize(), this ends with Ctrl-C, and if a kernel never ends."""
    library = _library()
    began = time.monotonic()
    while (code := library.cuEventQuery(event)) == _NOT_READY:
        waited = time.monotonic() - began
        if waited > _LONGEST_S:
            raise KernelNeverEndsError(f"has not ended within {_LONGEST_S:.0f} s")
        if waited > _SPIN_S:
            time.sleep(1e-4)
    _check(library, "cuEventQuery", code)


def wait_for_gpu() -> None:
    """Wait until the GPU of the current context has no work. An error of a kernel arrives here."""
    _call("cuCtxSynchronize")


def fill_memory(address: int, count: int, byte: int) -> None:
    """Set bytes of a GPU's memory."""
    _call("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(byte), ctypes.c_size_t(count))


def cache_bytes(device: int) -> int:
    """Return the size of a GPU's L2 cache."""
    handle, size = ctypes.c_int(), ctypes.c_int()
    _call("cuDeviceGet", ctypes.byref(handle), device)
    _call("cuDeviceGetAttribute", ctypes.byref(size), _L2_CACHE_SIZE, handle)
    return size.value


def describe_gpu(device: int) -> dict[str, str]:
    """Return a GPU's name and compute capability, and the driver's version."""
    handle, major, minor, version = (ctypes.c_int() for _ in range(4))
    name = ctypes.create_string_buffer(_NAME_BYTES)
    _call("cuDeviceGet", ctypes.byref(handle), device)
    _call("cuDeviceGetName", name, _NAME_BYTES, handle)
    _call("cuDeviceGetAttribute", ctypes.byref(major), _MAJOR, handle)
    _call("cuDeviceGetAttribute", ctypes.byref(minor), _MINOR, handle)
    _call("cuDriverGetVersion", ctypes.byref(version))
    capability = f"{major.value}.{minor.value}"
    return {"gpu": name.value.decode(), "capability": capability, "driver": f"{version.value} {_kernel_driver()}"}


def _kernel_driver() -> str:
    """Return the version of the driver's part in the kernel, or ``""`` where the kernel does not tell."""
    try:
        with open("/proc/driver/nvidia/version", encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""
