# SPDX-License-Identifier: Apache-2.0
"""The pages tell the truth: the examples run, the links lead somewhere, the folder table is complete."""

import contextlib
import dataclasses
import inspect
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import kernels
import pytest

import kernix
from kernix import _environment

ROOT = pathlib.Path(__file__).parents[2]
CONTRIBUTING = ROOT / "docs" / "contributing.md"
PAGES = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "client/README.md", "common/README.md", "kernel/README.md")),
    *sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "daemon").glob("*/README.md")]),
]


@dataclasses.dataclass
class Block:
    """A fenced block of a page: `info` is what follows the fence, the language first."""

    page: pathlib.Path
    line: int
    info: list[str]
    text: str

    def __str__(self):
        return f"{self.page.name}:{self.line}"


def blocks(*languages):
    """Return the blocks in these languages, in the order of the pages."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in re.finditer(r"^( *)```(\w[^\n]*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
            block = Block(page, text.count("\n", 0, match.start()) + 1, match[2].split(), match[3])
            if block.info[0] in languages:
                found.append(block)
    return found


def on_page(name, language):
    """Return the texts of one page's blocks in a language."""
    return [block.text for block in blocks(language) if block.page.name == name]


def has_gpu():
    """Return whether JAX has a GPU here."""
    import jax

    return jax.default_backend() == "gpu"


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python(block, forget, request):
    """Each block runs by itself, and prints what the comments behind its ``print`` lines say."""
    if "gpu" in block.info and not has_gpu():
        pytest.skip("needs a GPU")
    if "torch" in block.info:
        pytest.importorskip("torch", reason="PyTorch is not installed")
    if "brainevent" in block.info:
        request.getfixturevalue("brainevent_stand_in")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * block.line + block.text, str(block.page), "exec"), {"__name__": "__main__"})
    expected = re.findall(r"^print\(.*  # (.*)$", block.text, re.MULTILINE)
    assert expected
    assert printed.getvalue().splitlines() == expected


# What the commands of the pages find around them.
FILES = {"add_one.cpp": kernels.ADD_ONE, "vector_add.cu": kernels.VECTOR_ADD}


def commands(block):
    """Return the kernixctl commands of a block, each with the output that the page shows for it."""
    parts = re.split(r"^ *[$#] ", block.text, flags=re.MULTILINE)[1:]
    lines = [part.partition("\n") for part in parts]
    return [(command, output) for command, _, output in lines if command.startswith("kernixctl")]


def pattern_of(output, store):
    """Return what a page's output may be in reality: other numbers and digests, another store, `...` for anything."""
    pattern = re.escape(output).replace(re.escape("/home/ada/.cache/kernix"), re.escape(str(store)))
    pattern = re.sub(r"[0-9a-f]{8}\\\.\\\.\\\.", "[0-9a-f]+", pattern).replace(r"\.\.\.", ".*")
    pattern = re.sub(r"\d+\\\.\d(\\ [KM]iB)", r"\\d+[.]\\d\1", pattern)
    return re.sub(r"(built\\ in\\ )\d+", r"\1\\d+", pattern)


@pytest.mark.parametrize("block", [block for block in blocks("console") if commands(block)], ids=str)
def test_kernixctl(block, own_place, tmp_path):
    """The commands of a block run one after the other against a daemon of their own, and say what the page shows."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "kernixctl").symlink_to(_environment.program("kernixctl"))
    environment = own_place.environment | {
        "KERNIXD": _environment.program("kernixd"),
        "KERNIX_SITE_PACKAGES": os.pathsep.join(_environment.site_packages()),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    start_daemon = ("kernixctl cache stats", "")
    for command, shown in [start_daemon, *commands(block)]:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if shown:
            assert re.fullmatch(pattern_of(shown, own_place.store), done.stdout), f"{command}\n{done.stdout}"


def flags_of(program, *command):
    """Return the flags that a command's --help tells of, each as a list of its spellings."""
    told = subprocess.run(
        [_environment.program(program), *command, "--help"], check=True, capture_output=True, text=True
    ).stdout
    lines = re.findall(r"^  (-{1,2}[A-Za-z][\w,-]*)", told, re.MULTILINE)
    return [flag for line in lines for flag in line.split(",") if flag not in ("-h", "--help")]


