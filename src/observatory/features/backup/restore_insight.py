"""What an import makes again of insight: scores and windows, open alarms, settings, verdicts, false marks.

Scores are computed by the corridor's own stage, under the settings in force at that event; what was told of
them is read from the events and never told anew.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.decisions import commands_settings as decision_settings
from observatory.features.facts import commands as facts
from observatory.features.facts.types import fact_named
from observatory.features.fleet import commands as regions
from observatory.features.loops import commands as detectors
from observatory.features.loops import commands_findings as loop_alarms
from observatory.features.loops import stage as entropy
from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Session, Write
from observatory.pipeline.state import Changes, Draft, Memory, Principal
from observatory.protocol.clock import to_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.rulebook import DetectorSettings

Event = dict[str, Any]


class _Silence:
    """A desk whose events were written long ago."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.changes, self.now_ns = memory, Changes(), 0

    def append(self, draft: Draft) -> int:
        return 0  # the event itself comes later and brings its number

    def tell(self, *_: Any, **__: Any) -> None: ...


class InsightRows:
    def __init__(self, memory: Memory) -> None:
        self._memory, self._desk = memory, _Silence(memory)
        self._places: dict[str, Any] = {}
        self._cursor = 0
        self._who = Principal(tenant_id=memory.tenant.tenant_id, role="admin", key_id="sys_import")

    def scored(self, message: Message, session: Session, number: int) -> float | None:
        memory = self._memory
        agent = memory.agents.get(agent_entity_id(memory.tenant.tenant_id, message.sender_id))
        passage = Passage(message, self._who, 0, agent=agent, session=session)
        entropy.check(passage, memory, 0)
        if passage.entropy is not None:
            entropy.follow(passage, self._desk, number)
        return passage.entropy

    def apply(self, number: int, event: Event, session: Session | None, changes: Changes) -> None:
        """An event without a message of its own."""
        body = event["body"]
        kind = body["event_type"]
        if body.get("finding_id") is not None:
            self._found(event, changes)
        if kind == "setting_changed" and body.get("setting") == detectors.NAME:
            self._settle(event, changes)
        elif kind == "setting_changed" and body.get("setting") == decision_settings.NAME:
            self._limit(event, changes)
        elif kind == "setting_changed" and body.get("setting") == regions.NAME:
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

    def _settle(self, event: Event, changes: Changes) -> None:
        memory = self._memory
        asked = {name: _number(name, value) for name, value in event["body"]["after"].items()}
        after, _ = detectors.merged(memory.rulebook.detectors, asked)
        if after is not None:
            memory.rulebook = msgspec.structs.replace(memory.rulebook, detectors=after)
            memory.tenant.rulebook_version += 1
            self._knob(detectors.NAME, msgspec.json.encode(after).decode(), event, changes)

    def _limit(self, event: Event, changes: Changes) -> None:
        """What the gateway may decide at a deadline."""
        memory = self._memory
        after, _ = decision_settings.merged(memory.rulebook.decisions, event["body"]["after"])
        if after is not None:
            memory.rulebook = msgspec.structs.replace(memory.rulebook, decisions=after)
            memory.tenant.rulebook_version += 1
            self._knob(decision_settings.NAME, msgspec.json.encode(after).decode(), event, changes)

    def _place(self, event: Event, changes: Changes) -> None:
        """Where clusters stand: each event names those it moved."""
        for name, place in event["body"]["after"].items():
            if place is None:
                self._places.pop(name, None)
            else:
                self._places[name] = regions.read_back(place)
        self._knob(regions.NAME, msgspec.json.encode(self._places).decode(), event, changes)

    def _loop(self, number: int, event: Event, session: Session) -> None:
        body = event["body"]
        agent = self._memory.agents.get(agent_entity_id(self._memory.tenant.tenant_id, body["agent_id"]))
        agent_no = 0 if agent is None else agent.agent_no
        if body["event_type"] == "loop_detected":
            # When the detector saw it is not in the event; when it was told of is.
            at_ns, detector = to_ns(event["observed_timestamp"]), body.get("detector", "fingerprint")
            loop_alarms.opened(session, loop_alarms.Loop(agent_no, at_ns, number, detector))
        else:
            loop_alarms.closed(session, agent_no)

    def _found(self, event: Event, changes: Changes) -> None:
        """Up to here findings were told of; the analyst makes them anew under the same numbers."""
        self._cursor = max(self._cursor, int(event["body"]["finding_id"]))
        self._knob(loop_alarms.CURSOR, str(self._cursor), event, changes)

    def _review(self, event: Event, changes: Changes) -> None:
        """The verdict; of the note the trail has a hash only."""
        body = event["body"]
        row = {
            "tenant_id": self._memory.tenant.tenant_id,
            "sequence_number": body["about_sequence_number"],
            "verdict": body["verdict"],
            "note": None,
            "reviewed_by": _author(event),
            "reviewed_ns": to_ns(event["observed_timestamp"]),
        }
        changes.writes.append(Write("reviews", row, key=("tenant_id", "sequence_number")))

    def _mark(self, event: Event, changes: Changes) -> None:
        """By the fact's id. The key of its text and the note are not in the trail; nothing reads that key."""
        body, tenant_id = event["body"], self._memory.tenant.tenant_id
        fact_id, at_ns = fact_named(str(body["fact_id"])), to_ns(event["observed_timestamp"])
        if fact_id is None:
            return
        name = facts.mark_id(fact_id)
        if body["event_type"] == "fact_mark_undone":
            where = {"tenant_id": tenant_id, "mark_id": name}
            changes.writes.append(Write("fact_marks", {"undone_ns": at_ns}, where))
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
        changes.writes.append(Write("fact_marks", row, key=("tenant_id", "mark_id")))

    def _knob(self, name: str, value: str, event: Event, changes: Changes) -> None:
        row = {
            "tenant_id": self._memory.tenant.tenant_id,
            "name": name,
            "value": value,
            "updated_ns": to_ns(event["observed_timestamp"]),
            "updated_by": _author(event),
        }
        changes.writes.append(Write("knobs", row, key=("tenant_id", "name")))


def _author(event: Event) -> str:
    return str(event["attributes"].get("av.sender.entity_id", "sys_gateway"))


def _number(name: str, value: Any) -> Any:
    """Events hold shares as decimal text."""
    is_share = isinstance(getattr(DetectorSettings(), name, None), float)
    return float(value) if is_share and isinstance(value, str) else value
