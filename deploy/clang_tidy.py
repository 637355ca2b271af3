# SPDX-License-Identifier: Apache-2.0
"""clang-tidy (see .clang-tidy) with Clang's thread-safety analysis over every source that CMake compiles.

Tests get Clang's own warnings and that analysis alone: clang-tidy's checks take longer than the compiler, and would
be half of all the time.

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

ARGUMENTS = ["--quiet", "--extra-arg=-Wthread-safety", "--extra-arg=-Wno-unknown-warning-option"]
TEST_ARGUMENTS = ["-fsyntax-only", "-Werror", "-Wthread-safety", "-Wno-unknown-warning-option"]


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


def without_precompiled_headers(entry: dict[str, str]) -> dict[str, str]:
    """Return an entry that Clang can follow: g++'s precompiled headers are not for it."""
    words = shlex.split(entry["command"])
    if "-Winvalid-pch" in words:
        at = words.index("-Winvalid-pch")
        del words[at : at + 3]  # and -include FILE
    return {**entry, "command": shlex.join(words)}


def stamp_of(entry: dict[str, str], read: list[pathlib.Path], common: bytes) -> str:
    """Return a digest over all that decides what clang-tidy says of one source."""
    hashed = hashlib.sha256(common + entry["command"].encode())
    for path in sorted(path for path in read if path.suffix != ".gch"):
        hashed.update(bytes(path) + b"\0" + digest_of(path))
    return hashed.hexdigest()


def is_test(source: str) -> bool:
    """Return whether a source is part of a test."""
    return source.endswith("_test.cc") or os.path.relpath(source).startswith("tests/")


def command_for(database: pathlib.Path, entry: dict[str, str]) -> list[str]:
    """Return what checks one source."""
    if not is_test(entry["file"]):
        return ["clang-tidy", "-p", str(database), *ARGUMENTS, entry["file"]]
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
    entries = [without_precompiled_headers(entry) for entry in entries if entry["file"] in tracked]
    sources = {entry["file"]: entry for entry in entries}
    read = files_read(build)
    unbuilt = [source for source, entry in sources.items() if not read.get(object_of(entry))]
    if unbuilt or not sources:
        print(f"lint: run `make build` first; not built in {build}: {' '.join(unbuilt) or 'anything'}", file=sys.stderr)
        return 2

    settings = pathlib.Path(".clang-tidy").read_text()
    common = " ".join([*ARGUMENTS, *TEST_ARGUMENTS, output_of("clang-tidy", "--version"), settings]).encode()
    stamps = build / "lint"
    stamps.mkdir(exist_ok=True)
    (stamps / "compile_commands.json").write_text(json.dumps(entries))

    def is_clean(entry: dict[str, str]) -> bool:
        return check(stamps, entry, stamps / stamp_of(entry, read[object_of(entry)], common))

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        clean = list(pool.map(is_clean, sources.values()))
    print(f"lint: {clean.count(True)} of {len(clean)} C++ files clean")
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).absolute()))
