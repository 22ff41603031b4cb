"""Turns committed rows into the batches that folds get: decoded content, names and numbers of the agents.

Law: nothing here depends on when it is read. A message is delivered as it was archived, and once more,
`revised`, when its hold ends. Content that does not decode is delivered without content and counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from observatory.derived.ports import Commits, CommittedEvent
from observatory.derived.seen import ENDINGS, Batch, FoldEvent, FoldMessage
from observatory.protocol import clock
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.decoders import strict_decoder
from observatory.protocol.envelope import AnyEnvelope, Envelope
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.steps import step_name

KNOWN = 50_000  # agents in the cache
AGAIN_BYTES = 16_000_000  # of content read again for one batch; beyond, the batch ends earlier
AGAIN = 16  # messages read again per query


class Attributes(msgspec.Struct, gc=False):
    sender: str | None = msgspec.field(default=None, name="av.sender.entity_id")
    agent: str | None = msgspec.field(default=None, name="av.sender.agent_id")
    recipient: str | None = msgspec.field(default=None, name="av.recipient.entity_id")


class _MessageEvent(msgspec.Struct, gc=False):
    """The members of an audit event that a message needs."""

    observed_timestamp: str
    span_id: str
    parent_span_id: str | None
    attributes: Attributes


class EventMembers(msgspec.Struct, gc=False):
    """The members of an audit event that stands for itself."""

    observed_timestamp: str
    body: dict[str, Any]


class KnownAgent(msgspec.Struct, frozen=True, gc=False):
    agent_no: int
    agent_id: str
    agent_type: str | None
    cluster_id: str | None
    since_ns: int


_message_event: Final = msgspec.json.Decoder(_MessageEvent).decode
_event: Final = msgspec.json.Decoder(EventMembers).decode
_log_quick: Final = strict_decoder(DecisionLog, patterns=False).decode
_log: Final = msgspec.json.Decoder(DecisionLog).decode
_envelope: Final = msgspec.json.Decoder(cast(type[Envelope], AnyEnvelope)).decode
_observed_ns: Final = lru_cache(maxsize=64)(clock.to_ns)  # a commit has one
_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)


def content_of(message_type: str, raw: bytes | None) -> tuple[DecisionLog | None, Envelope | None, bool]:
    """(log, envelope, whether there was content that could not be read)."""
    if raw is None:
        return None, None, False
    try:
        if message_type != "decision_log":
            return None, _envelope(raw), False
        try:
            return _log_quick(raw), None, False
        except msgspec.ValidationError:  # an unknown field: kept in the archive, not read
            return _log(raw), None, False
    except _ERRORS:
        return None, None, True


class BatchReader:
    """Builds batches. Agents are cached; one that is not known yet is queried again."""

    def __init__(self, store: Commits) -> None:
        self._store = store
        self._agents: dict[tuple[str, str], KnownAgent] = {}

    def forget(self) -> None:
        self._agents.clear()

    async def batch(
        self, tenant_id: str, after: int, rows: Sequence[CommittedEvent]
    ) -> tuple[Batch, int, int]:
        """The batch, when its last row was committed, and how many messages could not be read."""
        events = [_noted(row) for row in rows if row.message_id is None]
        # Read after the events: what they say of a hold has happened by now.
        again, until = await self._again(tenant_id, events, rows[-1].seq)
        if until < rows[-1].seq:
            rows = [row for row in rows if row.seq <= until]
            events = [event for event in events if event.seq <= until]
        message_events = {row.seq: _message_event(row.record) for row in rows if row.message_id is not None}
        endings = {number: event.seq for event in events if (number := _held(event)) is not None}
        revised_events = {row.seq: _message_event(row.record) for row in again.values()}
        await self._load_agents(tenant_id, (*message_events.values(), *revised_events.values()), events)
        events = [self._named(tenant_id, event) for event in events]
        seen: list[tuple[int, FoldMessage]] = []
        unread = 0
        for row in rows:
            if row.message_id is not None:
                one, is_unread = self._seen(tenant_id, row, message_events[row.seq], False)
                seen.append((row.seq, one))
                unread += is_unread
        for number, at in endings.items():
            if number in again:
                seen.append((at, self._seen(tenant_id, again[number], revised_events[number], True)[0]))
        if endings:
            seen.sort(key=lambda pair: pair[0])
        batch = Batch(tenant_id, after, rows[-1].seq, [one for _, one in seen], events)
        return batch, time_of(rows[-1]), unread

    async def _again(
        self, tenant_id: str, events: Iterable[FoldEvent], until: int
    ) -> tuple[dict[int, CommittedEvent], int]:
        """Messages whose hold these events end, and up to which event they fit into the memory budget."""
        held = [(event.seq, number) for event in events if (number := _held(event)) is not None]
        again: dict[int, CommittedEvent] = {}
        size = 0
        for start in range(0, len(held), AGAIN):
            if size >= AGAIN_BYTES:
                return again, held[start][0] - 1
            numbers = sorted({number for _, number in held[start : start + AGAIN]} - again.keys())
            for row in await self._store.ended(tenant_id, numbers) if numbers else ():
                again[row.seq] = row
                size += len(row.raw or b"")
        return again, until

    def _seen(
        self, tenant_id: str, row: CommittedEvent, event: _MessageEvent, revised: bool
    ) -> tuple[FoldMessage, bool]:
        log, envelope, is_unread = content_of(row.message_type or "", row.raw)
        attributes = event.attributes
        at_ns = _observed_ns(event.observed_timestamp)
        sender = self._known(tenant_id, attributes.sender, at_ns)
        recipient = self._known(tenant_id, attributes.recipient, at_ns)
        session_id, step_id = row.session_id or "", row.step_id or ""
        agent_type = log.identity.agent_type if log is not None else sender.agent_type if sender else None
        cluster_id = log.meta.cluster_id if log is not None else sender.cluster_id if sender else None
        made = FoldMessage(
            seq=row.seq,
            session_no=row.session_no,
            session_id=session_id,
            agent_no=sender.agent_no if sender else 0,
            agent_id=attributes.agent or attributes.sender or "",
            agent_type=agent_type,
            cluster_id=cluster_id,
            message_id=row.message_id or "",
            step_id=step_id,
            name=step_name(session_id, step_id, row.message_id),
            message_type=row.message_type or "",
            state=row.state or "",
            parents=tuple(row.parents.split("\n")) if row.parents else (),
            parent_inferred=bool(row.parent_inferred),
            span=event.span_id,
            parent_span_id=event.parent_span_id,
            at_ns=at_ns,
            entropy=row.entropy,
            log=log,
            envelope=envelope,
            recipient_no=recipient.agent_no if recipient else 0,
            revised=revised,
        )
        return made, is_unread

    def _known(self, tenant_id: str, entity_id: str | None, at_ns: int) -> KnownAgent | None:
        """The agent if it was known by then; one that came later is not part of what happened."""
        found = self._agents.get((tenant_id, entity_id)) if entity_id is not None else None
        return found if found is not None and found.since_ns <= at_ns else None

    def _named(self, tenant_id: str, event: FoldEvent) -> FoldEvent:
        """The event with the number of the agent it names."""
        if event.agent_id is None:
            return event
        found = self._known(tenant_id, agent_entity_id(tenant_id, event.agent_id), event.at_ns)
        return event if found is None else msgspec.structs.replace(event, agent_no=found.agent_no)

    async def _load_agents(
        self, tenant_id: str, message_events: Collection[_MessageEvent], events: Iterable[FoldEvent]
    ) -> None:
        if len(self._agents) > KNOWN:
            self._agents.clear()
        named = {one.attributes.sender for one in message_events} | {
            one.attributes.recipient for one in message_events
        }
        named |= {agent_entity_id(tenant_id, event.agent_id) for event in events if event.agent_id}
        missing = [
            entity_id
            for entity_id in named
            if entity_id is not None
            and (tenant_id, entity_id) not in self._agents
            and entity_id[:4] == "agt_"
        ]
        for start in range(0, len(missing), 500):
            part = missing[start : start + 500]
            for row in await self._store.rows(tenant_id, "agents", entity_id=part):
                self._agents[tenant_id, row["entity_id"]] = KnownAgent(
                    row["agent_no"],
                    row["agent_id"],
                    row["agent_type"],
                    row["cluster_id"],
                    row["first_seen_ns"],
                )


def time_of(row: CommittedEvent) -> int:
    """When it was committed, by the gateway's clock."""
    return clock.to_ns(_event(row.record).observed_timestamp)


def _noted(row: CommittedEvent) -> FoldEvent:
    event = _event(row.record)
    agent_id = event.body.get("agent_id")
    return FoldEvent(
        seq=row.seq,
        event_type=str(event.body.get("event_type")),
        at_ns=clock.to_ns(event.observed_timestamp),
        session_no=row.session_no,
        agent_id=agent_id if isinstance(agent_id, str) else None,
        body=event.body,
    )


def _held(event: FoldEvent) -> int | None:
    """The held message whose hold this event ends."""
    number = event.body.get("held_sequence_number")
    return number if event.event_type in ENDINGS and isinstance(number, int) else None
