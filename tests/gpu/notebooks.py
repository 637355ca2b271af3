# SPDX-License-Identifier: Apache-2.0
"""Runs the cells of a real notebook in a real IPython kernel, for tests here and in tests/python."""

import re
import warnings

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

ANSI = re.compile(r"\x1b\[[0-9;]*m")


class _Client(NotebookClient):
    """Runs a notebook and keeps what its cells displayed on the way."""

    def __init__(self, notebook):
        super().__init__(notebook, allow_errors=True, kernel_name="python3", timeout=120)
        self.displayed = {}

    def process_message(self, message, cell, cell_index):
        if message["msg_type"] in ("display_data", "update_display_data"):
            self.displayed.setdefault(cell_index, []).append(message["content"]["data"]["text/plain"])
        return super().process_message(message, cell, cell_index)


class Cell:
    """What one cell gave."""

    def __init__(self, cell, displayed):
        self.displayed = displayed
        outputs = {kind: [o for o in cell.outputs if o.output_type == kind] for kind in ("error", "stream")}
        self.kept = [output.data["text/plain"] for output in cell.outputs if "data" in output]
        self.error = ANSI.sub("", "\n".join(outputs["error"][0].traceback)) if outputs["error"] else None
        self.printed = ANSI.sub("", "".join(output.text for output in outputs["stream"]))


def run_cells(sources, home, **environment):
    """Run all cells, given by name, in one kernel whose files are in the folder `home`; return what each gave."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources.values()])
    nbformat.validate(notebook)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of jupyter's own
        for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
            patch.setenv(variable, str(home / variable))
        for variable, value in environment.items():
            patch.setenv(variable, value)
        client = _Client(notebook)
        client.execute()
    return {name: Cell(notebook.cells[i], client.displayed.get(i, [])) for i, name in enumerate(sources)}
