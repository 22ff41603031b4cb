"""The list of parts: valid CycloneDX, whole, and the same each time."""

from __future__ import annotations

import json
import re

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tools import licenses, sbom


@pytest.fixture(scope="module")
def made() -> sbom.Json:
    return sbom.document()


def test_the_list_of_parts_is_valid_cyclonedx_s1262(made: sbom.Json) -> None:
    """S1262: against the published schema, with nothing it does not know."""
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(made)) is None
    broken = made | {"components": [{"type": "library"}]}
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(broken)) is not None


def test_it_holds_what_the_image_installs_and_what_is_in_the_pages_s1262(made: sbom.Json) -> None:
    parts = {(one["purl"].split("/")[0], one["name"], one["version"]): one for one in made["components"]}
    python = {("pkg:pypi", name, version) for name, version in sbom.installed_by_the_image()}
    pages = {("pkg:npm", one.name, one.version) for one in licenses.packages()}
    assert len(python) > 50 and len(pages) > 50
    assert {(kind.partition("@")[0], name, version) for kind, name, version in parts} == python | pages
    for one in made["components"]:
        files = [one, *one.get("externalReferences", [])]
        hashes = [each["content"] for file in files for each in file.get("hashes", [])]
        assert hashes and all(re.fullmatch(r"[0-9a-f]{64}|[0-9a-f]{128}", each) for each in hashes), one[
            "name"
        ]


def test_every_part_is_reached_from_the_product_s1262(made: sbom.Json) -> None:
    """S1262: why it is there needs no guessing."""
    needs = {one["ref"]: one["dependsOn"] for one in made["dependencies"]}
    reached, waiting = set(), [made["metadata"]["component"]["bom-ref"]]
    while waiting:
        ref = waiting.pop()
        if ref not in reached:
            reached.add(ref)
            waiting += needs[ref]
    assert reached == set(needs)


def test_the_same_lock_gives_the_same_list_s1262(made: sbom.Json) -> None:
    assert sbom.document() == made
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["serialNumber"])
