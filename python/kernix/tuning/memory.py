# SPDX-License-Identifier: Apache-2.0
"""The results of earlier searches, as files beside the user's store."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from kernix import _core
from kernix.loading.connection import store_override
from kernix.tuning import driver
from kernix.tuning.result import TuningRow, TuningTable
from kernix.tuning.space import Settings

_FORMAT = 1  # of the files
_MOST_FILES = 1000


class Remembered(NamedTuple):
    """The result of a search.

    Attributes
    ----------
    winner : int
        The number of the variant that has won.
    module_key : str
        The key of its module. It changes with headers, flags and compilers, too.
    table : TuningTable
        What is known about the variants, in their order.
    """

    winner: int
    module_key: str
    table: TuningTable


class Memory:
    """The place of one search's result.

    Parameters
    ----------
    about : dict
        All that the result depends on, besides what `Remembered.module_key` covers.
    """

    def __init__(self, about: Mapping[str, Any]) -> None:
        self._about = json.dumps([_FORMAT, about], default=_plain, sort_keys=True)
        text = self._about.encode()
        self._written, self._read_folders = _folders()
        # The file says what it is about, so names need not differ. hashlib's import would take a third of a recall.
        self._name = f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}.json"

    def recall(self, variants: Sequence[Settings]) -> Remembered | None:
        """Return the result that is kept for these variants, in the first folder that has one."""
        folders = filter(_is_safe, self._read_folders)
        kept = (self._read(os.path.join(folder, self._name), variants) for folder in folders)
        return next(filter(None, kept), None)

    def _read(self, path: str, variants: Sequence[Settings]) -> Remembered | None:
        """Read a result. A file that is damaged counts as none."""
        try:
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            if kept["about"] != self._about:
                return None
            rows = [
                TuningRow(**{**row, "settings": settings})
                for row, settings in zip(kept["table"], variants, strict=True)
            ]
            remembered = Remembered(kept["winner"], kept["module_key"], TuningTable(rows))
            return remembered if remembered.table[remembered.winner].outcome == "best" else None
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return None

    def keep(self, remembered: Remembered) -> None:
        """Keep a result. It is no error if no folder can be written: the next search takes its time again."""
        content = {
            "about": self._about,
            "winner": remembered.winner,
            "module_key": remembered.module_key,
            "table": [row._asdict() for row in remembered.table],
        }
        for folder in self._written:
            with suppress(OSError):
                os.makedirs(folder, mode=0o700, exist_ok=True)
                if _is_safe(folder):
                    self._write(folder, json.dumps(content))
                    _remove_oldest(folder)
                    return

    def _write(self, folder: str, text: str) -> None:
        import tempfile  # only a search needs it

        handle, path = tempfile.mkstemp(dir=folder, suffix=".new")
        try:
            os.fchmod(handle, 0o644)  # the folder decides who may read
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(path, os.path.join(folder, self._name))
        except BaseException:
            os.unlink(path)
            raise


def describe_machine(on_gpu: bool, device: int) -> dict[str, str]:
    """Return the hardware, and the driver, that times depend on."""
    return driver.describe_gpu(device) if on_gpu else _describe_cpu()


def _describe_cpu() -> dict[str, str]:
    """Return the processor's model and the number of cores that this process may use."""
    model = ""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    return {"cpu": model, "cores": str(len(os.sched_getaffinity(0)))}


def _folders() -> tuple[list[str], list[str]]:
    """Return the folders that may take a result, the first that can, and those that are read.

    They lie beside the user's stores. The default store may be on a node's own disk: the home, which nodes share, goes
    first.
    """
    named = store_override() or os.environ.get("KERNIX_CACHE_DIR", "")
    stores = [store for store in named.split(os.pathsep) if store]
    if stores:
        folders = _beside(stores)
        return folders[:1], folders
    home = os.fsdecode(_core.cache_home())
    in_home = [os.path.join(home, "kernix")] if home else []
    folders = _beside(dict.fromkeys([*in_home, _core.default_store_directory()]))
    return folders, folders


def _beside(stores: Iterable[str]) -> list[str]:
    return [f"{os.path.normpath(store)}.tuned" for store in stores]


def _is_safe(folder: str) -> bool:
    """Return whether only root or this user has made the folder, unlike one in /tmp, and may write to it."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022


def _remove_oldest(folder: str) -> None:
    with os.scandir(folder) as entries:
        files = [(entry.stat().st_mtime, entry.path) for entry in entries]
    for _, path in sorted(files)[: max(0, len(files) - _MOST_FILES)]:
        with suppress(FileNotFoundError):  # another process has removed it
            os.unlink(path)


def _plain(value: Any) -> Any:
    """Return what JSON has no form for as a value with the same meaning in each process."""
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if isinstance(value, os.PathLike):
        return os.path.abspath(os.fsdecode(value))
    return value.tolist() if hasattr(value, "tolist") else str(value)
