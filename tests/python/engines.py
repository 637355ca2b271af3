# SPDX-License-Identifier: Apache-2.0
"""Real engines of the Remote Execution API, which tests start: deploy/setup.sh brings them into .engines."""

import base64
import hashlib
import hmac
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import grpc
import pytest

ENGINES = pathlib.Path(__file__).parents[2] / ".engines"
BUILDGRID = ENGINES / "buildgrid" / "bin" / "bgd"
RUNNER = ENGINES / "buildbox" / "buildbox-run"
SECONDS = 60  # for an engine to begin

# What a sandbox of the runner has of this machine.
TOOLS_IN_SANDBOX = [
    f"--ro-bind-mount={mount}"
    for mount in [
        "/usr:/usr",
        "/usr/bin:/bin",
        "/usr/lib:/lib",
        "/usr/lib64:/lib64",
        "/etc/alternatives:/etc/alternatives",
    ]
]


class Engine:
    """An engine with a folder of its own, directly under /tmp: the path of a socket must be short."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kxe-", dir="/tmp"))

    def run(self, command, target, credentials=None):
        """Start a program, and wait until it answers or has ended. Return whether it answers.

        It dies with the test's process, too, however that ends.
        """
        with (self.folder / "log").open("ab") as log:
            environment = {"PATH": f"{ENGINES / 'buildbox'}:/usr/bin:/bin", "HOME": str(self.folder)}
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command], stdout=log, stderr=log, env=environment, cwd=self.folder
            )
        self.channel = grpc.secure_channel(target, credentials) if credentials else grpc.insecure_channel(target)
        ready = grpc.channel_ready_future(self.channel)
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                ready.result(timeout=0.5)
                return True
            except grpc.FutureTimeoutError:
                continue
        ready.cancel()
        self.end()
        return False

    def log(self):
        """Return what it has said."""
        return (self.folder / "log").read_text()

    def end(self):
        """End the program."""
        self.channel.close()
        self.process.kill()
        self.process.wait()

    def close(self):
        """End it and remove its folder."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Casd(Engine):
    """buildbox-casd on a Unix socket, as a cache; with `workers`, it runs actions, if this machine lets it."""

    def __init__(self, workers=False):
        super().__init__()
        self.address = f"unix://{self.folder}/s"
        command = [ENGINES / "buildbox" / "buildbox-casd", f"--bind=unix:{self.folder}/s", "--quota-high=1G"]
        if workers:
            command += [f"--buildbox-run={RUNNER}", *(f"--runner-arg={flag}" for flag in TOOLS_IN_SANDBOX)]
        assert self.run([*command, "--reserved=0", self.folder / "cache"], f"unix:{self.folder}/s"), self.log()


CERTIFICATES = """
set -e
curve='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
openssl req -x509 $curve -days 2 -subj /CN=ca -keyout ca.key -out ca.pem
echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' >names
for who in server client; do
  openssl req $curve -subj /CN=$who -keyout $who.key -out $who.csr
  openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out $who.pem -extfile names
done
"""

CONFIG = """
description: an engine for tests
{authorization}
server:
  - !channel
    address: "127.0.0.1:{port}"
    insecure-mode: {insecure}
    {credentials}
grpc-server-options: {{ grpc.so_reuseport: 0 }}
storages:
  - !disk-storage &cas
    path: {folder}/cas
caches:
  - !lru-action-cache &ac
    storage: *cas
    max-cached-refs: 10000
    allow-updates: true
    cache-failed-actions: false
{scheduler}
instances:
  - name: ["", kernix]
    services:
      - !cas {{ storage: *cas }}
      - !bytestream {{ storage: *cas }}
      - !action-cache {{ cache: *ac }}
{execution}
"""

# By default it looks for work each second or two, and holds a worker's words back while that worker runs something.
SCHEDULER = """
connections:
  - !sql-connection &sql
    connection-string: "{database}"
schedulers:
  - !sql-scheduler &scheduler
    sql: *sql
    storage: *cas
    action-cache: *ac
    poll-interval: 0.1
    property-set: !dynamic-property-set
      match-property-keys: [OSFamily, ISA]
    assigners:
      - !priority-age-assigner {{ count: 1, interval: 0.05, jitter-factor: 0.05, failure-backoff: 0.2 }}
"""
EXECUTION = """
      - !execution { scheduler: *scheduler, endpoints: [execution, operations] }
      - !bots { scheduler: *scheduler, long-poll-during-execution: false }
"""


