"""Changes where clusters are placed on the map: a setting of the tenant, audited with before and after.

Law: an invalid request is refused with every fault found, and nothing is changed. A change names the
clusters it moves; coordinates are decimal text in the event. The pipeline never reads this setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from observatory.features.fleet.types_regions import REGIONS
from observatory.pipeline.concurrency import conflict_if_stale
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.pipeline.tenant_settings import invalid_settings, plain
from observatory.protocol.responses import Fault


def change(
    who: Principal,
    places: Mapping[str, Any],
    faults: list[Fault],
    now_ns: int,
    was: str | None = None,
) -> Command:
    """`places` replaces the whole setting: cluster → its place, as plain data."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        if faults:
            return SubmissionResult(422, invalid_settings(faults))
        rows = uow.memory.rows.setdefault("knobs", {})
        row = rows.get(REGIONS)
        refused = conflict_if_stale(was, 0 if row is None else row["updated_ns"])
        if refused is not None:
            return refused
        before: dict[str, Any] = {} if row is None else msgspec.json.decode(row["value"])
        changed = sorted(name for name in {*before, *places} if before.get(name) != places.get(name))
        if not changed:
            return SubmissionResult(200, {"changed": []})
        values = {
            "tenant_id": who.tenant_id,
            "name": REGIONS,
            "value": msgspec.json.encode(dict(places)).decode(),
            "updated_ns": uow.now_ns,
            "updated_by": who.entity_id,
        }
        rows[REGIONS] = values
        detail = {
            "setting": REGIONS,
            "changed": changed,
            "before": {name: plain(before.get(name)) for name in changed},
            "after": {name: plain(places.get(name)) for name in changed},
        }
        summary = f"places of {len(changed)} {'cluster' if len(changed) == 1 else 'clusters'} changed"
        event = gateway_event(who.tenant_id, "setting_changed", summary, uow.now_ns, who, detail)
        return SubmissionResult(
            200, {"changed": changed}, [event], [RowWrite("knobs", values, key=("tenant_id", "name"))]
        )

    read_set = ReadSet()
    read_set.row("knobs", REGIONS)
    return Command(who, now_ns, decide, read_set)
