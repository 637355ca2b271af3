# SPDX-License-Identifier: Apache-2.0
"""A plain client of the Remote Execution API, written from docs/remote-execution-api.md.

It has nothing of kernix but the interface's .proto files, so that it can check what kernixd says and writes.
"""

import functools
import hashlib
import pathlib
import subprocess
import tempfile
import uuid

import grpc
from google.protobuf import descriptor_pb2, message_factory

ROOT = pathlib.Path(__file__).parents[2]
PROTOS = [
    "build/bazel/remote/execution/v2/remote_execution.proto",
    "google/bytestream/bytestream.proto",
    "common/wire/statement.proto",
    "daemon/remote/shared_result.proto",
    "daemon/toolchain/toolchain_description.proto",
]
API = "build.bazel.remote.execution.v2."
SIGNED_PREFIX = b"kernix-shared-result\n"


@functools.cache
def message_types():
    """Return the classes of all messages by full name."""
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "protos"
        paths = [f"--proto_path={ROOT / 'proto'}", f"--proto_path={ROOT}"]
        subprocess.run(
            ["protoc", *paths, "--include_imports", f"--descriptor_set_out={made}", *PROTOS], check=True, cwd=ROOT
        )
        files = descriptor_pb2.FileDescriptorSet.FromString(made.read_bytes())
    return message_factory.GetMessages(files.file)


def api(name, **fields):
    """Make a message of the Remote Execution API."""
    return message_types()[API + name](**fields)


def shared(name, **fields):
    """Make a message that nodes share: of daemon/remote/shared_result.proto, or of common/wire/statement.proto."""
    package = "kernix.internal." if "Statement" in name else "kernix.remote.internal."
    return message_types()[package + name](**fields)


def sha256(data):
    """Return the 32 bytes of a digest."""
    return hashlib.sha256(data).digest()


def digest_of(data):
    """Return the Digest message of a blob."""
    return api("Digest", hash=sha256(data).hex(), size_bytes=len(data))


def named(digest):
    """Return a digest as the page writes it."""
    return f"{digest.hash}/{digest.size_bytes}"


class Blobs(dict):
    """The bytes of messages and files, by `hash/size`."""

    def add(self, content):
        """Add a message or bytes, and return its digest."""
        data = content if isinstance(content, bytes) else content.SerializeToString(deterministic=True)
        digest = digest_of(data)
        self[named(digest)] = data
        return digest


def add_folder(blobs, files):
    """Add the Directory messages of a tree, and return the digest of its root.

    `files` has the content of each file by its path, and whether it is executable; of a link, it has the target.
    """
    here, below = {}, {}
    for path, file in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            below.setdefault(name, {})[rest] = file
        else:
            here[name] = file
    folder = api("Directory")
    for name, file in sorted(here.items()):
        if isinstance(file, str):
            folder.symlinks.add(name=name, target=file)
        else:
            folder.files.add(name=name, digest=digest_of(file[0]), is_executable=file[1])
    for name, inside in sorted(below.items()):
        folder.directories.add(name=name, digest=add_folder(blobs, inside))
    return blobs.add(folder)


def add_action(blobs, words, variables, files, outputs, salt, platform=None):
    """Add the messages of an action, and return its digest."""
    command = api("Command", arguments=words, output_paths=sorted(outputs))
    for name, value in sorted(variables.items()):
        command.environment_variables.add(name=name, value=value)
    for name, value in sorted((platform or {}).items()):
        command.platform.properties.add(name=name, value=value)
    action = api("Action", command_digest=blobs.add(command), input_root_digest=add_folder(blobs, files), salt=salt)
    if platform:
        action.platform.CopyFrom(command.platform)
    return blobs.add(action)


def text(value):
    """Return a text as the digest of fields takes it: behind its length."""
    return len(value).to_bytes(8, "little") + value.encode()


def digest_field(name, digest):
    """Return a digest in fields that are digested."""
    return b"D" + text(name) + digest


def tools_salt(host_compiler, workers=None):
    """Return the salt of a C++ step, from the identity of the host compiler, and the text that names the workers."""
    toolchain = sha256(text("kernix-toolchain-1") + digest_field("host", host_compiler))
    data = text("kernix-tools") + digest_field("toolchain", toolchain)
    return sha256(data if workers is None else data + b"T" + text("workers") + text(workers))


def result_salt(key, headers):
    """Return the digest of a key with headers, which are pairs of a portable name and a digest."""
    data = text("kernix-shared-result") + digest_field("key", key)
    data += b"L" + text("headers") + len(headers).to_bytes(8, "little")
    for name, digest in headers:
        data += b"T" + text("name") + text(name) + digest_field("digest", digest)
    return sha256(data)


