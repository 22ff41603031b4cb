"""Counts refusals beyond a rate instead of recording each in full (S1160, S1161).

Law: for one key and one reason the first few a minute are events of their own; each further one is a leaf of
an RFC 6962 tree, and when the minute is over one event has their count and the tree's root. The count is a
row of the same transaction: a gateway that is killed loses none, and several count together. The response to
the client is not affected. Pure; a leaf is `leaf_of`, so that anyone who kept the responses can check it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from observatory.errors import NeedsLock
from observatory.ledger.canonical import jcs
from observatory.ledger.merkle import Accumulator, leaf_hash
from observatory.pipeline.event_writer import EventWriter, gateway_event
from observatory.pipeline.quotas import current_quotas
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, EventDraft, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns
from observatory.protocol.events import REFUSALS_COUNTED, SEVERITY

MINUTE: Final = 60_000_000_000
HASH: Final = 32
TABLE: Final = "refusals"
KEY: Final = ("tenant_id", "key_id", "kind")
Row = dict[str, Any]
Pair = tuple[str, str]


class RefusalCounter:
    """For one batch. `read` loads rows under the lock; None while a batch is prepared without it."""

    def __init__(
        self, event_writer: EventWriter, loaded: set[str], read: Callable[[ReadSet], None] | None
    ) -> None:
        self._writer, self._loaded, self._read = event_writer, loaded, read
        self._written: set[Pair] = set()

    def in_full(self, principal: Principal, verdict: SubmissionResult) -> list[EventDraft]:
        """Events of the verdict to record; other refusals are only counted."""
        is_refusal = verdict.code >= 400 and not verdict.archived
        return [
            event
            for event in verdict.events
            if not (is_refusal or event.counts_as)
            or self._is_recorded(principal, event, _reason(event, verdict))
        ]

    def _is_recorded(self, principal: Principal, event: EventDraft, reason: str) -> bool:
        row, now_ns = self._row(principal, f"{event.event_type}/{reason}"), self._writer.now_ns
        if not row["began_ns"] <= now_ns < row["began_ns"] + MINUTE:
            if row["counted"]:
                self._writer.append(summary_of(row, now_ns))
            row |= {"began_ns": now_ns, "in_full": 0, "counted": 0, "peaks": b"", "agent_id": None}
        self._write(row)
        if row["in_full"] < current_quotas().refusals_in_full:
            row["in_full"] += 1
            return True
        _count(row, event, now_ns)
        return False

    def _row(self, principal: Principal, kind: str) -> Row:
        memory = self._writer.memory
        if principal.key_id not in self._loaded:
            if self._read is None:
                raise NeedsLock("earlier refusals are counted under the lock")
            self._read(wants_of(principal.key_id))
            self._loaded.add(principal.key_id)
        rows = memory.rows.setdefault(TABLE, {})
        row = rows.get((principal.key_id, kind))
        if row is None:
            row = rows[principal.key_id, kind] = {
                "tenant_id": memory.tenant.tenant_id,
                "key_id": principal.key_id,
                "kind": kind,
                "sender_id": principal.entity_id,
                "sender_type": principal.entity_type,
                "began_ns": self._writer.now_ns,
                "last_ns": self._writer.now_ns,
                "in_full": 0,
                "counted": 0,
                "peaks": b"",
                "agent_id": None,
            }
        return row

    def _write(self, row: Row) -> None:
        """Once a batch: the row is written as it is at the end of the batch."""
        pair = row["key_id"], row["kind"]
        if pair not in self._written:
            self._written.add(pair)
            self._writer.changes.writes.append(RowWrite(TABLE, row, key=KEY))


def _reason(event: EventDraft, verdict: SubmissionResult) -> str:
    """From a closed set, whatever was sent: it is part of a permanent row's key."""
    reason = event.counts_as or getattr(verdict.answer, "reason", None) or event.detail.get("permission")
    return str(reason or "refused")


def _count(row: Row, event: EventDraft, now_ns: int) -> None:
    peaks = bytes(row["peaks"])
    tree = Accumulator(row["counted"], [peaks[i : i + HASH] for i in range(0, len(peaks), HASH)])
    tree.append(leaf_hash(leaf_of(event.event_type, event.summary, event.detail)))
    agent_id = event.detail.get("agent_id")
    if row["counted"] and row["agent_id"] != agent_id:
        agent_id = None  # of several agents; only the root covers which
    row |= {"counted": tree.size, "peaks": b"".join(tree.peaks), "last_ns": now_ns, "agent_id": agent_id}


def leaf_of(event_type: str, summary: str, detail: dict[str, Any]) -> bytes:
    """The content a refusal that is only counted would have had, without its time."""
    return jcs({"event_type": event_type, "summary": summary, "detail": detail})


def root_of(row: Row) -> str:
    peaks = bytes(row["peaks"])
    tree = Accumulator(row["counted"], [peaks[i : i + HASH] for i in range(0, len(peaks), HASH)])
    return f"sha256:{tree.root().hex()}"


def summary_of(row: Row, now_ns: int) -> EventDraft:
    """The event for the refusals counted in a minute."""
    event_type, _, reason = row["kind"].partition("/")
    counted = row["counted"]
    detail = {
        "refused": event_type,
        "reason": reason,
        "key_id": row["key_id"],
        "agent_id": row["agent_id"],
        "count": counted,
        "root": root_of(row),
        "in_full": row["in_full"],
        "since": from_ns(row["began_ns"]),
        "until": from_ns(row["last_ns"]),
    }
    summary = f"{counted} more refusal{'s' if counted > 1 else ''} of {row['key_id']}: {reason}"
    severity = SEVERITY[event_type]
    draft = gateway_event(row["tenant_id"], REFUSALS_COUNTED, summary, now_ns, None, detail, severity)
    draft.sender_id, draft.sender_type = row["sender_id"], row["sender_type"]
    draft.key_id = row["key_id"]
    return draft


def close_minute(principal: Principal, key_id: str, kind: str, now_ns: int) -> Command:
    """The minute is over and nothing more was refused: records what was counted."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get(TABLE, {}).get((key_id, kind))
        if row is None or not row["counted"] or row["began_ns"] <= uow.now_ns < row["began_ns"] + MINUTE:
            return SubmissionResult(200, None)
        event = summary_of(row, uow.now_ns)
        # The next refusal begins a new minute.
        row |= {"in_full": 0, "counted": 0, "peaks": b"", "agent_id": None, "began_ns": 0}
        return SubmissionResult(200, None, [event], [RowWrite(TABLE, row, key=KEY)])

    return Command(principal, now_ns, decide, wants_of(key_id))


def wants_of(key_id: str) -> ReadSet:
    reads = ReadSet()
    reads.row(TABLE, key_id)
    return reads
