# SPDX-License-Identifier: Apache-2.0
"""Two nodes make the same messages of one request, and so does a client that knows docs/remote-execution-api.md only.

The nodes have different users, homes, folders of sources and, in some tests, of their compilers. What they send is
recorded before a real engine.
"""

import os
import pathlib
import re
import shutil
import subprocess
import textwrap
import time

import engines
import kernels
import plain_reapi
import pytest
from nodes import Node
from plain_reapi import Blobs
from recorder import Recorder
from toolkits import copied_wheels

from kernix import _environment

PAGE = (plain_reapi.ROOT / "docs" / "remote-execution-api.md").read_text()
KERNEL = plain_reapi.ROOT / "kernel"
OTHER_USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]  # in no user database: nobody


def block(info):
    """Return the text of the page's one block of a kind."""
    (text,) = re.findall(rf"^```{info}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return text


class User(Node):
    """A node of a user of its own, with a home and a source folder of its own, before an engine that is recorded."""

    def __init__(self, number, prefix, variables, **upstream):
        self.engine = engines.Casd(workers=True)
        self.recorder = Recorder(self.engine)
        self.prefix = prefix
        super().__init__(variables, address=self.recorder.address, **upstream)
        self.home = self.root / f"home{number}"
        self.sources = self.home / ("kernels", "elsewhere/source")[number]
        self.sources.mkdir(parents=True)
        self.more_variables |= {"HOME": str(self.home), "USER": f"user{number}"}

    def own(self):
        """Give the user what is theirs."""
        if self.prefix:
            for path in [self.root, *self.root.rglob("*")]:
                os.chown(path, 65534, 65534, follow_symlinks=False)  # a link may lead to this machine's compiler

    def write(self, name, text):
        """Write a source."""
        (self.sources / name).write_text(text)
        self.own()
        return self.sources / name

    def kernixctl(self, *arguments, check=True):
        """Run kernixctl as the user."""
        command = [*self.prefix, _environment.program("kernixctl"), *arguments]
        return subprocess.run(command, env=self.environment, check=check, capture_output=True, text=True, cwd="/")

    def await_lessons(self):
        """Return when nothing more is learned from what was built; results of that are written, too."""
        deadline = time.monotonic() + 60
        while "\nkernix_lessons 0\n" not in self.kernixctl("metrics").stdout:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def close(self, keep=False):
        super().close(keep)
        self.recorder.close()
        self.engine.close()

    def executed(self):
        """Return the digests of the actions that were to be run, as `hash/size`, in order."""
        sent = self.recorder.sent("Execution", "Execute", "ExecuteRequest")
        return [plain_reapi.named(request.action_digest) for request in sent]

    def message(self, kind, digest):
        """Return a message that was sent."""
        return plain_reapi.api(kind).FromString(self.recorder.blobs()[digest])

    def addresses(self):
        """Return the digests of the actions under which results were written."""
        sent = self.recorder.sent("ActionCache", "UpdateActionResult", "UpdateActionResultRequest")
        return {plain_reapi.named(request.action_digest) for request in sent}


def other_user():
    """Return the words that run a command as another user, if this one may and the other can run kernix."""
    program = [*OTHER_USER, _environment.program("kernixctl"), "--version"]
    may = os.geteuid() == 0 and subprocess.run(program, check=False, capture_output=True, cwd="/").returncode == 0
    return OTHER_USER if may else []


@pytest.fixture(name="users")
def users_fixture(request):
    """A function that makes two nodes, with settings of each."""
    made = []

    def make(*variables, **upstream):
        for number, own in enumerate(variables):
            settings = {name: value[number] if isinstance(value, tuple) else value for name, value in upstream.items()}
            made.append(User(number, other_user() if number else [], own, **settings))
        return made

    before = request.session.testsfailed
    yield make
    for each in made:
        each.close(keep=request.session.testsfailed > before)


def prefix_maps():
    """Return the flags of the compiler's own folders."""
    told = subprocess.run(
        ["c++", "-E", "-v", "-xc++", "/dev/null"],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C"},
    ).stderr
    listed = told.partition("#include <...> search starts here:\n")[2].partition("End of search list.")[0]
    folders = [os.path.normpath(line.strip()) for line in listed.splitlines()]

    def around(folder):
        return sum(folder.startswith(f"{other}/") for other in folders)

    order = sorted(range(len(folders)), key=lambda number: (around(folders[number]), number))
    return [f"-ffile-prefix-map={folders[number]}=kernix-host-{number}" for number in order]


def identity_of_compiler(folder):
    """Return the identity of the host compiler, as kernixd describes it."""
    compiler = shutil.which("c++")
    described = [_environment.program("kernixd"), "--describe-toolchain", folder / "tools", "--host-compiler", compiler]
    environment = os.environ | {"KERNIX_CACHE_DIR": str(folder / "store")}
    subprocess.run(described, check=True, capture_output=True, env=environment)
    description = plain_reapi.message_types()["kernix.toolchain.internal.ToolchainDescription"]
    return description.FromString((folder / "tools").read_bytes()).host.identity


def parted(unit):
    """Return the files of a generated source: what comes before the handlers, and these."""
    sources, mark, handlers = unit.rpartition(b'#line 1 "<kernix>"\n')
    include = b'#include "kernix_handlers.h"\nstatic_assert(true, "");\n'
    header = b"#pragma GCC system_header\n" + handlers
    return {"kernix_handlers.h": (header, False), "unit.cc": (sources + mark + include, False)}


def compute(blobs, unit, salt):
    """Return the digest of the Action of the page's request, by the rules of the page."""
    words = block("text words").split()
    at = words.index("-ffile-prefix-map=FOLDER=kernix-host-N")
    words[at : at + 1] = prefix_maps()
    variables = {
        "LC_ALL": "C",
        "LD_LIBRARY_PATH": "/nonexistent",
        "PATH": f"{pathlib.Path(shutil.which('c++')).parent}:/usr/bin:/bin",
        "PWD": "/proc/self/cwd",
        "SOURCE_DATE_EPOCH": "946684800",
    }
    files = {
        f"kernix/{path.relative_to(KERNEL)}": (path.read_bytes(), False)
        for path in KERNEL.rglob("*.*")
        if path.suffix != ".md"
    }
    files["kernix-source/add_one.cpp"] = (block("cpp request").encode(), False)
    files |= {f"kernix-unit/{name}": file for name, file in parted(unit).items()}
    files["toolchain/host"] = str(pathlib.Path(shutil.which("c++")).parent.resolve())
    outputs = [f"kernix-unit/{name}" for name in ("assembler.d", "unit.d", "unit.o")]
    return plain_reapi.add_action(blobs, words, variables, files, outputs, salt)


def test_the_page_and_two_nodes_agree_on_a_request(users, tmp_path):
    first, second = users({}, {}, steps="prefer-remote", read=False)
    for user in (first, second):
        loaded = user.compile(user.write("add_one.cpp", block("cpp request")))
        assert not loaded["from_upstream"]
    assert len(first.executed()) == 2  # compile and link
    assert first.executed() == second.executed()

    unit = first.kernixctl("compile", str(first.sources / "add_one.cpp"), "--print", "source").stdout.encode()
    blobs = Blobs()
    action = compute(blobs, unit, plain_reapi.tools_salt(identity_of_compiler(tmp_path), workers="instance="))
    sent = first.recorder.blobs()
    assert {name for name in blobs if name not in sent} == set()
    assert plain_reapi.named(action) == first.executed()[0]

    folders = Blobs()
    digest = plain_reapi.named(plain_reapi.add_folder(folders, parted(unit)))
    lines = "\n".join(f"  {line}" for line in textwrap.wrap(folders[digest].hex(), 96))
    assert block("text request") == f"Directory kernix-unit = {digest}\n{lines}\n"


@pytest.fixture(name="toolkits", scope="module")
def toolkits_fixture():
    """The toolkit of .venv, and the same in another folder."""
    with copied_wheels() as both:
        yield both


def build_vector_add(user):
    """Build a CUDA kernel, and return its key as soon as everything is written."""
    user.compile(user.write("vector_add.cu", kernels.VECTOR_ADD), "--arch", "sm_90")
    user.await_lessons()
    key = user.key()
    user.stop()
    return key


def nvcc_of(toolkit):
    """Return variables that choose a toolkit."""
    return {"BRAINEVENT_NVCC_PATH": str(toolkit / "bin" / "nvcc")}


def test_two_toolkits_in_different_folders_are_the_same_actions(users, toolkits):
    first, second = users(
        *map(nvcc_of, toolkits), device_compiles="remote", read=False, write=True, shipped_folders=toolkits
    )
    key = build_vector_add(first)
    assert build_vector_add(second) == key
    assert len(first.executed()) == 4  # cudafe++, cicc, ptxas, fatbinary
    assert sorted(first.executed()) == sorted(second.executed())
    # Of the load: the lists of headers, and the result. Results of steps may name the toolkit's folder.
    common = first.addresses() & second.addresses()
    assert len(common) == 2
    assert plain_reapi.named(plain_reapi.add_address(Blobs(), "headers", key)) in common


def test_two_users_of_one_toolkit_share_every_step(users, toolkits):
    first, second = users(nvcc_of(toolkits[0]), nvcc_of(toolkits[0]), read=False, write=True)
    assert build_vector_add(first) == build_vector_add(second)
    assert first.addresses() == second.addresses()
    assert len(first.addresses()) > 8  # the load, and at least three steps


def test_compilers_in_different_folders_have_the_same_keys(users):
    first, second = users({}, {}, read=True, write=True)
    (second.root / "bin").mkdir()
    (second.root / "bin" / "g++").symlink_to(shutil.which("c++"))
    second.more_variables |= {"CXX": str(second.root / "bin" / "g++")}
    keys = []
    for user in (first, second):
        user.compile(user.write("add_one.cpp", block("cpp request")))
        keys.append(user.key())
        user.await_lessons()
        user.stop()
    assert keys[0] == keys[1]
    assert first.addresses() == second.addresses()
    assert plain_reapi.named(plain_reapi.add_address(Blobs(), "headers", keys[0])) in first.addresses()
