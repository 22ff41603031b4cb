"""The rows named by events from before commands stated their rows, found by ids in the event's body.

The content of such rows is not compared. Sign-ins were not named by any event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from observatory.pipeline.row_statements import STATED_TABLES
from observatory.protocol.clock import to_ns

Key = tuple[object, ...]
# A key column's name in an event's body, where it differs.
BODY_NAMES: Final = {
    ("knobs", "name"): "setting",
    ("reviews", "sequence_number"): "about_sequence_number",
}
COOKIE_NS: Final = 12 * 3600 * 1_000_000_000  # the longest validity of a sign-in


def named_rows(body: dict[str, Any]) -> Iterator[tuple[str, Key]]:
    objects = [body, *(one for one in (body.get("before"), body.get("after")) if isinstance(one, dict))]
    for table, declared in STATED_TABLES.items():
        for members in objects:
            key = tuple(members.get(BODY_NAMES.get((table, name), name)) for name in declared.key)
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
    """A sign-in from before the first one that an event states: expired by then, or within hours."""
    return table == "logins" and row["created_ns"] < since_ns and row["expires_ns"] <= since_ns + COOKIE_NS
