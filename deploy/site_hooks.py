# SPDX-License-Identifier: Apache-2.0
"""What MkDocs has to know about this repository; mkdocs.yml names this file.

A page of docs/ reads the same on a forge and on the site, so links that leave docs/ are rewritten here. Links in
README.md, which is no page of the site, are checked here.
"""

from __future__ import annotations

import logging
import pathlib
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = pathlib.Path(__file__).parents[1]
ROOM_PAGES = [*(ROOT / name / "README.md" for name in ("client", "common", "kernel")), *ROOT.glob("daemon/*/README.md")]
log = logging.getLogger("mkdocs.hooks.kernix")  # with --strict, its warnings fail the build


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add SECURITY.md and the pages of rooms, which lie where forges look for them, to the pages."""
    text = (ROOT / "SECURITY.md").read_text().replace("](docs/", "](")
    files.append(File.generated(config, "security.md", content=text))
    for page in ROOM_PAGES:
        text = re.sub(r"\]\((?:\.\./)+(?:docs/)?", "](", page.read_text()).replace("](SECURITY.md", "](security.md")
        files.append(File.generated(config, _name_of(page), content=text))
    return files


def _name_of(page: pathlib.Path) -> str:
    """Return the name of a room's page on the site: ``room-daemon-plan.md``."""
    return "-".join(["room", *page.relative_to(ROOT).parts[:-1]]) + ".md"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Send links that leave docs/ to their pages, and cut words such as ``gpu`` that only tests read from fences."""
    markdown = markdown.replace("](../SECURITY.md", "](security.md")
    for room in ROOM_PAGES:
        markdown = markdown.replace(f"](../{room.relative_to(ROOT)}", f"]({_name_of(room)}")
    return re.sub(r"^( *```[a-z]+) [a-z ]+$", r"\1", markdown, flags=re.MULTILINE)


def on_post_build(config: MkDocsConfig) -> None:
    """Check the links of README.md against the tree and the pages that were built."""
    for target in re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text()):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        if not (ROOT / path).exists():
            log.warning("README.md links to %s, which is not in the repository.", target)
        elif anchor and path and not _has_anchor(pathlib.Path(config.site_dir), path, anchor):
            log.warning("README.md links to %s, but that page has no such anchor.", target)


def _has_anchor(site: pathlib.Path, path: str, anchor: str) -> bool:
    page = site / f"{pathlib.PurePath(path).stem.lower()}.html"  # SECURITY.md is a page, too
    return page.exists() and f'id="{anchor}"' in page.read_text()
