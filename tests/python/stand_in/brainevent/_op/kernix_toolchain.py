# SPDX-License-Identifier: Apache-2.0
"""Where the real package looks for nvcc."""

discovery = "pip"


def get_nvcc_discovery():
    """Return what is preferred."""
    return discovery
