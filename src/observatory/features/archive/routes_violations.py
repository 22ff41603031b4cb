"""Schema violations by agent, version and reason, and over time (rules S706–S707).

Read from the events of the record, which hold the hash of a refused message, never its body (ruling 12).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter

from observatory.features.archive.violations import BUCKETS, ViolationRecord, summarize_violations
from observatory.http.answers import Refusal, json, time_of
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns
from observatory.protocol.events import REFUSALS_COUNTED, SEVERITY

HOUR_NS = 3_600_000_000_000
LONGEST_NS = 31 * 24 * HOUR_NS
PAGE = 1_000
MAX_SCANNED = 20_000  # events of that severity that are scanned; beyond it `truncated` is set
KINDS = re.compile(f'"event_type":"(?:schema_violation|{REFUSALS_COUNTED})"'.encode()).search
ONLY_COUNTED = "further violations of one key in a minute, which are only counted"


class ViolationItem(msgspec.Struct, kw_only=True):
    """One refused message; only `raw_payload_hash` of it is kept. A `count` above 1 stands for violations
    that the record only counts; the hash is then the root over them."""

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


@get("/violations", summary="List schema violations by agent and reason", operation_id="list_violations")
async def list_violations(
    request: Call,
    app: Here,
    since: Annotated[str | None, QueryParameter(description="Default: an hour ago.")] = None,
    until: Annotated[str | None, QueryParameter(description="Default: now.")] = None,
    agent: FromQuery[str | None] = None,
    version: Annotated[str | None, QueryParameter(description="`none`: those without a version.")] = None,
    reason: Annotated[str | None, QueryParameter(description="Text it contains.")] = None,
    limit: Annotated[
        int, QueryParameter(ge=1, le=500, description="Maximum number of groups, and of newest.")
    ] = 100,
) -> Response[bytes]:
    """Groups with the highest count first; `counts` are per equal part of the time range."""
    who = await require_permission(request, app, "read")
    end = app.clock() if until is None else time_of("until", until)
    start = end - HOUR_NS if since is None else time_of("since", since)
    if start >= end:
        raise Refusal(400, "bad_range", "since must lie before until")
    if end - start > LONGEST_NS:
        raise Refusal(400, "bad_range", "at most 31 days per request; use a later since")
    records, truncated = await _records(app, who.tenant_id, start, end)
    found = await asyncio.to_thread(lambda: list(_violations(records)))
    matching = [
        one
        for one in found
        if (agent is None or one.agent_id == agent)
        and (version is None or (one.capability_version or "none") == version)
        and (reason is None or reason.casefold() in one.reason.casefold())
    ]
    summary = await asyncio.to_thread(summarize_violations, matching, start, end)
    names = sorted({one.agent_id for one in matching if one.agent_id is not None})
    rows = await app.store.rows(who.tenant_id, "agents", agent_id=names) if names else []
    types = {row["agent_id"]: row["agent_type"] for row in rows}
    groups = [row | {"agent_type": types.get(row["agent_id"])} for row in summary.groups]
    return json(
        {
            "since": from_ns(start),
            "until": from_ns(end),
            "bucket_s": (end - start) / BUCKETS / 1e9,
            "total": sum(one.times for one in matching),
            "counts": summary.counts,
            "groups": groups[:limit],
            "groups_count": len(groups),
            "newest": [one.as_row() | {"agent_type": types.get(one.agent_id)} for one in matching[:limit]],
            "truncated": truncated,
        }
    )


async def _records(
    app: AppState, tenant_id: str, start: int, end: int
) -> tuple[list[tuple[int, bytes]], bool]:
    """Newest first; of events severe enough only those of this kind are kept."""
    violations: list[tuple[int, bytes]] = []
    scanned, before = 0, None
    while scanned < MAX_SCANNED:
        where = EventFilter(
            since_ns=start, until_ns=end, severity_min=SEVERITY["schema_violation"], before=before
        )
        page = await app.store.events(tenant_id, where, PAGE, newest_first=True)
        violations += [(event.sequence_number, event.record) for event in page if KINDS(event.record)]
        scanned += len(page)
        if len(page) < PAGE:
            return violations, False
        before = page[-1].sequence_number
    return violations, True


def _violations(records: Iterable[tuple[int, bytes]]) -> Iterable[ViolationRecord]:
    for number, record in records:
        event = _read(record)
        body = event.body
        is_count = body.event_type == REFUSALS_COUNTED
        # The bytes may also occur in the text of another event.
        if (body.refused if is_count else body.event_type) == "schema_violation":
            yield ViolationRecord(
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
