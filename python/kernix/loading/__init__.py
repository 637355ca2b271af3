# SPDX-License-Identifier: Apache-2.0
"""Kernels become modules of this process: requests, the daemon's client, what a load says, the cache."""
