# SPDX-License-Identifier: Apache-2.0
"""Measure CUDA files that people publish: kernix against one ``nvcc -c`` of the same text, as wall and processor time.

``python bench/public_files.py [-I FOLDER]... FILES`` with an installed kernix and nvcc; no GPU needed. One kernixd
compiles them all, after two small kernels. Each file gets one exported function more, and a ``main`` another name.
Columns, as ratios to ``nvcc -c``: a new file (*cold*), the processor time of that with all that kernixd learns
afterwards, an edit of a comment, an edit of host code, and the third kernel with the file's includes. A file that nvcc
or kernix refuses is named, and counts for nothing. With ``--without NAME``, perhaps several times, each file has a row
more from another kernixd without that shortcut (``disabled_shortcuts``).
"""

import argparse
import itertools
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

import kernix
from kernix import _environment

ARCH = "sm_90"
PROBE = """
// COMMENT_SALT
__global__ void kernix_bench_kernel(const float* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + DEVICE_SALT;
}
// @BE kernix_bench
void kernix_bench(BE::In<float> x, BE::Out<float> y, cudaStream_t stream) {
  static const char* const salt = "HOST_SALT";
  if (salt[0] != '?') kernix_bench_kernel<<<1, 256, 0, stream>>>(x.data(), y.data(), x.size());
}
"""
COLUMNS = ("cold", "processor time", "comment", "host code", "same includes")


def salted(text: str, *new: str, salts: dict[str, str]) -> str:
    """Return the text with its salts, of which some are new."""
    for salt in new:
        salts[salt] = f"{uuid.uuid4().int % 10**7}.f" if salt == "DEVICE_SALT" else f"s{uuid.uuid4().hex[:8]}"
    for salt, value in salts.items():
        text = text.replace(salt, value)
    return text


