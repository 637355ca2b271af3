# SPDX-License-Identifier: Apache-2.0
"""Compile kernels with kernixd's shortcuts and by one whole call of nvcc, and compare what comes out.

First each file is loaded twice on a new store, from which kernixd learns what its shortcuts need. Then each file is
compared as it is, and once more after an edit of its lines and of what its function does on the host; with
``--short``, only after the edit. Compared are PTX, machine code (as nvdisasm prints it) and the symbols that the
artifacts export; where JAX sees a GPU, also what the kernels of this folder compute. Names of the module id, which
differ between the two ways, are masked. The machine code of kernels without flags is also compared with what one thread
of ptxas makes of the PTX.

``make verify-shortcuts``, or ``python tests/corpus/verify_shortcuts.py [FILES]`` with an installed kernix. FILES (CUDA
sources with ``// @BE`` lines) are compared beside the kernels of this folder.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

if not any(pathlib.Path("/dev").glob("nvidia[0-9]*")):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np

import kernix

CORPUS = pathlib.Path(__file__).resolve().parent
KERNIXCTL = pathlib.Path(kernix.__file__).parent / "bin/kernixctl"
MODULE_ID = re.compile(rb"[0-9a-f]{8}_7_unit_cu_(?:[0-9a-f]{8}|_\w+)")
# A unit with an external function has its name in place of the last eight digits. What follows the name in a mangled
# one is told by the length.
NAMED_UNIT = re.compile(rb"_ZN(\d+)(_GLOBAL__N__|_INTERNAL_)(?=([0-9a-f]{8}_7_unit_cu_\w+))")
COUNTERS = (
    "kernix_lessons",
    "kernix_nvcc_compiles_total",
    "kernix_cuda_runtime_headers_total",
    "kernix_preambles_total",
    "kernix_compiled_preambles_total",
    "kernix_plain_links_total",
    "kernix_reusable_steps_total",
)
X = np.arange(256, dtype=np.float32) / 16 - 4


def counters() -> collections.Counter[str]:
    """Return how many steps of this user's kernixd took which way."""
    text = subprocess.run([KERNIXCTL, "metrics"], check=True, capture_output=True, text=True).stdout
    found: collections.Counter[str] = collections.Counter()
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith(COUNTERS):
            found[name] = int(value)
    return found


def await_lessons(most: int = 0) -> None:
    """Wait until kernixd has no more than `most` lessons to learn. It takes no new one while 16 wait."""
    while counters()["kernix_lessons"] > most:
        time.sleep(0.1)


def section(library: bytes, folder: pathlib.Path, name: str) -> bytes:
    """Return the content of a section, empty if there is none."""
    (folder / "library.so").write_bytes(library)
    out = folder / "section"
    out.unlink(missing_ok=True)
    copy = ["objcopy", "-O", "binary", f"--only-section={name}", "--set-section-flags", f"{name}=alloc"]
    subprocess.run([*copy, folder / "library.so", out], check=True, capture_output=True)
    return out.read_bytes() if out.exists() else b""


def cubins(fatbin: bytes) -> Iterator[bytes]:
    """Yield the ELF images in an uncompressed fatbinary."""
    for found in re.finditer(rb"\x7fELF\x02", fatbin):
        image = fatbin[found.start() :]
        headers = int.from_bytes(image[0x28:0x30], "little")
        size, count = (int.from_bytes(image[at : at + 2], "little") for at in (0x3A, 0x3C))
        programs = int.from_bytes(image[0x20:0x28], "little") + 56 * int.from_bytes(image[0x38:0x3A], "little")
        yield image[: max(headers + size * count, programs)]


def find_program(name: str) -> str:
    """Return a program of the toolkit."""
    beside = [shutil.which(name), *map(str, pathlib.Path(sys.prefix).glob(f"lib/*/*/nvidia/cu*/bin/{name}"))]
    for program in beside:
        if program is not None and pathlib.Path(program).exists():
            return program
    raise SystemExit(f"no {name} on PATH or in this environment")


def masked(text: bytes) -> bytes:
    """Return a text without module ids, and without the lengths of names that hold one."""
    ids = {found[3][: int(found[1]) - len(found[2])] for found in NAMED_UNIT.finditer(text)}
    for name in sorted(ids, key=len, reverse=True):
        text = text.replace(name, b"ID")
    return re.sub(rb"\d+(_GLOBAL__N__|_INTERNAL_)ID", rb"\1ID", MODULE_ID.sub(b"ID", text))


