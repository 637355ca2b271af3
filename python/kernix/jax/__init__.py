# SPDX-License-Identifier: Apache-2.0
"""What kernix needs of JAX: its types, its attributes, its table of targets."""
