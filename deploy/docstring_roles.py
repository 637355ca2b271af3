# SPDX-License-Identifier: Apache-2.0
"""Makes links of the roles in docstrings (``:func:`load_cuda_inline```) for the site; mkdocs.yml names this file."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class Roles(Extension):  # type: ignore[misc]  # griffe is not in the environment that mypy checks
    """Replaces the roles of Sphinx, which help() shows as they are, by the links of mkdocstrings."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one function, class or attribute."""
        if obj.docstring:
            obj.docstring.value = re.sub(r":[a-z]+:`([\w.]+)`", lambda role: _link(obj, role[1]), obj.docstring.value)


def _link(obj: Object, role: str) -> str:
    name = role.removeprefix("kernix.")
    place = next((place for place in (obj.package, obj.module, obj) if name.partition(".")[0] in place.members), None)
    return f"[`{name}`][{place.path}.{name}]" if place else f"`{name}`"
