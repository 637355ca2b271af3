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
log = logging.getLogger("mkdocs.hooks.kernix")  # with --strict, its warnings fail the build


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add SECURITY.md, which lies where forges look for it, to the pages."""
    text = (ROOT / "SECURITY.md").read_text().replace("](docs/", "](")
    files.append(File.generated(config, "security.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Send links to SECURITY.md to its page, and cut words such as ``gpu`` that only the tests read from fences."""
    markdown = markdown.replace("](../SECURITY.md", "](security.md")
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
