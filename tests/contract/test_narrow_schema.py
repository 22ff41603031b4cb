"""The DecisionLog schema is narrow: a field is in it because a view shows it, and for no other reason."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# Drawn as edges between steps; the pages read them as `edges`, from the graph the gateway makes of them.
DRAWN = {"parent_step_id", "parent_step_ids"}


def fields_of(schema: dict[str, Any], defs: dict[str, Any]) -> set[str]:
    """The name of every property, at any depth."""
    found: set[str] = set()
    if "$ref" in schema:
        return fields_of(defs[schema["$ref"].rpartition("/")[2]], defs)
    for name, inner in schema.get("properties", {}).items():
        found |= {name} | fields_of(inner, defs)
    parts = [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]
    return found.union(*(fields_of(part, defs) for part in parts))


def source_of_the_views() -> str:
    """The pages' own code, without the types that are generated from the schema."""
    files = [path for path in (ROOT / "ui/src").rglob("*.ts*") if "protocol" not in path.parts]
    return "\n".join(path.read_text("utf-8") for path in files if ".test." not in path.name)


@pytest.mark.req(4, 46)
def test_every_field_of_the_decision_log_is_used_by_a_view() -> None:
    schema = json.loads((ROOT / "schemas/decision_log.json").read_text("utf-8"))
    fields, source = fields_of(schema, schema["$defs"]), source_of_the_views()
    assert len(fields) > 30 and fields > DRAWN
    unused = {name for name in fields - DRAWN if not re.search(rf"\b{name}\b", source)}
    assert unused == set(), "no view needs these; a field is added when one does"