class BuildGrid(Engine):
    """BuildGrid as a cache; with `secured`, by TLS with certificates of both sides, and for holders of a token."""

    def __init__(self, secured=False):
        super().__init__()
        settings = {"authorization": "", "credentials": "", "insecure": "true", "folder": self.folder}
        settings |= self.more_settings()
        credentials = None
        if secured:
            subprocess.run(["sh", "-c", CERTIFICATES], check=True, cwd=self.folder, capture_output=True)
            (self.folder / "secret").write_text("a secret of at least thirty-two bytes")
            settings["authorization"] = (
                f"authorization: {{ method: jwt, algorithm: hs256, secret: {self.folder}/secret }}"
            )
            settings["credentials"] = (
                f"credentials: {{ tls-server-key: {self.folder}/server.key, tls-server-cert: {self.folder}/server.pem, "
                f"tls-client-certs: {self.folder}/ca.pem }}"
            )
            settings["insecure"] = "false"
            pem = [(self.folder / name).read_bytes() for name in ("ca.pem", "client.key", "client.pem")]
            credentials = grpc.ssl_channel_credentials(*pem)
        for _ in range(5):  # another process may take the port that was free a moment ago
            port = free_port()
            (self.folder / "config.yml").write_text(CONFIG.format(port=port, **settings))
            self.address = f"grpc{'s' * secured}://localhost:{port}"
            if self.run([BUILDGRID, "server", "start", self.folder / "config.yml"], f"localhost:{port}", credentials):
                return
        raise AssertionError(self.log())

    def more_settings(self):
        """Return the parts of its configuration that make it run actions."""
        return {"scheduler": "", "execution": ""}

    def token(self, secret="a secret of at least thirty-two bytes", age=0):
        """Return a JSON Web Token of some seconds ago, which the engine takes for an hour, or one of another secret."""
        claims = {"sub": "a node", "exp": int(time.time()) + 3600 - age}
        signed = b".".join(map(url_base64, (json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps(claims))))
        signature = hmac.digest(secret.encode(), signed, hashlib.sha256)
        return (signed + b"." + url_base64(signature)).decode()


class Workers(BuildGrid):
    """BuildGrid that runs actions, for its instance "kernix": with a database of its own, and one worker.

    The sandbox of the worker has the tools of this machine in their places.
    """

    def __init__(self):
        self.helpers = []
        try:
            super().__init__()
            worker = pathlib.Path(__file__).with_name("buildgrid_worker.py")
            self.help([BUILDGRID.with_name("python"), worker, self.address, "kernix", RUNNER, *TOOLS_IN_SANDBOX])
        except BaseException:
            self.end_helpers()
            raise

    def help(self, command, user=()):
        """Start a program that ends with this."""
        with (self.folder / "log").open("ab") as log:
            environment = {"PATH": f"{ENGINES / 'buildbox'}:/usr/bin:/bin", "HOME": str(self.folder)}
            command = ["setpriv", *user, "--pdeathsig", "TERM", *command]
            self.helpers.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd="/"))

    def more_settings(self):
        place, programs = self.folder / "database", postgresql()
        place.mkdir()
        user = []
        if os.geteuid() == 0:  # PostgreSQL does not run as root
            user = ["--reuid=postgres", "--regid=postgres", "--init-groups"]
            shutil.chown(place, "postgres", "postgres")
            self.folder.chmod(0o711)
        made = [
            programs / "initdb",
            "--pgdata",
            place,
            "--auth=trust",
            "--username=bgd",
            "--encoding=UTF8",
            "--no-sync",
        ]
        subprocess.run(["setpriv", *user, *made], check=True, cwd="/", capture_output=True)
        self.help([programs / "postgres", "-D", place, "-k", place, "-c", "listen_addresses=", "-c", "fsync=off"], user)
        deadline = time.monotonic() + SECONDS
        while subprocess.run([programs / "pg_isready", "--quiet", "--host", place], check=False).returncode != 0:
            assert self.helpers[0].poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)
        subprocess.run([programs / "createdb", "--host", place, "--username=bgd", "bgd"], check=True)
        database = f"postgresql+psycopg2://bgd@/bgd?host={place}"
        subprocess.run([BUILDGRID, "migrate", "apply", database], check=True, capture_output=True)
        return {"scheduler": SCHEDULER.format(database=database), "execution": EXECUTION}

    def end_helpers(self):
        """End the worker, and then the database at once."""
        for number, helper in reversed(list(enumerate(self.helpers))):
            helper.send_signal(signal.SIGQUIT if number == 0 else signal.SIGTERM)
            helper.wait()

    def close(self):
        """End all of it and remove its folder."""
        self.end_helpers()
        super().close()


def postgresql():
    """Return the folder of PostgreSQL's programs, the newest, or None."""
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return folders[-1] if folders else None


def url_base64(data):
    """Return base64 as tokens have it."""
    return base64.urlsafe_b64encode(data.encode() if isinstance(data, str) else data).rstrip(b"=")


def free_port():
    """Return a port that nobody listens on just now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def need_buildgrid():
    """Skip the test where BuildGrid could not be installed."""
    if not (ENGINES / "buildgrid" / "complete").exists():
        pytest.skip("BuildGrid needs Python 3.12 or newer, and deploy/setup.sh has found none")


def need_workers():
    """Skip the test where BuildGrid cannot run actions."""
    need_buildgrid()
    if postgresql() is None:
        pytest.skip("BuildGrid's scheduler needs PostgreSQL, which is not installed (Debian: postgresql)")
    need_sandbox()


def need_sandbox():
    """Skip the test where workers cannot shut in what they run."""
    sandbox = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "/bin/true"]
    if subprocess.run(sandbox, check=False, capture_output=True).returncode != 0:
        pytest.skip("bubblewrap cannot make a sandbox on this machine")
