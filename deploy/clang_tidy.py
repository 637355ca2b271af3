# SPDX-License-Identifier: Apache-2.0
"""clang-tidy (see .clang-tidy) with Clang's thread-safety analysis over every source that CMake compiles.

Tests get Clang's own warnings and that analysis alone: clang-tidy's checks take longer than the compiler, and would
be half of all the time. Tests also get a precompiled header; the product is read without one, so what a source does not
include is found.

``clang_tidy.py BUILD_FOLDER``. A file that was clean is not looked at again until something changes that its findings
depend on: the file, a header that the compiler read for it, how it is compiled, the settings, clang-tidy itself.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

CLANG_TIDY = str(pathlib.Path(sys.executable).with_name("clang-tidy"))
# libstdc++ 12 uses what it deprecates; g++ reports what is our own.
ARGUMENTS = ["-Wthread-safety", "-Wno-unknown-warning-option", "-Wno-deprecated-declarations"]
TEST_ARGUMENTS = ["-fsyntax-only", "-Werror", "-Wthread-safety", "-Wno-unknown-warning-option"]
TESTS_HEADER = "/kernix_test_headers.dir/cmake_pch.hxx.cxx"


def output_of(*command: str) -> str:
    """Return what a command prints; fail as it fails."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@functools.cache
def digest_of(path: pathlib.Path) -> bytes:
    """Return the digest of a file's content."""
    return hashlib.sha256(path.read_bytes()).digest()


def files_read(build: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """Return which files the compiler read for each object, as ninja has noted it."""
    read: dict[str, list[pathlib.Path]] = {}
    name = ""
    for line in output_of("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line.startswith("    "):
            read[name].append(build / line.strip())
        elif ": #deps" in line:
            name = line.partition(": #deps")[0]
            read[name] = []
    return read


def object_of(entry: dict[str, str]) -> str:
    """Return the object that an entry of compile_commands.json makes, as ninja names it."""
    words = shlex.split(entry["command"])
    return words[words.index("-o") + 1]


def for_clang(entry: dict[str, str], tests_header: pathlib.Path) -> dict[str, str]:
    """Return an entry that Clang can follow: g++'s precompiled headers are not for it."""
    words = shlex.split(entry["command"])
    if "-Winvalid-pch" in words:
        at = words.index("-Winvalid-pch")
        has_header = is_test(entry["file"]) and f"{words[at + 2]}.cxx".endswith(TESTS_HEADER)
        words[at : at + 3] = ["-include-pch", str(tests_header)] if has_header else []
    return {**entry, "command": shlex.join(words)}


def stamp_of(entry: dict[str, str], read: list[pathlib.Path], common: bytes) -> str:
    """Return a digest over all that decides what clang-tidy says of one source."""
    hashed = hashlib.sha256(common + entry["command"].encode())
    for path in sorted(path for path in read if path.suffix != ".gch"):
        hashed.update(bytes(path) + b"\0" + digest_of(path))
    return hashed.hexdigest()


def precompile(entry: dict[str, str], header: pathlib.Path) -> None:
    """Precompile with Clang what an entry precompiles with g++, unless it is there."""
    if header.exists():
        return
    for older in header.parent.glob("*.pch"):
        older.unlink()
    words = shlex.split(entry["command"])
    flags = words[1 : words.index("-Winvalid-pch")]
    source = entry["file"].removesuffix(".cxx")
    # The name of the output says what is in it, so a file that was only written again is the same.
    command = ["clang++", *flags, "-w", "-Xclang", "-fno-pch-timestamp", "-x", "c++-header", source, "-o", str(header)]
    subprocess.run(command, check=True, cwd=entry["directory"])


def is_test(source: str) -> bool:
    """Return whether a source is part of a test."""
    return source.endswith("_test.cc") or os.path.relpath(source).startswith("tests/")


def command_for(database: pathlib.Path, entry: dict[str, str]) -> list[str]:
    """Return what checks one source."""
    if not is_test(entry["file"]):
        extra = [f"--extra-arg={argument}" for argument in ARGUMENTS]
        return [CLANG_TIDY, "-p", str(database), "--quiet", *extra, entry["file"]]
    words = shlex.split(entry["command"])
    return ["clang++", *words[1 : words.index("-o")], *TEST_ARGUMENTS, entry["file"]]


def check(database: pathlib.Path, entry: dict[str, str], stamp: pathlib.Path) -> bool:
    """Return whether a source is clean; print the findings, and the tool's own complaints, if not."""
    if stamp.exists():
        return True
    command = command_for(database, entry)
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=entry["directory"])
    if done.returncode == 0:
        stamp.touch()
        return True
    print(f"lint: {os.path.relpath(entry['file'])}\n{done.stdout}{done.stderr}", file=sys.stderr, flush=True)
    return False


def main(build: pathlib.Path) -> int:
    """Check what git knows and CMake compiles."""
    tracked = {os.path.abspath(path) for path in output_of("git", "ls-files", "*.cc").splitlines()}
    entries = json.loads((build / "compile_commands.json").read_text())
    sources = {entry["file"]: entry for entry in entries if entry["file"] in tracked}
    [tests_header] = [entry for entry in entries if entry["file"].endswith(TESTS_HEADER)]
    read = files_read(build)
    unbuilt = [source for source, entry in sources.items() if not read.get(object_of(entry))]
    if unbuilt or not sources:
        print(f"lint: run `make build` first; not built in {build}: {' '.join(unbuilt) or 'anything'}", file=sys.stderr)
        return 2

    settings = pathlib.Path(".clang-tidy").read_text()
    versions = output_of("clang++", "--version") + output_of(CLANG_TIDY, "--version")
    common = " ".join([*ARGUMENTS, *TEST_ARGUMENTS, versions, settings]).encode()
    stamps = build / "lint"
    stamps.mkdir(exist_ok=True)
    precompiled = stamps / (stamp_of(tests_header, read[object_of(tests_header)], common) + ".pch")
    precompile(tests_header, precompiled)
    sources = {source: for_clang(entry, precompiled) for source, entry in sources.items()}
    (stamps / "compile_commands.json").write_text(json.dumps(list(sources.values())))

    def is_clean(entry: dict[str, str]) -> bool:
        return check(stamps, entry, stamps / stamp_of(entry, read[object_of(entry)], common))

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        clean = list(pool.map(is_clean, sources.values()))
    print(f"lint: {clean.count(True)} of {len(clean)} C++ files clean")
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).absolute()))
