# SPDX-License-Identifier: Apache-2.0
"""Notebooks: cell magics, the progress of a load in a cell, short errors. Only what IPython calls imports IPython."""
