# SPDX-License-Identifier: Apache-2.0
"""Functions of modules as Python callables: what a call takes, and the two ways to make it."""
