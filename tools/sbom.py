"""`make sbom`: what the product is made of, as CycloneDX 1.6 in `dist/sbom.cdx.json`.

Python: exactly what the image installs, which is what `uv export` names of the lock, with every file's hash.
npm: what may be in the built pages (`tools/licenses.py`). The same lock gives the same document, byte for
byte, but for licenses of packages that are of another platform and so are not installed here.
"""

from __future__ import annotations

import base64
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools import licenses, windows

TARGET = windows.ROOT / "dist/sbom.cdx.json"
PROJECT = "hypervisor-observatory"
EXPORT = ("--frozen", "--no-default-groups", "--all-extras", "--no-emit-project", "--no-hashes", "--quiet")
PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;]+)", re.MULTILINE)
CLASSIFIER = "License :: "
Json = dict[str, Any]


def installed_by_the_image() -> list[tuple[str, str]]:
    """Name and version, as the Dockerfile's own `uv export` has them."""
    uv = Path(sys.executable).with_name("uv")
    told = subprocess.run(
        [str(uv), "export", *EXPORT], cwd=windows.ROOT, capture_output=True, text=True, check=True
    ).stdout
    return sorted(PINNED.findall(told))


def pypi(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{quote(version)}"


def npm(name: str, version: str) -> str:
    return f"pkg:npm/{quote(name, safe='/')}@{quote(version)}"


def _licensed(licenses: list[Json]) -> Json:
    return {"licenses": licenses} if licenses else {}


def license_of(name: str) -> list[Json]:
    """What the installed package says of itself: in SPDX, else in its classifiers or one line of its own."""
    try:
        told = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return []
    if "License-Expression" in told:
        return [{"expression": told["License-Expression"]}]
    said = [
        str(one).rpartition(" :: ")[2] for one in told.get_all("Classifier", []) if CLASSIFIER in str(one)
    ]
    line = told["License"].strip() if "License" in told else ""
    names = said or ([line] if line and "\n" not in line else [])
    return [{"license": {"name": one}} for one in names]


def _files(locked: Json) -> Json:
    files = [*([locked["sdist"]] if "sdist" in locked else []), *locked.get("wheels", [])]
    return {
        "externalReferences": [
            {
                "type": "distribution",
                "url": one["url"],
                "hashes": [{"alg": "SHA-256", "content": one["hash"].removeprefix("sha256:")}],
            }
            for one in files
        ]
    }


def python_parts() -> tuple[list[Json], list[Json], list[str]]:
    """Components, who needs whom, and what the project itself needs."""
    lock = tomllib.loads((windows.ROOT / "uv.lock").read_text("utf-8"))["package"]
    wanted = {(name, version): pypi(name, version) for name, version in installed_by_the_image()}
    components, needs, own = [], [], []
    for one in lock:
        key = (one["name"], one["version"])
        asked = [
            *one.get("dependencies", []),
            *(x for y in one.get("optional-dependencies", {}).values() for x in y),
        ]
        refs = sorted(set(_wanted(asked, wanted)))
        if one["name"] == PROJECT:
            own = refs
        elif key in wanted:
            about = {
                "type": "library",
                "bom-ref": wanted[key],
                "name": one["name"],
                "version": one["version"],
            }
            components.append(
                about | _licensed(license_of(one["name"])) | {"purl": wanted[key]} | _files(one)
            )
            needs.append({"ref": wanted[key], "dependsOn": refs})
    return components, needs, own


def _wanted(asked: Iterable[Json], wanted: dict[tuple[str, str], str]) -> Iterable[str]:
    for need in asked:
        for (name, version), ref in wanted.items():
            if name == need["name"] and need.get("version", version) == version:
                yield ref


def npm_parts() -> tuple[list[Json], list[Json], list[str]]:
    places, found = licenses.locked(), licenses.packages()
    refs = {one.place: npm(one.name, one.version) for one in found}
    components, needs = [], []
    for one in found:
        entry = places[one.place]
        digest = base64.b64decode(entry["integrity"].removeprefix("sha512-")).hex()
        about = {"type": "library", "bom-ref": refs[one.place], "name": one.name, "version": one.version}
        components.append(
            about
            | {"hashes": [{"alg": "SHA-512", "content": digest}]}
            | _licensed([{"expression": one.license.strip("()")}])
            | {"purl": refs[one.place]}
        )
        asked = {**entry.get("dependencies", {}), **entry.get("peerDependencies", {})}
        needs.append({"ref": refs[one.place], "dependsOn": sorted(_resolved(one.place, asked, refs))})
    builders = {npm(name, places[f"node_modules/{name}"]["version"]) for name in licenses.BUILDERS}
    direct = {refs[f"node_modules/{name}"] for name in places[""]["dependencies"]}
    return components, needs, sorted(direct | builders)


def _resolved(place: str, asked: Iterable[str], refs: dict[str, str]) -> set[str]:
    """As Node looks a name up: in the package's own folder first, then in those above it."""
    above = [place]
    while "/node_modules/" in above[-1]:
        above.append(above[-1].rpartition("/node_modules/")[0])
    folders = [*(f"{one}/node_modules" for one in above), "node_modules"]
    looked = ([f"{folder}/{name}" for folder in folders] for name in asked)
    return {refs[found] for places in looked if (found := next((one for one in places if one in refs), None))}


def document() -> Json:
    project = tomllib.loads((windows.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    python, python_needs, own = python_parts()
    pages, pages_need, of_pages = npm_parts()
    root = pypi(PROJECT, project["version"])
    made: Json = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": PROJECT,
                "version": project["version"],
                "description": project["description"],
                **_licensed([{"expression": project["license"]}]),
                "purl": root,
            }
        },
        "components": [*python, *pages],
        "dependencies": [{"ref": root, "dependsOn": [*own, *of_pages]}, *python_needs, *pages_need],
    }
    name = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True))
    return {**made, "serialNumber": f"urn:uuid:{name}"}


def main() -> int:
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(document(), indent=1) + "\n", "utf-8")
    print(TARGET.relative_to(windows.ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
