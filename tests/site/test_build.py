# SPDX-License-Identifier: Apache-2.0
"""The build of the site fails on what would lead a reader nowhere."""

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(name="tree")
def tree_fixture(tmp_path):
    """A copy of what the site is built from."""
    for name in ("docs", "deploy", "python"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("README.md", "SECURITY.md", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for page in [*ROOT.glob("[ck]*/README.md"), *ROOT.glob("daemon/*/README.md")]:
        (tmp_path / page.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, tmp_path / page.relative_to(ROOT))
    (tmp_path / ".venv-docs").symlink_to(ROOT / ".venv-docs")
    return tmp_path


@pytest.mark.parametrize(
    ("page", "text", "complaint"),
    [
        ("README.md", "[x](docs/nowhere.md)", "README.md links to docs/nowhere.md"),
        ("README.md", "[x](docs/kernels.md#nowhere)", "README.md links to docs/kernels.md#nowhere"),
        ("docs/cli.md", "[x](nowhere.md)", "'cli.md' contains a link 'nowhere.md'"),
        ("docs/cli.md", "[x](kernels.md#nowhere)", "'cli.md' contains a link 'kernels.md#nowhere'"),
        ("docs/new.md", "# In no navigation", "new.md"),
    ],
)
def test_build_fails(tree, page, text, complaint):
    with (tree / page).open("a") as file:
        file.write(f"\n{text}\n")
    done = subprocess.run([tree / "deploy" / "docs.sh"], capture_output=True, text=True)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert complaint in said
    assert "Aborted with 1 warnings in strict mode" in said
