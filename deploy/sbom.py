# SPDX-License-Identifier: Apache-2.0
"""Write an SPDX document beside each package, ``PACKAGE.spdx.json``: what is in it, or what it depends on.

``sbom.py PACKAGE...``: a wheel has a licence of each Debian package that was linked into it, and a Debian package names
those that it needs. Both are described as they are installed here, where the packages were built; what is not installed
is only named.
"""

import datetime
import hashlib
import pathlib
import re
import subprocess
import sys
import time
import zipfile

from spdx_tools.spdx.model import (
    Actor,
    ActorType,
    Checksum,
    ChecksumAlgorithm,
    CreationInfo,
    Document,
    ExternalPackageRef,
    ExternalPackageRefCategory,
    Package,
    Relationship,
    RelationshipType,
    SpdxNoAssertion,
)
from spdx_tools.spdx.writer.write_anything import write_file


def output_of(*command: str) -> str:
    """Return what a command prints; fail as it fails."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def parts_of_wheel(path: pathlib.Path) -> list[str]:
    """Return the Debian packages that were linked into a wheel."""
    names = zipfile.ZipFile(path).namelist()
    return [match[1] for name in names if (match := re.fullmatch(r"kernix/licenses/(.*)\.txt", name))]


def needs_of_deb(path: pathlib.Path) -> list[str]:
    """Return the packages that a Debian package depends on, without kernix's own."""
    depends = output_of("dpkg-deb", "--field", str(path), "Depends").replace("\n", " ")
    names = [re.split(r"[ |(:]", need.strip())[0] for need in depends.split(",")]
    return [name for name in names if name and name != "kernixd"]


def component(name: str) -> Package:
    """Describe a Debian package."""
    package = Package(
        spdx_id="SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
        name=name,
        download_location=SpdxNoAssertion(),
        files_analyzed=False,
    )
    fields = "${db:Status-Status}\\n${source:Package}\\n${Version}\\n${Homepage}"
    query = subprocess.run(["dpkg-query", "--show", "--showformat", fields, name], capture_output=True, text=True)
    if not query.stdout.startswith("installed\n"):
        return package
    _, source, version, homepage = query.stdout.split("\n")
    distribution = output_of("sh", "-c", ". /etc/os-release && echo $ID").strip()
    architecture = output_of("dpkg", "--print-architecture").strip()
    locator = f"pkg:deb/{distribution}/{name}@{version.replace('+', '%2B').replace('~', '%7E')}?arch={architecture}"
    package.version = version
    package.source_info = f"built from the source package {source}"
    package.homepage = homepage or None
    package.external_references = [ExternalPackageRef(ExternalPackageRefCategory.PACKAGE_MANAGER, "purl", locator)]
    return package


def write(path: pathlib.Path, kind: RelationshipType, names: list[str]) -> pathlib.Path:
    """Write the document of a package."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    whole = Package(
        spdx_id="SPDXRef-package",
        name=path.name,
        version=path.name.split("_" if path.suffix == ".deb" else "-")[1],
        download_location=SpdxNoAssertion(),
        files_analyzed=False,
        checksums=[Checksum(ChecksumAlgorithm.SHA256, digest)],
    )
    parts = [component(name) for name in sorted(set(names))]
    about = CreationInfo(
        spdx_version="SPDX-2.3",
        spdx_id="SPDXRef-DOCUMENT",
        name=path.name,
        document_namespace=f"urn:kernix:sbom:{digest}",
        creators=[Actor(ActorType.TOOL, "kernix-deploy-sbom.py")],
        created=datetime.datetime(*time.gmtime()[:6]),
    )
    relationships = [Relationship("SPDXRef-DOCUMENT", RelationshipType.DESCRIBES, whole.spdx_id)]
    relationships += [Relationship(whole.spdx_id, kind, part.spdx_id) for part in parts]
    document = path.with_name(path.name + ".spdx.json")
    write_file(Document(about, [whole, *parts], relationships=relationships), str(document), validate=True)
    return document


def main(packages: list[str]) -> None:
    """Write the document of each, and print its path."""
    for path in map(pathlib.Path, packages):
        if path.suffix == ".whl":
            print(write(path, RelationshipType.CONTAINS, parts_of_wheel(path)))
        else:
            print(write(path, RelationshipType.DEPENDS_ON, needs_of_deb(path)))


if __name__ == "__main__":
    main(sys.argv[1:])
