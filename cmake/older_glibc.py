# SPDX-License-Identifier: Apache-2.0
"""Make of this system's libc one to link against for older systems.

``older_glibc.py VERSION FOLDER`` writes copies of libc and libm into FOLDER. A linker takes the version of a symbol
that its library calls the default. In the copies that is the newest one up to VERSION (``2.27``). A newer symbol has
no default: to a linker, it is undefined.
"""

import pathlib
import struct
import sys

DYNAMIC_SYMBOLS, VERSION_DEFINITIONS, VERSION_OF_SYMBOL = 11, 0x6FFFFFFD, 0x6FFFFFFF  # types of sections
HIDDEN = 0x8000  # not the default version of its symbol


class Library:
    """An ELF file for x86-64, in memory."""

    def __init__(self, path: pathlib.Path) -> None:
        self.data = bytearray(path.read_bytes())
        (start,) = struct.unpack_from("<Q", self.data, 0x28)
        size, count = struct.unpack_from("<HH", self.data, 0x3A)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, start + size * i) for i in range(count)]

    def section(self, kind: int) -> tuple[int, int, int]:
        """Return the offset and size of the section of a type, and the offset of its strings."""
        section = next(section for section in self.sections if section[1] == kind)
        return section[4], section[5], self.sections[section[6]][4]

    def text(self, offset: int) -> str:
        """Return the string at an offset."""
        return self.data[offset : self.data.index(0, offset)].decode()

    def versions(self) -> dict[int, str]:
        """Return the names of versions by their index."""
        at, _, strings = self.section(VERSION_DEFINITIONS)
        names = {}
        while True:
            index, _, _, names_at, following = struct.unpack_from("<HHIII", self.data, at + 4)
            (name,) = struct.unpack_from("<I", self.data, at + names_at)
            names[index] = self.text(strings + name)
            if following == 0:
                return names
            at += following

    def definitions(self) -> dict[str, list[int]]:
        """Return where the version of each definition stands, by the symbol's name."""
        at, size, strings = self.section(DYNAMIC_SYMBOLS)
        versions, _, _ = self.section(VERSION_OF_SYMBOL)
        found: dict[str, list[int]] = {}
        for number in range(1, size // 24):
            name, _, _, section = struct.unpack_from("<IBBH", self.data, at + number * 24)
            if section != 0:
                found.setdefault(self.text(strings + name), []).append(versions + number * 2)
        return found


def number_of(version: str) -> tuple[int, ...]:
    """Return 2.27 of ``GLIBC_2.27``; what programs may not use is newer than everything."""
    family, _, number = version.partition("_")
    if family != "GLIBC" or number.startswith(("PRIVATE", "ABI")):
        return (sys.maxsize,)
    return tuple(int(part) for part in number.split("."))


def make_older(library: Library, newest: tuple[int, ...]) -> None:
    """Let the default of each symbol be the last version that is not newer."""
    numbers = {index: number_of(name) for index, name in library.versions().items()}
    for places in library.definitions().values():
        indexes = [struct.unpack_from("<H", library.data, place)[0] & ~HIDDEN for place in places]
        old_enough = [index for index in indexes if numbers.get(index, (sys.maxsize,)) <= newest]
        default = max(old_enough, key=lambda index: numbers[index], default=None)
        for place, index in zip(places, indexes, strict=True):
            struct.pack_into("<H", library.data, place, index if index == default else index | HIDDEN)


def main(version: str, folder: pathlib.Path) -> None:
    """Write the copies."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("libc", "libm"):
        library = Library(pathlib.Path("/lib/x86_64-linux-gnu", f"{name}.so.6"))
        make_older(library, tuple(int(part) for part in version.split(".")))
        (folder / f"{name}.so.6").write_bytes(library.data)
    (folder / "libm.so").write_text("GROUP ( libm.so.6 )\n")
    (folder / "libc.so").write_text("GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( ld-linux-x86-64.so.2 ) )\n")


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
