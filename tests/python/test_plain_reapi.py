# SPDX-License-Identifier: Apache-2.0
"""docs/remote-execution-api.md is true: a plain client that follows it meets kernixd in two implementations."""

import os
import pathlib
import re
import subprocess
import time

import engines
import kernels
import plain_reapi
import pytest
from nodes import Node
from plain_reapi import Blobs, Client, Signer, sha256
from toolkits import copied_wheels

PAGE = plain_reapi.ROOT / "docs" / "remote-execution-api.md"

# Test 2 of RFC 8032, section 7.1.
PRIVATE_KEY = b"""-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7
-----END PRIVATE KEY-----
"""


def page_vector():
    """Return the digest and the bytes of each message on the page, by its name there."""
    vector = {}
    for block in re.findall(r"^```text vector\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        for name, digest, lines in re.findall(r"^(\S.*) = (\S+)\n((?:  [0-9a-f]+\n)*)", block, re.MULTILINE):
            vector[name] = (digest, bytes.fromhex(lines.replace("\n", "")))
    return vector


def computed_vector(folder):
    """Return the same, by the rules of the page."""
    blobs, names = Blobs(), {}

    def note(digest, name, command=None):
        names[name] = plain_reapi.named(digest)
        if command:
            action = plain_reapi.api("Action").FromString(blobs[names[name]])
            names[command] = plain_reapi.named(action.command_digest)

    tree = {"x.h": (b"int x;\n", False)}
    files = {"a.cc": (b"int a;\n", False), "gen.sh": (b"exit 0\n", True), "inc/0/x.h": tree["x.h"]}
    words = ["toolchain/host/g++", "-c", "a.cc", "-o", "a.o"]
    variables = {"PATH": "toolchain/host", "LC_ALL": "C"}
    step = plain_reapi.add_action(blobs, words, variables, files, ["a.o", "a.d"], sha256(b"the toolchain"))
    note(step, "Action of the step", "Command of the step")
    sent = files | {"toolchain/host": "/usr/bin"}
    platform = {"OSFamily": "linux", "ISA": "x86-64"}
    step = plain_reapi.add_action(blobs, words, variables, sent, ["a.o", "a.d"], sha256(b"the toolchain"), platform)
    note(step, "Action for workers", "Command for workers")
    note(plain_reapi.add_folder(blobs, {"host": "/usr/bin"}), "Directory toolchain")
    note(plain_reapi.add_folder(blobs, sent), "Directory for workers")
    note(plain_reapi.add_folder(blobs, tree), "Directory inc/0")
    note(plain_reapi.add_folder(blobs, {"0/x.h": tree["x.h"]}), "Directory inc")
    note(plain_reapi.add_folder(blobs, files), "Directory of the step")

    key, headers = sha256(b"a key"), [("kernix-host-0/a.h", sha256(b"int h;\n"))]
    lists = plain_reapi.shared("HeaderLists")
    lists.list.add(name=[name for name, _ in headers])
    note(plain_reapi.add_address(blobs, "headers", key), "Action of headers", "Command of headers")
    note(blobs.add(lists), "headers")
    salt = plain_reapi.result_salt(key, headers)
    note(plain_reapi.add_address(blobs, "statement", salt), "Action of statement", "Command of statement")
    statement = plain_reapi.statement_of(key, headers, [("artifact", b"an artifact\n")])
    note(blobs.add(statement), "Statement")
    note(blobs.add(Signer(folder, "rfc8032", PRIVATE_KEY).sign(statement)), "statement")
    note(plain_reapi.add_address(blobs, "claim", key), "Action of claim", "Command of claim")
    note(blobs.add(plain_reapi.shared("Claim", node="a node", beat=1)), "claim")
    return {name: (digest, blobs[digest]) for name, digest in names.items()}


def test_the_page_follows_from_its_rules(tmp_path):
    page = page_vector()
    assert page == computed_vector(tmp_path)


@pytest.fixture(name="node")
def node_fixture(request):
    """A function that makes one."""
    made = []

    def make(variables=None, **upstream):
        made.append(Node(variables or {}, **upstream))
        return made[-1]

    before = request.session.testsfailed
    yield make
    for each in made:
        each.close(keep=request.session.testsfailed > before)


@pytest.fixture(name="engine", params=["casd", "buildgrid"], scope="module")
def engine_fixture(request):
    """One engine after the other, which the tests share: each has a source of its own."""
    if request.param == "buildgrid":
        engines.need_buildgrid()
    engine = engines.Casd() if request.param == "casd" else engines.BuildGrid()
    yield engine
    engine.close()


@pytest.fixture(name="source")
def source_fixture(tmp_path, request):
    """A file with a kernel that no other test has."""
    path = tmp_path / "add_one.cpp"
    path.write_text(f"{kernels.ADD_ONE}// {request.node.name}\n")
    return path


def folders_of_compiler():
    """Return the folders that the host compiler searches by itself, in order."""
    command = ["c++", "-E", "-v", "-xc++", "/dev/null"]
    environment = os.environ | {"LC_ALL": "C"}
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stderr
    listed = told.partition("#include <...> search starts here:\n")[2].partition("End of search list.")[0]
    return [pathlib.Path(line.strip()) for line in listed.splitlines()]


def own_header(name):
    """Return the content of this machine's header of a portable name."""
    folder, _, rest = name.partition("/")
    number = int(folder.removeprefix("kernix-host-"))
    return (folders_of_compiler()[number] / rest).read_bytes()


class SharedResult:
    """What an engine has for a key, as a client finds it that knows the page only."""

    def __init__(self, client, key):
        self.client, self.key, self.address = client, key, Blobs()
        self.lists_action = plain_reapi.add_address(self.address, "headers", key)
        self.lists_digest = client.result(self.lists_action)["headers"]
        lists = plain_reapi.shared("HeaderLists").FromString(client.read(self.lists_digest))
        (self.names,) = [list(each.name) for each in lists.list]
        self.headers = [(name, sha256(own_header(name))) for name in self.names]
        self.action = plain_reapi.add_address(self.address, "statement", plain_reapi.result_salt(key, self.headers))
        self.outputs = client.result(self.action)
        self.envelope = plain_reapi.shared("SignedStatement").FromString(client.read(self.outputs["statement"]))
        self.statement = plain_reapi.shared("Statement").FromString(self.envelope.statement)

    def artifact(self):
        """Return the content of the one file."""
        return self.client.read(self.outputs["file-0"])

    def replace(self, envelope):
        """Write another statement of the same result."""
        digest = plain_reapi.digest_of(envelope.SerializeToString())
        self.client.write({plain_reapi.named(digest): envelope.SerializeToString()})
        self.client.put_result(self.action, self.outputs | {"statement": digest})


def test_a_plain_client_finds_what_kernixd_writes(engine, node, source, tmp_path):
    signer, other = Signer(tmp_path, "signer"), Signer(tmp_path, "other")
    writer = node(address=engine.address, write=True, signing_key_file=signer.path)
    assert not writer.compile(source)["from_upstream"]
    key = writer.key()
    writer.stop()
    client = Client(engine.channel)
    found = SharedResult(client, key)

    assert found.names == sorted(found.names)
    assert "kernix-host-0/cstdint" in found.names
    address = [plain_reapi.digest_of(data) for data in found.address.values()]
    assert len(address) == 5  # two actions, two commands, one empty folder
    assert client.missing(address) == set()

    assert found.statement.key == key
    assert [(header.name, header.digest) for header in found.statement.header] == found.headers
    assert found.artifact() == writer.artifact()
    (file,) = found.statement.file
    assert (file.name, file.digest, file.size) == ("artifact", sha256(writer.artifact()), len(writer.artifact()))

    assert signer.has_signed(found.envelope)
    assert not other.has_signed(found.envelope)
    found.envelope.statement += b"\x22\x00"
    assert not signer.has_signed(found.envelope)


def test_kernixd_takes_what_a_plain_client_has_signed(engine, node, source, tmp_path):
    signer = Signer(tmp_path, "signer")
    writer = node(address=engine.address, write=True)
    writer.compile(source)
    key = writer.key()
    writer.stop()
    found = SharedResult(Client(engine.channel), key)
    assert not found.envelope.signature

    careful = {"address": engine.address, "trusted_keys": signer.public_text}
    before = node(**careful)
    assert not before.compile(source)["from_upstream"]  # nobody has signed it
    found.replace(signer.sign(found.envelope.statement))
    after = node(**careful)
    assert after.compile(source)["from_upstream"]
    assert after.artifact() == writer.artifact()


LARGE = """
// @BE large ret
static const volatile unsigned char bytes[3 << 20] = {1};
void large(BE::Tensor y) { *y.data_ptr<float>() = bytes[static_cast<unsigned long>(y.numel())]; }
"""


def test_what_is_larger_than_a_message_is_shared_too(engine, node, tmp_path):
    source = tmp_path / "large.cpp"
    source.write_text('#include "brainevent/common.h"\n' + LARGE)
    sharing = {"address": engine.address, "write": True, "build_once": True}
    writer, reader = node(**sharing), node(**sharing)
    assert not writer.compile(source)["from_upstream"]
    key = writer.key()
    writer.stop()
    assert len(writer.artifact()) > 3 << 20
    assert reader.compile(source)["from_upstream"]
    assert reader.artifact() == writer.artifact()
    blobs = Blobs()
    claimed = Client(engine.channel).result(plain_reapi.add_address(blobs, "claim", key))
    claim = plain_reapi.shared("Claim").FromString(Client(engine.channel).read(claimed["claim"]))
    assert claim.state == 1  # BUILT


@pytest.fixture(name="other_toolkit", scope="module")
def other_toolkit_fixture():
    """The CUDA toolkit of .venv, and the same in another folder."""
    with copied_wheels() as both:
        yield both


def test_nodes_whose_folders_differ_agree_on_keys(engine, node, tmp_path, other_toolkit, request):
    nodes, keys = [], []
    for number, toolkit in enumerate(other_toolkit):
        home = tmp_path / f"home{number}"
        home.mkdir()
        path = f"{toolkit / 'bin'}:{os.environ['PATH']}"
        variables = {"HOME": str(home), "USER": f"user{number}", "PATH": path}
        nodes.append(node(variables, address=engine.address, write=True))
        (home / "vector_add.cu").write_text(f"{kernels.VECTOR_ADD}// {request.node.name}\n")
        loaded = nodes[-1].compile(home / "vector_add.cu", "--arch", "sm_90")
        assert loaded["from_upstream"] == (number == 1)
        keys.append(nodes[-1].key())
        assert f"{toolkit}/bin/nvcc" in nodes[-1].kernixctl("cache", "show", keys[-1].hex()).stdout
        nodes[-1].stop()
    assert keys[0] == keys[1]


@pytest.fixture(name="secured")
def secured_fixture():
    """BuildGrid with TLS and tokens: such an engine, and what a node needs to know of it."""
    engines.need_buildgrid()
    engine = engines.BuildGrid(secured=True)
    files = {"ca_file": "ca.pem", "certificate_file": "client.pem", "key_file": "client.key", "token_file": "token"}
    (engine.folder / "token").write_text(engine.token())
    known = {name: engine.folder / file for name, file in files.items()}
    yield engine, known | {"address": engine.address, "instance": "kernix"}
    engine.close()


def test_nodes_share_by_tls_with_certificates_and_tokens(secured, node, source, tmp_path):
    engine, known = secured
    writer = node(**known, write=True)
    assert not writer.compile(source)["from_upstream"]
    writer.stop()
    assert node(**known).compile(source)["from_upstream"]
    (tmp_path / "token").write_text(engine.token("another secret of thirty-two bytes"))
    stranger = node(**known | {"token_file": tmp_path / "token"})
    assert not stranger.compile(source)["from_upstream"]
    assert "UNAUTHENTICATED" in stranger.upstream_status()["last_error"]
    bare = node(**{name: value for name, value in known.items() if name not in ("certificate_file", "key_file")})
    assert not bare.compile(source)["from_upstream"]


def test_an_expired_token_costs_no_load_and_a_new_one_counts(secured, node, source, tmp_path):
    engine, known = secured
    writer = node(**known, write=True)
    writer.compile(source)
    writer.stop()
    token = tmp_path / "token"
    token.write_text(engine.token(age=2 * 3600))
    late = node(**known | {"token_file": token})
    assert not late.compile(source)["from_upstream"]
    status = late.upstream_status()
    assert status["health"] in ("fails", "broken")
    assert "UNAUTHENTICATED" in status["last_error"]
    assert f"Is the token in {token} right, still valid" in status["last_error"]
    assert status["last_error"] in late.kernixctl("status").stdout
    metrics = late.kernixctl("metrics").stdout
    assert "\nkernix_upstream_retries_total 0\n" in metrics, "another try would not help"
    token.write_text(engine.token())
    deadline = time.monotonic() + 60  # an engine that is broken is asked again after a pause
    while not late.compile(source)["from_upstream"]:
        assert time.monotonic() < deadline
        late.kernixctl("cache", "purge", "--name", "add_one")
    assert late.upstream_status()["health"] == "answers"
