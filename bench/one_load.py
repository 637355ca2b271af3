# SPDX-License-Identifier: Apache-2.0
"""Run one process of the side-by-side benchmark: time one load, then repeat the same load.

Prints one JSON object, in milliseconds: ``import_ms``, the import of the package after JAX has started;
``function_ms``, the same with the load function, which kernix imports when it is first named; ``first_ms``, the first
load in this process; and ``repeat_ms``, the median of the repeated call.
"""

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable

REFERENCE_VERSION = "0.3.0"

CPP_SOURCE = """
#include "brainevent/common.h"
constexpr char kSalt[] = "{salt}";  // new code, not only a new comment
// @BE add_one arg ret
void add_one(const BE::Tensor x, BE::Tensor y) {{
    const float* in = static_cast<const float*>(x.data_ptr());
    float* out = static_cast<float*>(y.data_ptr());
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] + 1.0f;
}}
"""

CUDA_SOURCE = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
constexpr char kSalt[] = "{salt}";  // new code, not only a new comment
__global__ void add_kernel(const float* a, const float* b, float* out, int n) {{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) out[idx] = a[idx] + b[idx];
}}
// @BE vector_add arg arg ret stream
void vector_add(const BE::Tensor a, const BE::Tensor b, BE::Tensor out, int64_t stream) {{
    int n = a.numel();
    add_kernel<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(
        static_cast<const float*>(a.data_ptr()), static_cast<const float*>(b.data_ptr()),
        static_cast<float*>(out.data_ptr()), n);
    BE_CHECK_KERNEL_LAUNCH();
}}
"""


def loader(system: str, language: str, store: str, salt: str, architectures: str = "sm_90") -> Callable[[], object]:
    """Return a function that loads the salted kernel with the given system.

    Parameters
    ----------
    system : {'kernix', 'brainevent'}
    language : {'cpp', 'cuda'}
    store : str
        The cache directory.
    salt : str
        Goes into the source: another salt is another cache entry.
    architectures : str
        For CUDA, with commas between them.
    """
    package = importlib.import_module(system)
    if system == "brainevent" and package.__version__ != REFERENCE_VERSION:
        raise SystemExit(f"the reference must be brainevent {REFERENCE_VERSION}, this is {package.__version__}")
    package.set_cache_dir(store)
    name = f"bench_{language}_{salt}"
    if language == "cpp":  # kernix imports a function when its name is first used, which is not part of the load
        load_cpp, source = package.load_cpp_inline, CPP_SOURCE.format(salt=salt)
        return lambda: load_cpp(name, source)
    load_cuda, source = package.load_cuda_inline, CUDA_SOURCE.format(salt=salt)
    return lambda: load_cuda(name, source, compute_capability=architectures)


def milliseconds_since(start: float) -> float:
    """Return the time since ``time.perf_counter()`` was `start`."""
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    """Measure as the command line requests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=("kernix", "brainevent"))
    parser.add_argument("language", choices=("cpp", "cuda"))
    parser.add_argument("store")
    parser.add_argument("salt")
    parser.add_argument("--architectures", default="sm_90", help="of a CUDA kernel, with commas between them")
    parser.add_argument("--repeat", type=int, default=1, help="how often to repeat the load in this process")
    arguments = parser.parse_args()

    import jax

    jax.devices()
    start = time.perf_counter()
    importlib.import_module(arguments.system)
    import_ms = milliseconds_since(start)
    load = loader(arguments.system, arguments.language, arguments.store, arguments.salt, arguments.architectures)
    times = {"import_ms": import_ms, "function_ms": milliseconds_since(start)}

    def timed() -> float:
        start = time.perf_counter()
        load()
        return milliseconds_since(start)

    times["first_ms"] = timed()
    times["repeat_ms"] = statistics.median(timed() for _ in range(arguments.repeat))
    print(json.dumps(times))


if __name__ == "__main__":
    main()
