"""`POST /v1/audit/verify`: the independent verifier over any range of the tenant's chain.

It starts from the row before `from_sequence`, checks each row and stops at the first break. The work
runs in a thread, page by page, so that ingest and other readers go on.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import msgspec

from observatory.features.verification.log_root import LogCheck
from observatory.http.answers import Refusal
from observatory.ledger.verify import ChainCheck, Result, payload_matches
from observatory.pipeline.ports import Archive, EventFilter, MessageFilter, StoredEvent, StoredMessage
from observatory.protocol.clock import from_ns

PAGE = 2_000
Sequence = Annotated[int, msgspec.Meta(ge=1, le=(1 << 40) - 1)]


class VerifyRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`to_sequence` null means: to the head."""

    tenant_id: str | None = None
    from_sequence: Sequence = 1
    to_sequence: Sequence | None = None


class VerifyBreak(msgspec.Struct, frozen=True):
    sequence_number: int
    what: str
    sentence: str


class VerifyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The seed's five members, and which properties held; null was not checked."""

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


async def verify_range(store: Archive, log: LogCheck, tenant_id: str, asked: VerifyRequest) -> VerifyAnswer:
    head, head_hash = await store.head(tenant_id)
    last = asked.to_sequence if asked.to_sequence is not None else head
    if asked.from_sequence > max(last, 1):
        raise Refusal(422, "bad_range", "from_sequence lies past to_sequence (or past the head)")
    check = await _begin(store, tenant_id, asked.from_sequence)
    if check is None:
        raise Refusal(422, "bad_range", f"from_sequence lies past the head, which is {head}")
    await log.begin(asked.from_sequence, last)
    cursor, payload_break = asked.from_sequence - 1, None
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
    # Asked for everything: then the chain must end where the head says it does.
    expected = (head, head_hash) if asked.to_sequence is None and payload_break is None else None
    result = check.result(expected)
    if result.valid and payload_break is None and result.last_sequence >= last:
        await log.end(to_head=asked.to_sequence is None)
    return _answer(result, tenant_id, asked.from_sequence, last, payload_break, log)


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
                number, "payload", f"The archived bytes of message {number} are not those its event names."
            )
    return None


def _answer(
    found: Result, tenant_id: str, start: int, last: int, foreign: VerifyBreak | None, log: LogCheck
) -> VerifyAnswer:
    broken = foreign
    if broken is None and found.first_break is not None:
        first: Any = found.first_break
        broken = VerifyBreak(first.sequence_number, first.what, first.sentence)
    if broken is None and found.last_sequence < last:
        sentence = f"The record ends at {found.last_sequence}; {last} was asked for."
        broken = VerifyBreak(found.last_sequence + 1, "missing_tail", sentence)
    if broken is None and log.sentence is not None:
        broken = VerifyBreak(log.at, log.what, log.sentence)
    checks = {name: value for name, value in msgspec.structs.asdict(found.held).items() if name != "columns"}
    checks["payloads"] = foreign is None if found.events_verified else None
    checks |= {"log_root": log.root, "signature": log.signature}
    return VerifyAnswer(
        valid=broken is None,
        events_verified=found.events_verified,
        first_hash=found.first_hash,
        last_hash=found.last_hash,
        verified_at=from_ns(time.time_ns()),
        tenant_id=tenant_id,
        from_sequence=start,
        to_sequence=last,
        first_break=broken,
        checks=checks,
    )
