# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the real package, as a tree."""


class BrainEventError(Exception):
    """Base of all."""


class KernelError(BrainEventError):
    """Base of what concerns kernels."""


class KernelCompilationError(KernelError):
    """A kernel did not compile."""


class KernelToolchainError(KernelError):
    """A compiler is missing."""


class NvccNotFoundError(KernelToolchainError):
    """No nvcc."""


class HostCompilerNotFoundError(KernelToolchainError):
    """No C++ compiler."""


class HeaderNotFoundError(KernelToolchainError):
    """No header."""


class GpuArchDetectionError(KernelToolchainError):
    """No GPU."""


class CompilationError(KernelCompilationError):
    """The compiler said no."""

    def __init__(self, message, compiler_output="", command="", stage="compile"):
        super().__init__(message)
        self.compiler_output, self.command, self.stage = compiler_output, command, stage


class HostCompilerIncompatibleError(CompilationError):
    """nvcc does not take the C++ compiler."""


class UnsupportedArchError(KernelToolchainError):
    """nvcc does not know the GPU."""

    def __init__(self, message, *, compiler_output="", command="", stage=""):
        super().__init__(message)


class KernelLoadError(KernelError):
    """A library does not open."""


class KernelRegistrationError(KernelError):
    """A name is taken."""
