# SPDX-License-Identifier: Apache-2.0
"""The line below a cell that shows where its load stands, and at last what it gave."""

from __future__ import annotations

from IPython.display import DisplayHandle

from kernix.loading.console import ProgressLine

__all__ = ["CellLine"]


class CellLine(ProgressLine):
    """One line of a cell's output. It appears when it is first drawn, and stays: output has its own place."""

    def __init__(self) -> None:
        self._handle = DisplayHandle()
        self._text = ""

    def draw(self, text: str) -> None:
        """Show `text` in place of the earlier text."""
        if text == self._text:
            return
        if self._text:
            self._handle.update({"text/plain": text}, raw=True)
        else:
            self._handle.display({"text/plain": text}, raw=True)
        self._text = text
