# SPDX-License-Identifier: Apache-2.0
"""CUDA toolkits that tests make from the real one: mostly links, with some parts of their own."""

import contextlib
import os
import pathlib
import shutil
import sysconfig
import tempfile

import pytest


def real_toolkit():
    """Return the folder of the toolkit: that of .venv's wheels, or that of the nvcc on PATH."""
    wheels = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13"
    if (wheels / "bin" / "nvcc").exists():
        return wheels
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    found = pathlib.Path(nvcc).resolve().parents[1]
    if not (found / "bin" / "ptxas").exists():
        pytest.skip("needs a CUDA toolkit in one folder: `make setup` installs its wheels where there is none")
    return found


@contextlib.contextmanager
def copied_wheels():
    """Return the toolkit of .venv's wheels, and a copy in another folder.

    The copy is no hard link: another name changes the state of a file, which the kernixds of other tests watch.
    """
    toolkit = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13"
    if not (toolkit / "bin" / "nvcc").exists():
        pytest.skip("needs the wheels of nvcc, which deploy/setup.sh installs where there is no other toolkit")
    with tempfile.TemporaryDirectory(dir=toolkit.parent) as folder:
        os.chmod(folder, 0o755)  # for other users
        shutil.copytree(toolkit, pathlib.Path(folder) / "toolkit", symlinks=True)
        yield toolkit, pathlib.Path(folder) / "toolkit"


class Toolkit:
    """A toolkit in a folder of its own, all of which are links but nvcc, which looks beside itself."""

    def __init__(self, root, real=None):
        self.root = root
        self.real = real or real_toolkit()
        for part in ("bin", "nvvm"):
            for path in (self.real / part).rglob("*"):
                here = root / path.relative_to(self.real)
                if path.is_dir():
                    here.mkdir(parents=True)
                elif path.name == "nvcc":
                    here.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, here)
                else:
                    here.parent.mkdir(parents=True, exist_ok=True)
                    here.symlink_to(path)
        for path in self.real.iterdir():
            if not (root / path.name).exists():
                (root / path.name).symlink_to(path)

    @property
    def nvcc(self):
        """The program to compile with."""
        return self.root / "bin" / "nvcc"

    @property
    def variables(self):
        """Environment variables that choose it."""
        return {"BRAINEVENT_NVCC_PATH": str(self.nvcc)}

    def program(self, name):
        """Return the path of one of its programs."""
        return self.root / ("nvvm/bin" if name == "cicc" else "bin") / name

    def original(self, name):
        """Return the path of the same program in the real toolkit."""
        return (self.real / self.program(name).relative_to(self.root)).resolve()

    def copy(self, name, appended, to=None):
        """Give it a program of its own, which does the same and has other bytes."""
        place = to or self.program(name)
        place.unlink(missing_ok=True)
        shutil.copy2(self.original(name), place)
        with place.open("ab") as program:
            program.write(appended)

    def script(self, name, text):
        """Give it a script in the place of a program."""
        place = self.program(name)
        place.unlink()
        place.write_text(f"#!/bin/sh\n{text}\n")
        place.chmod(0o755)


class Distribution(Toolkit):
    """The layout of Debian and Ubuntu: all programs but nvcc and cicc are beside the host compiler."""

    def __init__(self, root, real=None):
        super().__init__(root / "lib" / "cuda", real)
        self.shared = root / "bin"
        self.shared.mkdir()
        for name in ("cudafe++", "ptxas", "fatbinary", "nvlink"):
            self.program(name).rename(self.shared / name)
        (self.root / "nvvm" / "bin" / "cicc").rename(self.root / "bin" / "cicc")
        profile = self.root / "bin" / "nvcc.profile"
        profile.unlink()
        profile.write_text(
            f"NVVMIR_LIBRARY_DIR = {self.root}/nvvm/libdevice\nPATH += {self.root}/bin:\n"
            f"INCLUDES += -I{self.root}/include -I{self.root}/include/cccl\nLIBRARIES =+ -L{self.root}/lib\n"
        )
        (self.shared / "g++").symlink_to(shutil.which("g++"))

    @property
    def variables(self):
        return super().variables | {"CXX": str(self.shared / "g++")}
