# SPDX-License-Identifier: Apache-2.0
"""Use grpcio and protobuf of PyPI and kernix in one process, imported in the order that the argument names."""

import sys

if sys.argv[1].startswith("kernix first"):
    import kernix
from concurrent import futures

import grpc
from google.protobuf.struct_pb2 import Struct

if sys.argv[1].endswith("jax"):
    import jax  # noqa: F401
import kernels

import kernix


def echo(request, context):
    """Give back what came."""
    return request


def call(target):
    """Send a protobuf message through a channel of grpcio."""
    message = Struct()
    message["word"] = "echo"
    with grpc.insecure_channel(target) as channel:
        method = channel.unary_unary("/test.Echo/Echo", Struct.SerializeToString, Struct.FromString)
        print(method(message)["word"])


handler = grpc.unary_unary_rpc_method_handler(echo, Struct.FromString, Struct.SerializeToString)
server = grpc.server(futures.ThreadPoolExecutor(1))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Echo", {"Echo": handler})])
port = server.add_insecure_port("localhost:0")
server.start()
call(f"localhost:{port}")
kernix.load_cpp_inline(sys.argv[2], kernels.constant(1), auto_register=False)
print("loaded")
call(f"localhost:{port}")
server.stop(None)
