# SPDX-License-Identifier: Apache-2.0
"""The interface of libkernix to this package. python/src implements it; nothing here is public."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Protocol

def version() -> str: ...
def environment_fingerprint() -> bytes: ...
def default_store_directory() -> str: ...
def cache_home() -> bytes: ...  # of the user; empty without a home
def find_nvcc(site_packages: Sequence[str]) -> str: ...
def gpu_architecture() -> str: ...

class function:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class DaemonInfo:
    address: str
    version: str
    build_id: str
    pid: int
    store_directory: str
    shared: bool
    running_jobs: int
    queued_jobs: int

class CacheStats:
    builds: int
    hits: int
    misses: int
    failures: int
    cancelled: int
    entries: int
    bytes: int
    limit_bytes: int

class Client:
    def __init__(
        self, *, store_directory: str = "", site_packages: Sequence[str | bytes] = (), program: bytes = b""
    ) -> None: ...
    def info(self, start: bool = True) -> DaemonInfo: ...
    def stats(self, start: bool = True) -> CacheStats: ...
    def trace(self, key: str) -> tuple[int, float, list[tuple[str, str, float, float, float, int]], int, bytes]: ...
    def purge(self, name: str = "") -> int: ...
    def shutdown(self) -> None: ...

class Language(Enum):
    CPP = ...
    CUDA = ...

class Request:
    separate: bool
    debug: bool
    keep: bool
    compute_capability: str
    optimization_level: int
    use_fast_math: bool
    allow_cuda_graph: bool
    force_rebuild: bool
    begin_anew: bool
    instance: str
    verbose: bool
    max_parallel_jobs: int
    in_history: bool
    batch: bool
    frozen: bool
    policy: Literal["build", "cached"]
    bundles: Sequence[bytes]
    def __init__(
        self,
        language: Language,
        name: str,
        sources: Sequence[tuple[bytes, bytes]],
        functions: Sequence[tuple[str, Sequence[str]]] | None,
        compile_flags: Sequence[str],
        link_flags: Sequence[str],
        include_paths: Sequence[bytes],
        last_include_paths: Sequence[bytes],
    ) -> None: ...
    name: str

class Parameter:
    class Role(Enum):
        ARGUMENT = ...
        RESULT = ...
        ATTRIBUTE = ...
        ARGUMENT_TOKEN = ...
        RESULT_TOKEN = ...
        PROVIDED = ...

    role: Role
    name: str
    type: str
    rank: int | None
    optional: bool
    variadic: bool

class FunctionInfo:
    name: str
    tokens: list[str]
    parameters: list[Parameter]
    is_global: bool
    traits: int

def occupancy(
    architecture: str, registers: int, shared_memory: int, threads: int, dynamic_shared_memory: int
) -> float | None: ...

class Module:
    name: str
    language: Language
    path: str
    functions: list[FunctionInfo]
    function_names: list[str]
    key: str
    artifact_digest: str
    origin: str
    cache_hit: bool
    build_ms: int
    miss_reason: str
    source_labels: list[str]
    def source(self, label: str) -> bytes | None: ...
    def ptx(self, architecture: str) -> bytes: ...
    def sass(self, architecture: str) -> bytes: ...
    def resources(self) -> list[tuple[str, str, str, int, int, int, int | None, int | None, int, int]]: ...
    def write_build_directory(self, directory: bytes) -> None: ...
    def address(self, function: str) -> int: ...

class Observer(Protocol):
    inputs: Callable[[list[bytes]], None] | None
    def output(self, text: str) -> None: ...
    def progress(self, state: str) -> None: ...
    def warning(self, message: str) -> None: ...
    def poll(self) -> None: ...

class SeenFiles:
    def __init__(self) -> None: ...
    def changed(self, paths: Sequence[bytes]) -> bool: ...
    def note_load(self, paths: Sequence[bytes]) -> None: ...

def save_failed_command(command: bytes, folder: bytes) -> bytes: ...
def chrome_trace(message: bytes, title: str) -> str: ...
def draw_trace(message: bytes, width: int) -> str: ...
def matching_files(directory: bytes, patterns: Sequence[str]) -> list[bytes]: ...
def shown_warning(name: str, text: str) -> str | None: ...

# A module and its slot in the memo of loads. A repeated load has the same slot; 0 means that the load has no slot.
def find_loaded(client: Client, request: Request) -> tuple[Module | None, int]: ...
def load_library(client: Client, path: bytes, instance: str, begin_anew: bool) -> Module: ...
def load(client: Client, request: Request, observer: Observer) -> tuple[Module, int]: ...

class BindOutcome(Enum):
    NEW = ...
    UNCHANGED = ...
    REPLACED = ...

def bind_targets(
    platform: str,
    module: Module,
    names: Sequence[tuple[str, str]],
    replace: bool,
    announce: Callable[[str, Any], None],
) -> list[BindOutcome]: ...
def refuse_on_cpu(targets: Sequence[str], announce: Callable[[str, Any], bool]) -> None: ...
def list_targets() -> list[tuple[str, str]]: ...
def target_address(target: str, platform: str) -> int: ...

class DlpackTensor:
    def __init__(self, capsule: Any) -> None: ...
    data: int
    device: tuple[int, int]
    dtype: tuple[int, int, int]
    shape: tuple[int, ...]
    read_only: bool
    copied: bool
    contiguous: bool

class PlainArrays:
    def __init__(self, ndarray: type, empty: Callable[..., Any], types: dict[Any, int]) -> None: ...
    def call(
        self,
        handler: int,
        arguments: tuple[Any, ...],
        outputs: Sequence[Any] | None,
        attributes: Mapping[str, tuple[str, Any]],
    ) -> tuple[Any, ...] | None: ...

def call_handler(
    handler: int,
    arguments: Sequence[tuple[int, int, tuple[int, ...]]],
    results: Sequence[tuple[int, int, tuple[int, ...]]],
    attributes: Mapping[str, tuple[str, Any]],
    stream: int | None,
    device: int | None,
) -> None: ...
