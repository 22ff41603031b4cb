"""Messages that broke the schema, by whom, version and reason, and over time (rules S706–S707).

Folded from the events of the record, which hold the hash of what was refused and never the body (ruling 12).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter

from observatory.features.archive.violations import BUCKETS, Violation, folded
from observatory.features.fleet.routes import time_of
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns
from observatory.protocol.events import REFUSALS_COUNTED, SEVERITY

HOUR_NS = 3_600_000_000_000
LONGEST_NS = 31 * 24 * HOUR_NS
PAGE = 1_000
MOST = 20_000  # events of that severity that are looked at; beyond it the answer says so
KINDS = re.compile(f'"event_type":"(?:schema_violation|{REFUSALS_COUNTED})"'.encode()).search
ONLY_COUNTED = "further violations of one key in a minute, which are only counted"


class ViolationItem(msgspec.Struct, kw_only=True):
    """One refused message; `raw_payload_hash` is all that is kept of it. A `count` above 1: so many that the
    record only counts, and the hash is the root over them."""

    sequence_number: int
    audit_event_id: str
    at: str
    agent_id: str | None
    agent_type: str | None
    capability_version: str | None
    reason: str
    raw_payload_hash: str
    count: int


class ViolationGroup(msgspec.Struct, kw_only=True):
    agent_id: str | None
    agent_type: str | None
    capability_version: str | None
    reason: str
    count: int
    first_at: str
    last_at: str
    counts: list[int]  # by bucket


class ViolationsAnswer(msgspec.Struct, kw_only=True):
    since: str
    until: str
    bucket_s: float
    total: int
    counts: list[int]
    groups: list[ViolationGroup]
    groups_count: int
    newest: list[ViolationItem]
    truncated: bool


VIOLATION_ANSWERS: dict[str, Any] = {"list_violations": ViolationsAnswer}


class _Body(msgspec.Struct):
    event_type: str
    agent_id: str | None = None
    capability_version: str | None = None
    violation_reason: str = ""
    raw_payload_hash: str = ""
    refused: str = ""
    root: str = ""
    count: int = 1


class _Record(msgspec.Struct):
    audit_event_id: str
    timestamp: str
    body: _Body


_read = msgspec.json.Decoder(_Record).decode


@get("/violations", summary="Messages that broke the schema, by whom and why", operation_id="list_violations")
async def list_violations(
    request: Call,
    house: Here,
    since: Annotated[str | None, QueryParameter(description="An hour ago if left out.")] = None,
    until: Annotated[str | None, QueryParameter(description="Now if left out.")] = None,
    agent: FromQuery[str | None] = None,
    version: Annotated[str | None, QueryParameter(description="`none`: those that told none.")] = None,
    reason: Annotated[str | None, QueryParameter(description="Text that stands in it.")] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=500, description="Groups, and newest.")] = 100,
) -> Response[bytes]:
    """Groups by count, the most first; `counts` are of equal parts of the time asked for."""
    who = await need(request, house, "read")
    end = house.clock() if until is None else time_of("until", until)
    start = end - HOUR_NS if since is None else time_of("since", since)
    if start >= end:
        raise Refusal(400, "bad_range", "since must lie before until")
    if end - start > LONGEST_NS:
        raise Refusal(400, "bad_range", "at most 31 days at once; give a later since")
    records, truncated = await _records(house, who.tenant_id, start, end)
    found = await asyncio.to_thread(lambda: list(_violations(records)))
    wanted = [
        one
        for one in found
        if (agent is None or one.agent_id == agent)
        and (version is None or (one.capability_version or "none") == version)
        and (reason is None or reason.casefold() in one.reason.casefold())
    ]
    shown = await asyncio.to_thread(folded, wanted, start, end)
    names = sorted({one.agent_id for one in wanted if one.agent_id is not None})
    rows = await house.store.rows(who.tenant_id, "agents", agent_id=names) if names else []
    types = {row["agent_id"]: row["agent_type"] for row in rows}
    groups = [row | {"agent_type": types.get(row["agent_id"])} for row in shown.groups]
    return json(
        {
            "since": from_ns(start),
            "until": from_ns(end),
            "bucket_s": (end - start) / BUCKETS / 1e9,
            "total": sum(one.times for one in wanted),
            "counts": shown.counts,
            "groups": groups[:limit],
            "groups_count": len(groups),
            "newest": [one.told() | {"agent_type": types.get(one.agent_id)} for one in wanted[:limit]],
            "truncated": truncated,
        }
    )


async def _records(
    house: House, tenant_id: str, start: int, end: int
) -> tuple[list[tuple[int, bytes]], bool]:
    """Newest first; of what is severe enough only those of this kind are kept."""
    kept: list[tuple[int, bytes]] = []
    looked, before = 0, None
    while looked < MOST:
        where = EventFilter(
            since_ns=start, until_ns=end, severity_min=SEVERITY["schema_violation"], before=before
        )
        page = await house.store.events(tenant_id, where, PAGE, newest_first=True)
        kept += [(event.sequence_number, event.record) for event in page if KINDS(event.record)]
        looked += len(page)
        if len(page) < PAGE:
            return kept, False
        before = page[-1].sequence_number
    return kept, True


def _violations(records: Iterable[tuple[int, bytes]]) -> Iterable[Violation]:
    for number, record in records:
        event = _read(record)
        body = event.body
        is_count = body.event_type == REFUSALS_COUNTED
        # The bytes may stand in a text of another kind.
        if (body.refused if is_count else body.event_type) == "schema_violation":
            yield Violation(
                number,
                event.audit_event_id,
                event.timestamp,
                body.agent_id,
                body.capability_version,
                ONLY_COUNTED if is_count else body.violation_reason,
                body.root if is_count else body.raw_payload_hash,
                body.count,
            )


violations_router = Router(path="/v1", route_handlers=[list_violations], tags=["Forensic Inspector"])
