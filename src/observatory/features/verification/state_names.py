"""Which rows an event tells of that was recorded before acts stated their rows: by ids in its body alone.

What stands in such a row is not compared. Sign-ins were named by no event at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from observatory.pipeline.row_statements import STATED
from observatory.protocol.clock import to_ns

Key = tuple[object, ...]
# What a key's column is called in a body, where it is not called as the column.
CALLED: Final = {
    ("knobs", "name"): "setting",
    ("reviews", "sequence_number"): "about_sequence_number",
}
COOKIE_NS: Final = 12 * 3600 * 1_000_000_000  # no sign-in is good for longer


def named(body: dict[str, Any]) -> Iterator[tuple[str, Key]]:
    places = [body, *(one for one in (body.get("before"), body.get("after")) if isinstance(one, dict))]
    for table, declared in STATED.items():
        for place in places:
            key = tuple(place.get(CALLED.get((table, name), name)) for name in declared.key)
            if None not in key:
                yield table, key
    yield from _versions(body)
    for address in (*body.get("granted", ()), *body.get("revoked", ())):
        yield "grants", (body.get("entity_id"), address)
    if body["event_type"] == "job_fired":
        yield "job_runs", (body["job_id"], to_ns(body["scheduled_for"]))


def _versions(body: dict[str, Any]) -> Iterator[tuple[str, Key]]:
    if body["event_type"] == "version_unknown":
        yield "versions", (body["agent_type"], body["capability_version"])
    elif body["event_type"] == "version_registered":
        for version in body["versions"]:
            yield "versions", (body["agent_type"], version)


def is_before(table: str, row: dict[str, Any], since_ns: int) -> bool:
    """A sign-in of before the first one that an event states: over by now, or within hours of then."""
    return table == "logins" and row["created_ns"] < since_ns and row["expires_ns"] <= since_ns + COOKIE_NS
