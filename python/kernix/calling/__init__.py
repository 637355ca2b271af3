# SPDX-License-Identifier: Apache-2.0
"""Functions of modules as Python callables: the parameters of a call, and the two ways to make it."""
