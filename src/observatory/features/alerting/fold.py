"""Alerts by number: events that alarm, events that end an alarm, and what agents report themselves (S311)."""

from __future__ import annotations

from typing import Any

from observatory.features.alerting.types_tray import ENDED, RAISED, STATUS
from observatory.runtime.seen import Batch, Finding, Put


class Alerts:
    name = "alerts"

    def forget(self) -> None:
        """Nothing is remembered."""

    async def fold(self, batch: Batch) -> tuple[list[Put], list[Finding]]:
        rows = [
            _row(event.seq, kind, event.session_no, event.agent_no, starts, event.at_ns)
            for event in batch.events
            for named, starts in ((RAISED, 1), (ENDED, 0))
            if (kind := named.get(event.event_type)) is not None
        ]
        rows += [
            _row(seen.seq, STATUS, seen.session_no, seen.agent_no, 1, seen.at_ns)
            for seen in batch.messages
            if seen.message_type == STATUS and seen.state != "refused" and not seen.revised
        ]
        return ([Put("insight_alerts", rows)] if rows else []), []


def _row(seq: int, kind: str, session_no: int, agent_no: int, starts: int, at_ns: int) -> dict[str, Any]:
    return {
        "seq": seq,
        "kind": kind,
        "session_no": session_no,
        "agent_no": agent_no,
        "starts": starts,
        "at_ns": at_ns,
    }