def disassembled(cubin: pathlib.Path, nvdisasm: str) -> bytes:
    """Return the machine code of a cubin as text."""
    done = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True)
    return masked(done.stdout)


def machine_code(fatbin: bytes, folder: pathlib.Path, nvdisasm: str) -> list[bytes]:
    """Return each cubin as text."""
    texts = []
    for image in cubins(fatbin):
        (folder / "image.cubin").write_bytes(image)
        texts.append(disassembled(folder / "image.cubin", nvdisasm))
    return texts


def made(path: str, folder: pathlib.Path, nvdisasm: str) -> dict[str, Any]:
    """Return what an artifact holds, by what it is called."""
    library = pathlib.Path(path).read_bytes()
    fatbin = section(library, folder, ".nv_fatbin")
    symbols = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True).stdout
    return {
        "PTX": [masked(text) for text in re.findall(rb"\.version [^\0]*", fatbin)],
        "machine code": machine_code(fatbin, folder, nvdisasm),
        "host code": section(library, folder, ".text"),
        "symbols": sorted(line.split()[-1] for line in masked(symbols).splitlines()),
    }


def only_names_move(fast: str, whole: str) -> bool:
    """Return whether host code differs in addresses alone, which names of another length have moved.

    Only one call of nvcc knows the first external function; another id stands in its place.
    """
    library = pathlib.Path(whole).read_bytes()
    is_named = re.search(rb"_7_unit_cu_(?![0-9a-f]{8}|_)\w", library) is not None
    command = ["objdump", "-d", "-j", ".text", "--no-show-raw-insn", "--no-addresses"]
    code = [subprocess.run([*command, path], check=True, capture_output=True).stdout for path in (fast, whole)]
    # The first lines have the path.
    fast_code, whole_code = (
        re.sub(rb"[0-9a-f]{3,}|<[^>]*>", b"", masked(text.partition(b".text:")[2])) for text in code
    )
    return is_named and fast_code == whole_code


def flags_of(text: str) -> list[str]:
    """Return the flags that a kernel of the corpus asks for."""
    found = re.search(r"^// flags: (.*)$", text, re.MULTILINE)
    return found.group(1).split() if found else []


def moved(text: str) -> str:
    """Return the text with other lines, and with more in the body of its first function, if that runs on the host."""
    function = re.search(r"^// @BE[^\n]*\n[^;{]*\{", text, re.MULTILINE)
    if function is not None and "__global__" not in function.group():
        text = f"{text[: function.end()]} const int moved = 1; (void)moved; {text[function.end() :]}"
    return f"// A comment.\n\n{text}"


def computed(module: Any, text: str) -> bytes:
    """Call `run` of a kernel of the corpus."""
    launched = re.search(r"__global__[^;{]*\brun\(", text) is not None
    how = {"grid": 1, "block": 256} if launched else {}
    return np.asarray(module.run(X, out=jax.ShapeDtypeStruct(X.shape, X.dtype), **how)).tobytes()


class Settings(NamedTuple):
    """How files are compared."""

    architecture: str
    short: bool  # compare what shortcuts make after an edit, and not also what they make before it
    has_gpu: bool
    nvdisasm: str
    ptxas: str


