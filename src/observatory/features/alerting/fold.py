"""The alert fold: numbers of events that raise or end an alert, and of status alerts from agents (S311)."""

from __future__ import annotations

from typing import Any

from observatory.derived.reads import DerivedReads
from observatory.derived.seen import Batch, DerivedWrite, Finding, Fold
from observatory.features.alerting.types_tray import ENDED, RAISED, STATUS
from observatory.pipeline.ports import RecordReads


class AlertFold:
    name = "alerts"

    def forget(self) -> None:
        """Keeps no state."""

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
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
        return ([DerivedWrite("insight_alerts", rows)] if rows else []), []


def _row(seq: int, kind: str, session_no: int, agent_no: int, starts: int, at_ns: int) -> dict[str, Any]:
    return {
        "seq": seq,
        "kind": kind,
        "session_no": session_no,
        "agent_no": agent_no,
        "starts": starts,
        "at_ns": at_ns,
    }


def folds(derived: DerivedReads, past: RecordReads) -> list[Fold]:
    return [AlertFold()]
