"""`POST /v1/audit/verify`: the independent verifier over any range of the tenant's chain.

It starts from the row before `from_sequence`, checks each row and stops at the first break. The work
runs in a thread, page by page, so that ingest and other readers are not blocked.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, post
from litestar.params import JSONBody

from observatory.errors import ObservatoryError
from observatory.features.transparency.queries_log_check import LogCheck
from observatory.features.transparency.worker import Sealer
from observatory.features.verification.commands import record_break
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import require_permission
from observatory.ledger.verify import ChainCheck, ChainResult, payload_matches
from observatory.pipeline.ports import Archive, EventFilter, MessageFilter, StoredEvent, StoredMessage
from observatory.protocol.clock import from_ns

PAGE = 2_000
Sequence = Annotated[int, msgspec.Meta(ge=1, le=(1 << 40) - 1)]


class VerifyRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`to_sequence` null: up to the head."""

    tenant_id: str | None = None
    from_sequence: Sequence = 1
    to_sequence: Sequence | None = None


class VerifyBreak(msgspec.Struct, frozen=True):
    sequence_number: int
    what: str
    sentence: str


class VerifyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The seed's five members, and the result of each check; null was not checked."""

    valid: bool
    events_verified: int
    first_hash: str | None
    last_hash: str | None
    verified_at: str
    tenant_id: str
    from_sequence: int
    to_sequence: int
    first_break: VerifyBreak | None
    checks: dict[str, bool | None]


async def verify_range(store: Archive, log: LogCheck, tenant_id: str, request: VerifyRequest) -> VerifyAnswer:
    head, head_hash = await store.head(tenant_id)
    last = request.to_sequence if request.to_sequence is not None else head
    if request.from_sequence > max(last, 1):
        raise Refusal(422, "bad_range", "from_sequence is past to_sequence (or past the head)")
    check = await _begin(store, tenant_id, request.from_sequence)
    if check is None:
        raise Refusal(422, "bad_range", f"from_sequence is past the head, which is {head}")
    await log.begin(request.from_sequence, last)
    cursor, payload_break = request.from_sequence - 1, None
    while cursor < last and payload_break is None:
        end = min(last, cursor + PAGE) + 1
        span = EventFilter(after=cursor, before=end)
        events = await store.events(tenant_id, span, PAGE, newest_first=False)
        messages = await store.messages(
            tenant_id, MessageFilter(after=cursor, before=end), PAGE, newest_first=False
        )
        if not events:
            break
        rows = [(event.sequence_number, event.record, event.leaf_hash) for event in events]
        if not await asyncio.to_thread(check.feed, rows):
            break
        payload_break = await asyncio.to_thread(_first_foreign_payload, events, messages)
        await log.feed([event.leaf_hash for event in events])
        cursor = events[-1].sequence_number
    # Without to_sequence the chain must end where the head says it does.
    expected = (head, head_hash) if request.to_sequence is None and payload_break is None else None
    result = check.result(expected)
    if result.valid and payload_break is None and result.last_sequence >= last:
        await log.end(to_head=request.to_sequence is None)
    return _answer(result, tenant_id, request.from_sequence, last, payload_break, log)


async def _begin(store: Archive, tenant_id: str, start: int) -> ChainCheck | None:
    if start == 1:
        return ChainCheck(tenant_id)
    before = await store.events(tenant_id, EventFilter(after=start - 2, before=start), 1, newest_first=False)
    if not before:
        return None
    chain = msgspec.json.decode(before[0].record)["hash_chain"]
    return ChainCheck(tenant_id, start - 1, chain["event_hash"])


def _first_foreign_payload(events: list[StoredEvent], messages: list[StoredMessage]) -> VerifyBreak | None:
    records = {event.sequence_number: event.record for event in events}
    for message in messages:
        record = records.get(message.sequence_number)
        if record is None or (message.raw is not None and not payload_matches(record, message.raw)):
            number = message.sequence_number
            return VerifyBreak(
                number, "payload", f"The archived bytes of message {number} do not match its event."
            )
    return None


def _answer(
    result: ChainResult, tenant_id: str, start: int, last: int, foreign: VerifyBreak | None, log: LogCheck
) -> VerifyAnswer:
    broken = foreign
    if broken is None and result.first_break is not None:
        first: Any = result.first_break
        broken = VerifyBreak(first.sequence_number, first.what, first.sentence)
    if broken is None and result.last_sequence < last:
        sentence = f"The record ends at {result.last_sequence}; {last} was requested."
        broken = VerifyBreak(result.last_sequence + 1, "missing_tail", sentence)
    if broken is None and log.sentence is not None:
        broken = VerifyBreak(log.at, log.what, log.sentence)
    checks = {name: value for name, value in msgspec.structs.asdict(result.held).items() if name != "columns"}
    checks["payloads"] = foreign is None if result.events_verified else None
    checks |= {"log_root": log.root, "signature": log.signature}
    return VerifyAnswer(
        valid=broken is None,
        events_verified=result.events_verified,
        first_hash=result.first_hash,
        last_hash=result.last_hash,
        verified_at=from_ns(time.time_ns()),
        tenant_id=tenant_id,
        from_sequence=start,
        to_sequence=last,
        first_break=broken,
        checks=checks,
    )


@post("/audit/verify", summary="Verify the chain over a range", operation_id="audit_verify", status_code=200)
async def audit_verify(request: Call, app: Here, data: JSONBody[VerifyRequest]) -> Response[bytes]:
    principal = await require_permission(request, app, "verify")
    if data.tenant_id is not None and data.tenant_id != principal.tenant_id:
        raise Refusal(403, "foreign_tenant", "this key belongs to another tenant")
    log = LogCheck(app.service(Sealer), principal.tenant_id)
    answer = await verify_range(app.store, log, principal.tenant_id, data)
    broken = answer.first_break
    if broken is not None and broken.what != "missing_tail":  # the caller asked for an end beyond the log
        broken_at = (broken.sequence_number, broken.what, broken.sentence)
        with suppress(ObservatoryError):  # the result is returned even if it cannot be recorded
            await app.command(record_break(principal, *broken_at, app.clock()))
    return json(answer)


verification = Router(path="/v1", route_handlers=[audit_verify], tags=["Forensic Inspector"])
