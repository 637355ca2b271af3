# SPDX-License-Identifier: Apache-2.0
"""Use an installed wheel.

``test_wheel.py before|after|never`` says when PyPI's gRPC and Protobuf are imported, ``test_wheel.py without-jax`` that
JAX is not installed.
"""

import sys
from concurrent import futures
from pathlib import Path

SOURCE = """
#include "brainevent/common.h"

// @BE add_one arg ret
void add_one(const BE::Tensor x, BE::Tensor y) {
    const float* in = x.data_ptr<const float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] + 1.0f;
}
"""


def use_grpc() -> None:
    """Make a real call through PyPI's gRPC with a message of PyPI's Protobuf."""
    import grpc
    from google.protobuf import empty_pb2, wrappers_pb2

    def answer(request: empty_pb2.Empty, context: grpc.ServicerContext) -> wrappers_pb2.StringValue:
        return wrappers_pb2.StringValue(value="pong")

    handler = grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=empty_pb2.Empty.FromString,
        response_serializer=wrappers_pb2.StringValue.SerializeToString,
    )
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Ping", {"Ping": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(
            "/test.Ping/Ping",
            request_serializer=empty_pb2.Empty.SerializeToString,
            response_deserializer=wrappers_pb2.StringValue.FromString,
        )
        assert call(empty_pb2.Empty(), timeout=60).value == "pong"
    server.stop(None).wait()


def installed_package() -> Path:
    """Return the folder of kernix, which has to be the installed one."""
    import kernix

    package = Path(kernix.__file__).parent
    assert Path(sys.prefix) in package.parents, f"{package} is not the installed one"
    assert Path(kernix.get_include(), "brainevent", "common.h").is_file()
    return package


def use_kernix_without_jax() -> None:
    """Compile a kernel and call it on a NumPy array."""
    from importlib.util import find_spec

    import numpy as np

    import kernix

    assert find_spec("jax") is None, "JAX is installed"
    result = kernix.load_cpp_inline("wheel", SOURCE).add_one(np.arange(3, dtype=np.float32)).tolist()
    assert result == [1.0, 2.0, 3.0], result
    print(installed_package(), result)


def use_kernix() -> None:
    """Compile a kernel, or get it from the cache, and call it from JAX."""
    import jax
    import jax.numpy as jnp

    import kernix

    package = installed_package()
    kernix.load_cpp_inline("wheel", SOURCE)
    x = jnp.arange(5, dtype=jnp.float32)
    call = jax.ffi.ffi_call("wheel.add_one", jax.ShapeDtypeStruct(x.shape, x.dtype))
    result = [float(value) for value in jax.jit(call)(x)]
    assert result == [1.0, 2.0, 3.0, 4.0, 5.0], result
    print(package, result)


def check_libraries() -> None:
    """Fail when the extension has loaded a library, and does not have it in itself."""
    ours = ("libprotobuf", "libabsl", "libnghttp2", "libminizip", "libgrpc")
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    libraries = [path for path in mapped if Path(path).name.startswith(ours)]
    assert not libraries, libraries
    assert any("/kernix/_core." in path for path in mapped), "the extension is not loaded"


def main(order: str) -> None:
    """Use both, in that order."""
    if order == "without-jax":
        use_kernix_without_jax()
        return
    if order == "before":
        use_grpc()
    use_kernix()
    if order == "after":
        use_grpc()
        use_kernix()
    check_libraries()


if __name__ == "__main__":
    main(sys.argv[1])
