# SPDX-License-Identifier: Apache-2.0
"""Notebooks: cell magics, the progress of a load in a cell, short errors. Only what IPython calls imports IPython."""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Add the cell magics ``%%cuda`` and ``%%cpp`` to IPython. ``%load_ext kernix`` calls this.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The shell that gets the magics.
    """
    from kernix.notebook.magics import add_magics

    add_magics(shell)