COMMANDS = [
    (),
    ("doctor",),
    ("status",),
    ("cache", "stats"),
    ("cache", "list"),
    ("cache", "show"),
    ("cache", "purge"),
    ("cache", "verify"),
    ("web",),
    ("trace",),
    ("compile",),
    ("build",),
    ("record",),
    ("prefetch",),
    ("warmup",),
    ("describe",),
    ("reload",),
    ("shutdown",),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_flag_of_kernixctl_is_documented(command):
    page = (ROOT / "docs" / "cli.md").read_text()
    flags = flags_of("kernixctl", *command)
    assert flags
    assert [flag for flag in flags if not re.search(re.escape(flag) + r"(?![\w-])", page)] == []


def test_every_flag_of_kernixd_is_documented():
    page = "".join((ROOT / "docs" / name).read_text() for name in ("operations.md", "reference.md"))
    flags = flags_of("kernixd")
    assert flags
    settings = {flag: flag.removeprefix("--").replace("upstream-", "upstream.").replace("-", "_") for flag in flags}
    assert [flag for flag in flags if f"`{settings[flag]}`" not in page and flag not in page] == []


def test_every_event_of_the_log_is_documented():
    folders = [ROOT / "daemon", ROOT / "common"]
    sources = [path for folder in folders for path in folder.rglob("*.[ch]*") if not path.stem.endswith("_test")]
    calls = [
        names
        for path in sources
        for names in re.findall(
            r'\b(?:Log|LogOf|FormatLogLine)\([^";]*"([a-z_]+)"(?: : "([a-z_]+)")?', path.read_text()
        )
    ]
    logged = {name for names in calls for name in names if name}
    assert {"ready", "build_failed", "build_cancelled", "grpc"} <= logged
    section = (ROOT / "docs" / "reference.md").read_text().partition("\n## Log lines\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert (sorted(logged - listed), sorted(listed - logged)) == ([], [])


# Literals that look like a variable of a user's and are none.
NOT_READ = {
    "CICC_PATH": "in what nvcc prints",
    "CICC_NEXT_PATH": "in what nvcc prints",
    "NVVMIR_LIBRARY_DIR": "in what nvcc prints",
    "LD_TRACE_LOADED_OBJECTS": "set for a program that kernixd asks",
}


def variables_in_sources():
    """Return the environment variables that the sources name in a literal, but for the settings of kernixd."""
    prefixes = "KERNIX|BRAINEVENT|CUDA|GCC|GRPC|LD|LISTEN|NOTIFY|NVCC|XDG"
    whole = "KERNIXD|CXX|HOME|USER|LOGNAME|TMPDIR|[A-Z_]*PATH"
    sources = [
        path
        for folder in ("client", "common", "daemon", "python/kernix", "python/src")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".cc", ".h", ".py") and not path.stem.endswith("_test")
    ]
    found = {
        name for path in sources for name in re.findall(rf'"((?:{prefixes})_[A-Z_]*[A-Z]|{whole})"', path.read_text())
    }
    return found - NOT_READ.keys()


# Flags of kernixd that only the command line has.
NO_SETTINGS = {
    "--check-config",
    "--config",
    "--cuda-include-directory",
    "--cuda-library-directory",
    "--describe-toolchain",
    "--host-compiler",
    "--nvcc",
    "--oneshot-fd",
    "--version",
}


def test_every_environment_variable_is_documented():
    page = (ROOT / "docs" / "environment.md").read_text()
    settings = {flag for flag in flags_of("kernixd") if flag not in NO_SETTINGS}
    read = variables_in_sources() | {"KERNIX_" + flag.removeprefix("--").replace("-", "_").upper() for flag in settings}
    assert {"CXX", "KERNIX_ADDRESS", "KERNIX_JOBS", "KERNIX_SOCKET"} <= read
    assert sorted(name for name in read if f"`{name}`" not in page) == []
    for_users = set(re.findall(r"`(KERNIX_\w+)`", page.partition("## Work on kernix itself")[0]))
    assert sorted(for_users - read) == []


def test_every_variable_of_make_is_documented():
    makefile = (ROOT / "Makefile").read_text()
    made = {"CURDIR", "MAKE", "MAKEFILE_LIST", *re.findall(r"^([A-Z_]+) :=", makefile, re.MULTILINE)}
    read = set(re.findall(r"\$\(([A-Z_]+)\)", makefile)) - made
    assert {"PYTHON", "MUTANTS"} <= read
    page = (ROOT / "docs" / "environment.md").read_text().partition("## Work on kernix itself")[2]
    assert sorted(name for name in read if f"`{name}`" not in page) == []


def test_every_public_name_is_in_the_api_reference():
    page = (ROOT / "docs" / "api.md").read_text()
    other_names = {"CompilationError"}  # of what is there under its own
    assert [name for name in kernix.__all__ if f"::: kernix.{name}\n" not in page and name not in other_names] == []


@pytest.fixture(name="prefix", scope="module")
def prefix_fixture(tmp_path_factory):
    """Where libkernix is installed, out of the build folder that this package comes from."""
    build = pathlib.Path(kernix.__file__).parents[2]
    if not (build / "CMakeCache.txt").exists():
        pytest.skip("kernix does not come from a build folder: there is no libkernix to install")
    prefix = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, capture_output=True)
    return prefix


