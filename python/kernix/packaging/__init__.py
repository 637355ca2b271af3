# SPDX-License-Identifier: Apache-2.0
"""Packages that ship their kernels: ``python -m kernix bundle``, and hooks for builds of wheels."""
