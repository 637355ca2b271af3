# SPDX-License-Identifier: Apache-2.0
"""``python -m kernix image``: a bundle as an OCI image layout (github.com/opencontainers/image-spec, version 1.0)."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import sys
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

_TYPE = "application/vnd.oci.image."
#: What Go calls the processors, by the number that ELF has for each (e_machine).
_ARCHITECTURES = {62: "amd64", 183: "arm64"}
_EPILOG = """\
The image has one layer with the bundle's files, and no program. A container that mounts it as a volume sets
KERNIX_BUNDLES to where it lies. The same bundle makes the same bytes.

example:
  python -m kernix image kernels.kernix -o image
  skopeo copy oci:image:latest docker://registry.example.com/kernels:1.0
"""


def image(arguments: Sequence[str]) -> int:
    """Make the image that `arguments` ask for. Return an exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m kernix image",
        description="Write a bundle as an OCI image layout, which registries take and Kubernetes mounts.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("bundle", metavar="BUNDLE", help="the folder of a bundle")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="write the image to this new folder")
    parser.add_argument("--prefix", default="", metavar="PATH", help="the folder in the image (default: its root)")
    parser.add_argument("--tag", default="latest", help="the image's tag in the layout (default: latest)")
    chosen = parser.parse_args(arguments)
    try:
        write_image(chosen.bundle, chosen.output, prefix=chosen.prefix, tag=chosen.tag)
    except (OSError, ValueError) as error:
        print(f"python -m kernix image: {error}", file=sys.stderr)
        return 1
    return 0


def write_image(bundle: str, output: str, *, prefix: str = "", tag: str = "latest") -> None:
    """Write an image layout.

    Parameters
    ----------
    bundle : str
        The folder of a bundle.
    output : str
        A folder that does not exist yet.
    prefix : str, optional
        Where the image has the bundle's files: ``"models/kernels"``. Default: in its root.
    tag : str, optional
        The name of the image in the layout.

    Raises
    ------
    OSError
        If there is no bundle, or if the folder exists or cannot be written.
    ValueError
        If `prefix` leads out of the image, or is too long.
    """
    parts = [part for part in prefix.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(f"the prefix {prefix} must be a folder in the image, without ..")
    layer = _layer(bundle, parts)
    if os.path.exists(output):
        raise FileExistsError(f"{output} exists already: name a new folder")
    os.makedirs(os.path.join(output, "blobs", "sha256"))
    config = {
        "architecture": _architecture(bundle),
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}manifest.v1+json",
        "config": _put(output, "config.v1+json", _json(config)),
        "layers": [_put(output, "layer.v1.tar", layer)],
    }
    found = _put(output, "manifest.v1+json", _json(manifest))
    named = found | {"annotations": {"org.opencontainers.image.ref.name": tag}}
    _write(os.path.join(output, "index.json"), _json({"schemaVersion": 2, "manifests": [named]}))
    _write(os.path.join(output, "oci-layout"), _json({"imageLayoutVersion": "1.0.0"}))


def _architecture(bundle: str) -> str:
    """Return the processor that the first artifact is for; an empty bundle is for any, which OCI cannot say."""
    for name in sorted(os.listdir(bundle)):
        if name.endswith(".so"):
            with open(os.path.join(bundle, name), "rb") as file:
                return _ARCHITECTURES.get(int.from_bytes(file.read(20)[18:], "little"), "unknown")
    return "amd64"


def _layer(bundle: str, parts: Sequence[str]) -> bytes:
    """Return the tar file with the bundle's files in the folder that `parts` name."""
    if not os.path.isfile(os.path.join(bundle, "kernix-bundle")):
        raise FileNotFoundError(f"{bundle} is no folder of a bundle: it lacks the file kernix-bundle")
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for count in range(1, len(parts) + 1):
            folder = tarfile.TarInfo("/".join(parts[:count]))
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for name in sorted(os.listdir(bundle)):
            with open(os.path.join(bundle, name), "rb") as file:
                content = file.read()
            entry = tarfile.TarInfo("/".join([*parts, name]))
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return layer.getvalue()


def _put(output: str, kind: str, content: bytes) -> dict[str, Any]:
    """Write a blob. Return its descriptor."""
    digest = hashlib.sha256(content).hexdigest()
    _write(os.path.join(output, "blobs", "sha256", digest), content)
    return {"mediaType": f"{_TYPE}{kind}", "digest": f"sha256:{digest}", "size": len(content)}


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