class Comparison:
    """Compares both ways of compiling one file, in a folder of its own."""

    def __init__(self, settings: Settings, file: pathlib.Path, folder: pathlib.Path) -> None:
        self.settings = settings
        self.file = file
        self.folder = folder
        self.name = f"verify_{file.stem}".replace(".", "_").replace("-", "_")
        self.text = file.read_text()
        self.flags = flags_of(self.text)
        self.runs = settings.has_gpu and file.resolve().parent == CORPUS

    def by_one_thread(self, ptx: bytes) -> bytes:
        """Return the machine code that ptxas makes without threads, as text."""
        image = self.folder / "image.cubin"
        (self.folder / "text.ptx").write_bytes(ptx)
        target = re.search(rb"^\.target (\w+)", ptx, re.MULTILINE)
        assert target is not None
        assembled = [self.settings.ptxas, f"-arch={target[1].decode()}", "-o", image, self.folder / "text.ptx"]
        subprocess.run(assembled, check=True, capture_output=True)
        return disassembled(image, self.settings.nvdisasm)

    def load(self, name: str, text: str, *, whole_call: bool = False) -> Any:
        """Load a text; its label is the same for both ways."""
        source = self.folder / "kernel.cu"
        source.write_text(text)
        return kernix.load_cuda_file(
            source,
            name=name,
            extra_cuda_cflags=[*self.flags, "-no-compress"],
            compute_capability=self.settings.architecture,
            force_rebuild=whole_call,
            auto_register=self.runs,
        )

    def edited(self, edit: int) -> tuple[Any, str]:
        """Load the text with an edit at its end. Return the text, too."""
        text = f"{self.text}\nstatic const int edit_{edit} = 0;\n"
        return self.load(f"{self.name}_{edit}", text), text

    def teach(self) -> None:
        """Load the file as often as kernixd needs it to learn."""
        try:
            for edit in range(2):
                self.edited(edit)
        except kernix.KernelCompilationError:
            pass  # see failure()
        await_lessons(most=4)

    def differs(self) -> bool:
        """Compare the file, and print what differs. Return whether anything does."""
        difference = self.difference()
        print(f"{self.file.name}: {difference or 'the same'}", flush=True)
        return bool(difference)

    def difference(self) -> str:
        """Return what differs between both ways; empty: nothing."""
        try:
            fast, edited = self.edited(2)
            different = [] if self.settings.short else self.differences(fast, edited)
            again = self.load(f"{self.name}_moved", moved(edited))
            different += [f"{what} after an edit" for what in self.differences(again, moved(edited))]
        except kernix.KernelCompilationError as error:
            return self.failure(error)
        return ", ".join(different)

    def differences(self, fast: Any, text: str) -> list[str]:
        """Return what differs between a module and what one call of nvcc makes of its text."""
        nvdisasm = self.settings.nvdisasm
        made_fast = made(fast.path, self.folder, nvdisasm)
        whole = self.load(f"{fast.name}_whole", text, whole_call=True)
        made_whole = made(whole.path, self.folder, nvdisasm)
        different = [what for what, content in made_fast.items() if content != made_whole[what]]
        if "host code" in different and only_names_move(fast.path, whole.path):
            different.remove("host code")
        if not made_fast["machine code"]:
            different.append("no machine code was found")
        if not self.flags and not {*map(self.by_one_thread, made_fast["PTX"])} <= {*made_fast["machine code"]}:
            different.append("machine code of one thread of ptxas")
        if self.runs and computed(fast, text) != computed(whole, text):
            different.append("results")
        return different

    def failure(self, error: kernix.KernelCompilationError) -> str:
        """Return what differs if shortcuts cannot build the file: nothing if one call of nvcc cannot either."""
        try:
            self.load("fails", self.text, whole_call=True)
        except kernix.KernelCompilationError:
            return ""
        return f"only one call of nvcc compiles it: {error}"


def compare(files: list[pathlib.Path], settings: Settings, jobs: int, folder: pathlib.Path) -> int:
    """Compare files, each in a folder of its own. Return how many differ."""
    comparisons = []
    for number, file in enumerate(files):
        own = folder / str(number)
        own.mkdir()
        comparisons.append(Comparison(settings, file, own))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        collections.deque(pool.map(Comparison.teach, comparisons), maxlen=0)
        await_lessons()
        before = counters()
        wrong = sum(pool.map(Comparison.differs, comparisons))
    on = "compared, run on a GPU" if settings.has_gpu else "compared"
    print(f"{len(files)} files {on}; {wrong} differ")
    for name, count in sorted((counters() - before).items()):
        print(f"  {name} {count}")
    return wrong


def main() -> int:
    """Compare all files; return the process's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--arch", default="sm_90", help="of the kernels; several with commas between")
    parser.add_argument("--only-files", action="store_true", help="leave out the kernels of the corpus")
    parser.add_argument("--short", action="store_true", help="compare each file only after its edit")
    # More than cores, because each also waits for a process.
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="files at the same time")
    arguments = parser.parse_args()
    settings = Settings(
        architecture=arguments.arch,
        short=arguments.short,
        has_gpu=jax.default_backend() == "gpu",
        nvdisasm=find_program("nvdisasm"),
        ptxas=find_program("ptxas"),
    )
    files = [] if arguments.only_files else sorted(CORPUS.glob("*.cu"))
    files += arguments.files
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KERNIX_CACHE_DIR"] = f"{folder}/store"
        try:
            wrong = compare(files, settings, arguments.jobs, pathlib.Path(folder))
        finally:
            subprocess.run([KERNIXCTL, "shutdown"], check=False, capture_output=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
