# SPDX-License-Identifier: Apache-2.0
"""Autotuning: compiles the variants of a kernel, checks and times them, and keeps the fastest."""
