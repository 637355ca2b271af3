# SPDX-License-Identifier: Apache-2.0
"""A proxy before an engine, which notes what a node sends and changes nothing."""

import concurrent.futures
import pathlib
import shutil
import tempfile

import grpc
import plain_reapi

API = f"/{plain_reapi.API}"


class Recorder(grpc.GenericRpcHandler):
    """Forwards each call, byte for byte, and keeps what was sent."""

    def __init__(self, engine):
        self.engine = engine
        self.calls = []  # pairs: the method, and the bytes of a request
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kxr-", dir="/tmp"))
        self.address = f"unix://{self.folder}/s"
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(32), handlers=[self])
        self.server.add_insecure_port(f"unix:{self.folder}/s")
        self.server.start()
        self.folder.chmod(0o711)  # for nodes of other users
        (self.folder / "s").chmod(0o666)

    def service(self, handler_call_details):
        """Handle any method; on the wire, a call with one message is a stream."""
        method = handler_call_details.method

        def forward(requests, context):
            call = self.engine.channel.stream_stream(method)(
                self._noted(method, requests), timeout=context.time_remaining()
            )
            context.add_callback(call.cancel)
            try:
                yield from call
            except grpc.RpcError as error:
                context.set_trailing_metadata(error.trailing_metadata())
                context.abort(error.code(), error.details())

        return grpc.stream_stream_rpc_method_handler(forward)

    def _noted(self, method, requests):
        for request in requests:
            self.calls.append((method, request))
            yield request

    def sent(self, service, method, message):
        """Return the requests of a method."""
        message_type = plain_reapi.message_types()[plain_reapi.API + message]
        name = f"{API}{service}/{method}"
        return [message_type.FromString(request) for called, request in self.calls if called == name]

    def blobs(self):
        """Return the blobs that were sent in batches, by `hash/size`."""
        blobs = {}
        for batch in self.sent("ContentAddressableStorage", "BatchUpdateBlobs", "BatchUpdateBlobsRequest"):
            blobs |= {plain_reapi.named(request.digest): request.data for request in batch.requests}
        return blobs

    def close(self):
        """Stop it."""
        self.server.stop(grace=None).wait()
        shutil.rmtree(self.folder, ignore_errors=True)
