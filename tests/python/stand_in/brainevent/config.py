# SPDX-License-Identifier: Apache-2.0
"""The pin of the compute capability."""

_pinned = None


def set_compute_capability(value=None):
    """Pin a list of architectures, or none."""
    global _pinned
    _pinned = [value] if isinstance(value, str) else value


def get_compute_capability():
    """Return the pinned architectures."""
    return _pinned
