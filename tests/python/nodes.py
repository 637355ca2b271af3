# SPDX-License-Identifier: Apache-2.0
"""Machines whose kernixds ask an engine, for tests."""

import json

import conftest

from kernix import _environment


class Node(conftest.Place):
    """A machine whose kernixd asks an engine."""

    def __init__(self, variables, **upstream):
        super().__init__()
        settings = {f"KERNIX_UPSTREAM_{name.upper()}": str(value) for name, value in upstream.items()}
        self.more_variables = settings | {"KERNIXD": _environment.program("kernixd")} | variables

    @property
    def environment(self):
        return super().environment | self.more_variables

    def compile(self, path, *options):
        """Return what kernixctl says of a file."""
        compiled = self.kernixctl("compile", str(path), "--json", *options, check=False)
        assert compiled.returncode == 0, compiled.stderr
        return json.loads(compiled.stdout)

    def stop(self):
        """End the daemon: everything is written then."""
        self.kernixctl("shutdown")

    def upstream_status(self):
        """Return what kernixctl says of the engine."""
        return json.loads(self.kernixctl("status", "--json").stdout)["upstream"]

    def key(self):
        """Return the key of the one load."""
        (entry,) = json.loads(self.kernixctl("cache", "list", "--json").stdout)
        return bytes.fromhex(entry["key"])

    def artifact(self):
        """Return what the load has made."""
        (path,) = (self.store / "artifacts").glob("*.so")
        return path.read_bytes()