def add_address(blobs, what, salt):
    """Add the messages of an address in the action cache, and return the digest of its Action."""
    return add_action(blobs, ["kernixd", what], {}, {}, [], salt)


def statement_of(key, headers, files):
    """Return the bytes that a result's signature covers."""
    statement = shared("Statement", key=key)
    for name, digest in headers:
        statement.header.add(name=name, digest=digest)
    for name, content in files:
        statement.file.add(name=name, digest=sha256(content), size=len(content))
    return statement.SerializeToString(deterministic=True)


def run_openssl(*arguments):
    """Run openssl and return its output."""
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True).stdout


class Signer:
    """An Ed25519 key in a file of a folder."""

    def __init__(self, folder, name, pem=None):
        self.path = folder / f"{name}.pem"
        self.path.touch(mode=0o600)
        self.path.write_bytes(pem or run_openssl("genpkey", "-algorithm", "ed25519"))
        self.folder = folder

    @property
    def public_text(self):
        """The public key as kernixd's settings name it."""
        return "".join(run_openssl("pkey", "-in", self.path, "-pubout").decode().splitlines()[1:-1])

    @property
    def public_key(self):
        """The 32 bytes: the end of the key's DER form."""
        return run_openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")[-32:]

    def sign(self, statement):
        """Return a SignedStatement."""
        (self.folder / "signed").write_bytes(SIGNED_PREFIX + statement)
        signature = run_openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in", self.folder / "signed")
        envelope = shared("SignedStatement", statement=statement)
        envelope.signature.add(public_key=self.public_key, signature=signature)
        return envelope

    def has_signed(self, envelope):
        """Return whether this key has signed a SignedStatement."""
        (self.folder / "signed").write_bytes(SIGNED_PREFIX + envelope.statement)
        for each in envelope.signature:
            (self.folder / "signature").write_bytes(each.signature)
            command = ["openssl", "pkeyutl", "-verify", "-rawin", "-inkey", self.path, "-in", self.folder / "signed"]
            command += ["-sigfile", self.folder / "signature"]
            verified = subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
            if verified and each.public_key == self.public_key:
                return True
        return False


class Client:
    """Asks an engine."""

    def __init__(self, channel, instance=""):
        self.channel = channel
        self.instance = instance

    def call(self, service, method, request, answer):
        """Make one call of the Remote Execution API."""
        rpc = self.channel.unary_unary(
            f"/{API}{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_types()[API + answer].FromString,
        )
        return rpc(request, timeout=60)

    def result(self, action):
        """Return the files of an ActionResult, as digests by path; None if there is none."""
        try:
            request = api("GetActionResultRequest", instance_name=self.instance, action_digest=action)
            found = self.call("ActionCache", "GetActionResult", request, "ActionResult")
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return None
            raise
        return {file.path: file.digest for file in found.output_files}

    def put_result(self, action, files):
        """Write an ActionResult with these digests by path."""
        result = api("ActionResult")
        for path, digest in files.items():
            result.output_files.add(path=path, digest=digest)
        request = api(
            "UpdateActionResultRequest", instance_name=self.instance, action_digest=action, action_result=result
        )
        self.call("ActionCache", "UpdateActionResult", request, "ActionResult")

    def missing(self, digests):
        """Return which blobs the engine lacks, as `hash/size`."""
        request = api("FindMissingBlobsRequest", instance_name=self.instance, blob_digests=digests)
        found = self.call("ContentAddressableStorage", "FindMissingBlobs", request, "FindMissingBlobsResponse")
        return {named(digest) for digest in found.missing_blob_digests}

    def read(self, digest):
        """Return a blob, and check that it is the one."""
        name = f"{self.instance}/blobs/{named(digest)}".lstrip("/")
        rpc = self.channel.unary_stream(
            "/google.bytestream.ByteStream/Read",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_types()["google.bytestream.ReadResponse"].FromString,
        )
        request = message_types()["google.bytestream.ReadRequest"](resource_name=name)
        data = b"".join(part.data for part in rpc(request, timeout=60))
        assert digest_of(data) == digest
        return data

    def write(self, blobs):
        """Write blobs, each in a stream of its own."""
        rpc = self.channel.stream_unary(
            "/google.bytestream.ByteStream/Write",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_types()["google.bytestream.WriteResponse"].FromString,
        )
        for name, data in blobs.items():
            resource = f"{self.instance}/uploads/{uuid.uuid4()}/blobs/{name}".lstrip("/")
            rpc(iter(self._parts(resource, data)), timeout=60)

    @staticmethod
    def _parts(resource, data, most=1 << 20):
        request = message_types()["google.bytestream.WriteRequest"]
        for at in range(0, max(len(data), 1), most):
            part = data[at : at + most]
            last = at + most >= len(data)
            yield request(resource_name=resource, write_offset=at, data=part, finish_write=last)
