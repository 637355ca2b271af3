# SPDX-License-Identifier: Apache-2.0
"""A worker of BuildGrid, which has none of its own. It has buildbox-run run what the Bots service leases to it.

Runs with BuildGrid's Python: buildgrid_worker.py ADDRESS INSTANCE RUNNER RUNNER_ARGUMENT...
It follows no cancellation: an action runs to its end.
"""

import concurrent.futures
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile

import grpc
from buildgrid._protos.build.bazel.remote.execution.v2 import remote_execution_pb2
from buildgrid._protos.google.devtools.remoteworkers.v1test2 import bots_pb2, bots_pb2_grpc, worker_pb2
from buildgrid._protos.google.rpc import code_pb2, status_pb2

JOBS = 2
SECONDS = 10  # for one exchange with the service
LOOK = 0.05  # while something runs


def read(path):
    """Return the bytes of a file that may not be there."""
    return path.read_bytes() if path.exists() else b""


def run(action, command):
    """Run an action. Return the engine's status and the result, which is None if the runner has failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "action").write_bytes(action.SerializeToString())
        places = [f"--action={folder}/action", f"--action-result={folder}/result", f"--workspace-path={folder}"]
        subprocess.run([*command[:1], *places, *command[1:]], check=False)
        failure, result = read(folder / "result.error-status"), read(folder / "result")
    if failure:
        return status_pb2.Status.FromString(failure), None
    if not result:
        return status_pb2.Status(code=code_pb2.INTERNAL, message="the runner has left no result"), None
    return status_pb2.Status(), remote_execution_pb2.ActionResult.FromString(result)


def new_session(instance):
    """Return what the worker says of itself at first."""
    properties = {"OSFamily": "linux", "ISA": platform.machine().replace("_", "-")}
    listed = [worker_pb2.Device.Property(key=key, value=value) for key, value in properties.items()]
    worker = worker_pb2.Worker(devices=[worker_pb2.Device(handle="machine", properties=listed)])
    worker.configs.add(key="capacity", value=str(JOBS))
    status = bots_pb2.BotStatus.Value("OK")
    session = bots_pb2.BotSession(bot_id="a builder", status=status, worker=worker)
    return bots_pb2.CreateBotSessionRequest(parent=instance, bot_session=session)


def begin(lease, command, pool):
    """Take a lease, and return the action's future."""
    action = remote_execution_pb2.Action()
    lease.state = bots_pb2.LeaseState.Value("ACTIVE")
    if lease.payload.Unpack(action):
        return pool.submit(run, action, command)
    unknown = status_pb2.Status(code=code_pb2.UNIMPLEMENTED, message="a lease without an action in it")
    return pool.submit(lambda: (unknown, None))


def finish(lease, future):
    """Tell how an action has ended."""
    status, result = future.result()
    lease.state = bots_pb2.LeaseState.Value("COMPLETED")
    lease.status.CopyFrom(status)
    if result is not None:
        lease.result.Pack(result)


def work(bots, instance, command):
    """Exchange words with the service until this process ends."""
    session = bots.CreateBotSession(new_session(instance), timeout=SECONDS)
    running = {}
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        while True:
            for lease in session.leases:
                # One that this worker does not know counts as active if the answer that gave it was lost.
                if lease.id not in running and lease.state != bots_pb2.LeaseState.Value("COMPLETED"):
                    running[lease.id] = begin(lease, command, pool)
            concurrent.futures.wait(running.values(), LOOK, concurrent.futures.FIRST_COMPLETED)
            for lease in session.leases:
                if lease.id in running and running[lease.id].done():
                    finish(lease, running.pop(lease.id))
            request = bots_pb2.UpdateBotSessionRequest(name=session.name, bot_session=session)
            try:
                session = bots.UpdateBotSession(request, timeout=SECONDS)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:  # nothing to do
                    raise


def main():
    """See above."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    address, instance, runner, *arguments = sys.argv[1:]
    target = address.removeprefix("grpc://")
    command = [runner, f"--remote=http://{target}", f"--instance={instance}", "--disable-localcas", *arguments]
    with grpc.insecure_channel(target) as channel:
        work(bots_pb2_grpc.BotsStub(channel), instance, command)


if __name__ == "__main__":
    main()
