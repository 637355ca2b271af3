# SPDX-License-Identifier: Apache-2.0
"""The parts of JAX that kernix uses: its types, its table of targets."""
