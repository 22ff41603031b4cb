"""Import: rebuilds scores and windows, open alerts, settings, review verdicts and facts marked as false.

Scores are computed by the pipeline's own stage, under the settings in force at that event; alerts about
them are read from the events and never sent again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.decisions.types import DECISION_SETTINGS, merged_decision_settings
from observatory.features.facts import commands as facts
from observatory.features.facts.types import fact_named
from observatory.features.fleet.types_regions import REGIONS, read_back
from observatory.features.loops import commands_findings as loop_alarms
from observatory.features.loops import stage as entropy
from observatory.features.loops.types import Loop, merged_detectors
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import RowWrite, SessionRow
from observatory.pipeline.state import BatchState, EventDraft, Principal, TransactionChanges
from observatory.pipeline.tenant_settings import DETECTORS
from observatory.protocol.clock import to_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.tenant_config import DetectorSettings

Event = dict[str, Any]


class _NoEvents:
    """A unit of work that appends nothing: its events are already in the record."""

    def __init__(self, memory: BatchState) -> None:
        self.memory, self.changes, self.now_ns = memory, TransactionChanges(), 0

    def append(self, draft: EventDraft) -> int:
        return 0  # the event itself comes later with its number

    def deliver(self, *_: Any, **__: Any) -> None: ...


class InsightRows:
    def __init__(self, memory: BatchState) -> None:
        self._memory, self._desk = memory, _NoEvents(memory)
        self._places: dict[str, Any] = {}
        self._cursor = 0
        self._who = Principal(tenant_id=memory.tenant.tenant_id, role="admin", key_id="sys_import")

    def scored(self, message: Message, session: SessionRow, number: int) -> float | None:
        memory = self._memory
        agent = memory.agents.get(agent_entity_id(memory.tenant.tenant_id, message.sender_id))
        ctx = MessageContext(message, self._who, 0, agent=agent, session=session)
        entropy.check(ctx, memory, 0)
        if ctx.entropy is not None:
            entropy.follow(ctx, self._desk, number)
        return ctx.entropy

    def apply(
        self, number: int, event: Event, session: SessionRow | None, changes: TransactionChanges
    ) -> None:
        """An event without a message of its own."""
        body = event["body"]
        kind = body["event_type"]
        if body.get("finding_id") is not None:
            self._found(event, changes)
        if kind == "setting_changed" and body.get("setting") == DETECTORS:
            self._settle(event, changes)
        elif kind == "setting_changed" and body.get("setting") == DECISION_SETTINGS:
            self._limit(event, changes)
        elif kind == "setting_changed" and body.get("setting") == REGIONS:
            self._place(event, changes)
        elif kind == "step_reviewed":
            self._review(event, changes)
        elif kind in ("fact_marked_false", "fact_mark_undone"):
            self._mark(event, changes)
        elif session is None:
            return
        elif kind == "entropy_alert":
            session.alert_seq = number
        elif kind in ("loop_detected", "loop_ended"):
            self._loop(number, event, session)
        else:
            return
        if session is not None:
            self._memory.touch(session)

    def _settle(self, event: Event, changes: TransactionChanges) -> None:
        memory = self._memory
        requested = {name: _number(name, value) for name, value in event["body"]["after"].items()}
        after, _ = merged_detectors(memory.tenant_config.detectors, requested)
        if after is not None:
            memory.tenant_config = msgspec.structs.replace(memory.tenant_config, detectors=after)
            memory.tenant.rulebook_version += 1
            self._knob(DETECTORS, msgspec.json.encode(after).decode(), event, changes)

    def _limit(self, event: Event, changes: TransactionChanges) -> None:
        """The settings of what the gateway may decide at a deadline."""
        memory = self._memory
        after, _ = merged_decision_settings(memory.tenant_config.decisions, event["body"]["after"])
        if after is not None:
            memory.tenant_config = msgspec.structs.replace(memory.tenant_config, decisions=after)
            memory.tenant.rulebook_version += 1
            self._knob(DECISION_SETTINGS, msgspec.json.encode(after).decode(), event, changes)

    def _place(self, event: Event, changes: TransactionChanges) -> None:
        """The places of clusters: each event names those it moved."""
        for name, place in event["body"]["after"].items():
            if place is None:
                self._places.pop(name, None)
            else:
                self._places[name] = read_back(place)
        self._knob(REGIONS, msgspec.json.encode(self._places).decode(), event, changes)

    def _loop(self, number: int, event: Event, session: SessionRow) -> None:
        body = event["body"]
        agent = self._memory.agents.get(agent_entity_id(self._memory.tenant.tenant_id, body["agent_id"]))
        agent_no = 0 if agent is None else agent.agent_no
        if body["event_type"] == "loop_detected":
            # The event has no detection time, only the time it was recorded.
            at_ns, detector = to_ns(event["observed_timestamp"]), body.get("detector", "fingerprint")
            loop_alarms.opened(session, Loop(agent_no, at_ns, number, detector))
        else:
            loop_alarms.closed(session, agent_no)

    def _found(self, event: Event, changes: TransactionChanges) -> None:
        """Findings up to this number are recorded; the analyst finds them again under the same numbers."""
        self._cursor = max(self._cursor, int(event["body"]["finding_id"]))
        self._knob(loop_alarms.CURSOR, str(self._cursor), event, changes)

    def _review(self, event: Event, changes: TransactionChanges) -> None:
        """The verdict; the trail has only a hash of the note."""
        body = event["body"]
        row = {
            "tenant_id": self._memory.tenant.tenant_id,
            "sequence_number": body["about_sequence_number"],
            "verdict": body["verdict"],
            "note": None,
            "reviewed_by": _author(event),
            "reviewed_ns": to_ns(event["observed_timestamp"]),
        }
        changes.writes.append(RowWrite("reviews", row, key=("tenant_id", "sequence_number")))

    def _mark(self, event: Event, changes: TransactionChanges) -> None:
        """A mark by the fact's id. The trail lacks the key of its text, which nothing reads, and the note."""
        body, tenant_id = event["body"], self._memory.tenant.tenant_id
        fact_id, at_ns = fact_named(str(body["fact_id"])), to_ns(event["observed_timestamp"])
        if fact_id is None:
            return
        name = facts.mark_id(fact_id)
        if body["event_type"] == "fact_mark_undone":
            where = {"tenant_id": tenant_id, "mark_id": name}
            changes.writes.append(RowWrite("fact_marks", {"undone_ns": at_ns}, where))
            return
        row = {
            "tenant_id": tenant_id,
            "mark_id": name,
            "fact_key": 0,
            "fact_id": fact_id,
            "note": None,
            "marked_by": _author(event),
            "marked_ns": at_ns,
            "undone_ns": None,
        }
        changes.writes.append(RowWrite("fact_marks", row, key=("tenant_id", "mark_id")))

    def _knob(self, name: str, value: str, event: Event, changes: TransactionChanges) -> None:
        row = {
            "tenant_id": self._memory.tenant.tenant_id,
            "name": name,
            "value": value,
            "updated_ns": to_ns(event["observed_timestamp"]),
            "updated_by": _author(event),
        }
        changes.writes.append(RowWrite("knobs", row, key=("tenant_id", "name")))


def _author(event: Event) -> str:
    return str(event["attributes"].get("av.sender.entity_id", "sys_gateway"))


def _number(name: str, value: Any) -> Any:
    """Events hold shares as decimal text."""
    is_share = isinstance(getattr(DetectorSettings(), name, None), float)
    return float(value) if is_share and isinstance(value, str) else value
