# SPDX-License-Identifier: Apache-2.0
"""Load kernels in children of all kinds while this process has a server and a channel of grpcio open."""

import multiprocessing
import os
import threading
from concurrent import futures

import grpc
import kernels

import kernix


def load(number):
    """Load a kernel of its own, without JAX."""
    kernix.load_cpp_inline(f"forked{number}", kernels.constant(number), auto_register=False)
    return number


def load_in_child(number, results):
    """Fork in this thread, and load in the child."""
    child = os.fork()
    if child == 0:
        os._exit(load(number) != number)
    results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def main():
    """Print what each kind of child has loaded."""
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Echo", {"Echo": handler})])
    port = server.add_insecure_port("localhost:0")
    server.start()
    with grpc.insecure_channel(f"localhost:{port}") as channel:
        echo = channel.unary_unary("/test.Echo/Echo")
        print(echo(b"before").decode())
        load(300)
        results = []
        threads = [threading.Thread(target=load_in_child, args=(301 + i, results)) for i in range(4)]
        for thread in threads:
            thread.start()
        load(305)
        for thread in threads:
            thread.join()
        print("threads", results)
        for method in ("fork", "forkserver", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                print(method, pool.map(load, [300, 306, 307]))
        print(echo(b"after").decode())
    server.stop(None)


if __name__ == "__main__":
    main()
