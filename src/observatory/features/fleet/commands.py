"""Where clusters stand, as operators say it: a setting of the tenant, audited with before and after.

Law: what cannot be meant is refused with every fault found, and nothing is changed. A change names the
clusters it moves; coordinates are decimal text in the event. The corridor never reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from observatory.features.loops.stage import plain
from observatory.pipeline.concurrency import stale
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.pipeline.tenant_settings import bad_settings
from observatory.protocol.answers import Fault

NAME = "regions"


def change(
    who: Principal,
    places: Mapping[str, Any],
    faults: list[Fault],
    now_ns: int,
    was: str | None = None,
) -> Act:
    """`places` are all there are from now on: cluster → what is said of it, as plain data."""

    def decide(desk: Desk) -> Verdict:
        if faults:
            return Verdict(422, bad_settings(faults))
        rows = desk.memory.rows.setdefault("knobs", {})
        row = rows.get(NAME)
        refused = stale(was, 0 if row is None else row["updated_ns"])
        if refused is not None:
            return refused
        before: dict[str, Any] = {} if row is None else msgspec.json.decode(row["value"])
        changed = sorted(name for name in {*before, *places} if before.get(name) != places.get(name))
        if not changed:
            return Verdict(200, {"changed": []})
        values = {
            "tenant_id": who.tenant_id,
            "name": NAME,
            "value": msgspec.json.encode(dict(places)).decode(),
            "updated_ns": desk.now_ns,
            "updated_by": who.entity_id,
        }
        rows[NAME] = values
        detail = {
            "setting": NAME,
            "changed": changed,
            "before": {name: plain(before.get(name)) for name in changed},
            "after": {name: plain(places.get(name)) for name in changed},
        }
        summary = f"places of {len(changed)} clusters changed"
        event = notice(who.tenant_id, "setting_changed", summary, desk.now_ns, who, detail)
        return Verdict(
            200, {"changed": changed}, [event], [Write("knobs", values, key=("tenant_id", "name"))]
        )

    wants = Wants()
    wants.row("knobs", NAME)
    return Act(who, now_ns, decide, wants)


def read_back(told: Mapping[str, Any]) -> dict[str, Any]:
    """A place as an event tells it, with its coordinates as numbers again."""
    return {name: float(value) if name in ("lat", "lon") else value for name, value in told.items()}