class Daemon:
    """A kernixd with a store of its own that has compiled two kernels, perhaps without some shortcuts."""

    def __init__(self, store: str, without: str, sandbox: str = "best") -> None:
        os.makedirs(store)
        self.store, self.without, self.sandbox = store, without, sandbox
        self.control = [_environment.program("kernixctl"), "--store", store]
        self.use()
        salts: dict[str, str] = {}
        for _ in range(2):  # it asks the toolchain what it is, and learns what cuda_runtime.h declares
            load(salted(PROBE, "DEVICE_SALT", salts=salts), [])
            self.processor_seconds()

    def use(self) -> None:
        """Have the next loads go there."""
        os.environ.pop("KERNIX_DISABLED_SHORTCUTS", None)
        if self.without:
            os.environ["KERNIX_DISABLED_SHORTCUTS"] = self.without
        os.environ["KERNIX_SANDBOX"] = self.sandbox
        kernix.set_cache_dir(self.store)

    def said(self, pattern: str) -> str:
        """Return what kernixctl's status says in the place of a pattern's group."""
        status = subprocess.run([*self.control, "status"], check=True, capture_output=True, text=True).stdout
        found = re.search(pattern, status)
        if found is None:
            raise SystemExit(f"kernixctl status has no {pattern}:\n{status}")
        return found[1]

    def processor_seconds(self) -> float:
        """Return what it and its tools have used, once it has nothing left to do."""
        process = self.said(r"process +(\d+)")
        path = pathlib.Path(f"/proc/{process}/stat")
        before, quiet = -1.0, 0
        while quiet < 4:
            time.sleep(0.3)
            command = [*self.control, "metrics"]
            metrics = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            of_steps = re.findall(r"^kernix_step_processor_seconds_sum(?:\{.*\})? (\S+)", metrics, re.MULTILINE)
            tools = sum(map(float, of_steps))
            own = sum(map(int, path.read_text().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
            busy = re.search(r"^kernix_lessons 0$", metrics, re.MULTILINE) is None
            quiet = quiet + 1 if own + tools - before < 0.02 and not busy else 0
            before = own + tools
        return before

    def stop(self) -> None:
        """End it."""
        subprocess.run([*self.control, "shutdown"], check=False, capture_output=True)


def plain(
    nvcc: str, text: str, includes: list[str], folder: pathlib.Path, *, check: bool = True
) -> tuple[float, float]:
    """Return the wall and processor seconds of one plain call. Raises CalledProcessError if it fails, with `check`."""
    source = folder / "unit.cu"
    source.write_text(re.sub(r"(?s)// @BE kernix_bench.*", "", text))
    command = [nvcc, "-c", f"-arch={ARCH}", "-std=c++17", "-Xcompiler=-fPIC", "-o", os.devnull, str(source)]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run([*command, *(f"-I{path}" for path in includes)], check=check, capture_output=True)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def load(text: str, includes: list[str]) -> float:
    """Return the seconds of a load."""
    begin = time.perf_counter()
    kernix.load_cuda_inline(
        "bench_public",
        text,
        compute_capability=ARCH,
        extra_include_paths=includes,
        extra_cuda_cflags=["-std=c++17"],
        auto_register=False,
    )
    return time.perf_counter() - begin


def measure(path: pathlib.Path, includes: list[str], folder: pathlib.Path, daemon: Daemon) -> list[float]:
    """Return the ratios of a file, one for each column."""
    salts: dict[str, str] = dict.fromkeys(("COMMENT_SALT", "DEVICE_SALT", "HOST_SALT"), "1")
    every = ("COMMENT_SALT", "DEVICE_SALT", "HOST_SALT")
    original = path.read_text(errors="replace")
    text = re.sub(r"\bmain(?=\s*\()", "sample_main", original) + PROBE
    includes = [*includes, str(path.parent)]
    heads = "\n".join(re.findall(r"(?m)^#\s*include\s*<[^>\n]+>", original)) + "\n" + PROBE
    daemon.use()
    nvcc = daemon.said(r"(/\S*/nvcc) ")
    wall, processor = plain(nvcc, salted(text, *every, salts=salts), includes, folder)
    head_wall, _ = plain(nvcc, salted(heads, salts=salts), includes, folder)
    before = daemon.processor_seconds()
    cold = load(salted(text, *every, salts=salts), includes)
    used = daemon.processor_seconds() - before
    comment = load(salted(text, "COMMENT_SALT", salts=salts), includes)
    daemon.processor_seconds()  # a person takes longer for an edit than kernixd for what it learns
    host = load(salted(text, "HOST_SALT", salts=salts), includes)
    for _ in range(2):
        load(salted(heads, *every, salts=salts), includes)
        daemon.processor_seconds()
    head = load(salted(heads, *every, salts=salts), includes)
    return [cold / wall, used / processor, comment / wall, host / wall, head / head_wall]


def row(name: str, without: str, values: list[float]) -> str:
    """Return a row of the table."""
    return f"| {name} | {without} | " + " | ".join(f"{value:.2f}" for value in values) + " |"


def main() -> int:
    """Print a table with a row for each file, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-I", dest="includes", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--without", action="append", default=[], metavar="NAME")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    includes = [str(pathlib.Path(path).resolve()) for path in arguments.includes]
    refused = []
    kinds = ["", *arguments.without]
    rows: dict[str, list[list[float]]] = {without: [] for without in kinds}
    print("| file | without | " + " | ".join(COLUMNS) + " |\n|---|---" + "|---:" * len(COLUMNS) + "|")
    with tempfile.TemporaryDirectory(prefix="bench-public-", ignore_cleanup_errors=True) as folder:
        daemons = {without: Daemon(f"{folder}/store-{i}", without) for i, without in enumerate(kinds)}
        for path, without in itertools.product(arguments.files, kinds):
            try:
                rows[without].append(measure(path.resolve(), includes, pathlib.Path(folder), daemons[without]))
            except (subprocess.CalledProcessError, kernix.KernelError) as error:
                refused.append(f"{path}: {type(error).__name__}: {str(error)[:300]}")
                continue
            print(row("/".join(path.parts[-2:]), without, rows[without][-1]), flush=True)
        for daemon in daemons.values():
            daemon.stop()
    for without, values in rows.items():
        if values:
            columns = [statistics.median(column) for column in zip(*values, strict=True)]
            print(row(f"median of {len(values)}", without, columns))
    print(*refused, sep="\n", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