def test_cpp(prefix, own_place, tmp_path):
    """The program of docs/cpp.md is built against the installed package and prints what its comment says."""
    (cmake_lists,) = on_page("cpp.md", "cmake")
    program, *others = on_page("cpp.md", "cpp")
    (tmp_path / "CMakeLists.txt").write_text(cmake_lists + "target_sources(program PRIVATE others.cc)\n")
    (tmp_path / "main.cc").write_text(program)
    (tmp_path / "others.cc").write_text("\n".join(others))
    build = tmp_path / "build"
    configure = ["cmake", "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"]
    for command in (configure, ["cmake", "--build", build]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    environment = own_place.environment | {"PATH": f"{prefix / 'bin'}:{os.environ['PATH']}"}
    environment.pop("KERNIXD", None)
    done = subprocess.run([build / "program"], env=environment, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (re.findall(r"std::cout.*// (.*)", program)[0].split(), "")


def loop():
    """Return the commands that the page for contributors repeats."""
    (block,) = re.findall(r"^## The loop\n\n```console\n(.*?)^```$", CONTRIBUTING.read_text(), re.MULTILINE | re.DOTALL)
    return [line.removeprefix("$ ").partition("  #")[0].strip() for line in block.splitlines()]


@pytest.mark.parametrize("command", loop())
def test_the_loop_of_contributors(command):
    """Each command is one that works: its targets are there, and its filters select a test."""
    build = pathlib.Path(kernix.__file__).parents[2]
    if not (build / "build.ninja").exists():
        pytest.skip("kernix does not come from a build folder")
    words = shlex.split(command)
    if words[0] == "make":
        words.insert(1, "--dry-run")
    elif words[0] == "ninja":
        words = ["ninja", "-C", str(build), "-t", "query", *words[3:]]
    elif "pytest" in words:
        words = [sys.executable, *words[1:], "--collect-only", "--quiet"]
    elif words[0].startswith("build/"):
        words[0] = str(build / words[0].removeprefix("build/"))
        if not os.access(words[0], os.X_OK):
            pytest.skip("the C++ tests are not built")
        words.append("--gtest_list_tests")
    else:
        assert os.access(ROOT / words[0], os.X_OK)
        return
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert done.stdout.strip()


def test_every_load_is_on_the_cpp_page():
    page = (ROOT / "docs" / "cpp.md").read_text()
    loads = [name for name in kernix.__all__ if re.match("load_(c|many)", name)]
    assert {"load_cpp_dir", "load_many"} <= set(loads)
    parameters = [
        parameter.name
        for load in (kernix.load_cpp_inline, kernix.load_cuda_inline)
        for parameter in inspect.signature(load).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    assert {"defines", "keep"} <= set(parameters)
    assert [name for name in (*loads, *parameters) if not re.search(rf"`{name}[`=]", page)] == []


def test_headers_of_kernels_are_installed(prefix):
    (folder,) = re.findall(r"`<prefix>/(include/[^`]*)`", (ROOT / "docs" / "cpp.md").read_text())
    installed = {path.relative_to(prefix / folder) for path in (prefix / folder).rglob("*.h")}
    assert installed == {path.relative_to(ROOT / "kernel") for path in (ROOT / "kernel").rglob("*.h")}


def anchor_of(heading):
    """Return the anchor that a heading gets when the page is shown."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE) if anchor else []
        assert not anchor or anchor in map(anchor_of, headings), target


def folders_with_sources():
    """Return the folders of this tree that the architecture page should have a line for."""
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], check=True, capture_output=True, text=True).stdout.split()
    divided = {"client", "daemon", "kernel", "proto", "python"}  # a line for each of their parts
    folders = [path.split("/")[:-1] for path in tracked if "/" in path and not path.startswith(".")]
    return sorted({"/".join(parts[: 2 if parts[0] in divided else 1]) for parts in folders})


def test_folder_table_is_complete():
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("not a git checkout: what belongs to the tree is not known")
    table = re.findall(r"^\| (`[^|]*) \|", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    named = [name for cell in table for name in re.findall(r"`([^`]+)`", cell)]
    assert [name for name in named if not (ROOT / name).is_dir()] == []
    covered = " ".join(f" {name}/" for name in named)
    assert [folder for folder in folders_with_sources() if f" {folder}/" not in covered] == []
