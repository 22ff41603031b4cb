"""Refusals that the record counts instead of telling each in full (S1160, S1161).

Law: of one key and one reason the first few a minute are events of their own; each further one is a leaf of
an RFC 6962 tree, and when the minute is over one event tells how many there were and the root over them. The
count is a row of the same transaction: a gateway that is killed forgets none, and several count together.
The answer to the client is not touched. Pure; a leaf is `leaf_of`, so whoever kept the answers can check it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from observatory.errors import NeedsLock
from observatory.ledger.canonical import jcs
from observatory.ledger.merkle import Accumulator, leaf_hash
from observatory.pipeline.event_writer import Scribe, notice
from observatory.pipeline.quotas import in_force
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict, Wants
from observatory.protocol.clock import from_ns
from observatory.protocol.events import REFUSALS_COUNTED, SEVERITY

MINUTE: Final = 60_000_000_000
HASH: Final = 32
TABLE: Final = "refusals"
KEY: Final = ("tenant_id", "key_id", "kind")
Row = dict[str, Any]
Pair = tuple[str, str]


class Refusals:
    """Of one batch. `read` loads rows under the lock; None while a batch is thought about without it."""

    def __init__(self, scribe: Scribe, loaded: set[str], read: Callable[[Wants], None] | None) -> None:
        self._scribe, self._loaded, self._read = scribe, loaded, read
        self._written: set[Pair] = set()

    def in_full(self, who: Principal, verdict: Verdict) -> list[Draft]:
        """Those of its events that are recorded; the others are counted, if they tell of a refusal."""
        is_refusal = verdict.code >= 400 and not verdict.archived
        return [
            event
            for event in verdict.events
            if not (is_refusal or event.counts_as) or self._is_recorded(who, event, _reason(event, verdict))
        ]

    def _is_recorded(self, who: Principal, event: Draft, reason: str) -> bool:
        row, now_ns = self._row(who, f"{event.event_type}/{reason}"), self._scribe.now_ns
        if not row["began_ns"] <= now_ns < row["began_ns"] + MINUTE:
            if row["counted"]:
                self._scribe.append(summary_of(row, now_ns))
            row |= {"began_ns": now_ns, "in_full": 0, "counted": 0, "peaks": b"", "agent_id": None}
        self._write(row)
        if row["in_full"] < in_force().refusals_in_full:
            row["in_full"] += 1
            return True
        _count(row, event, now_ns)
        return False

    def _row(self, who: Principal, kind: str) -> Row:
        memory = self._scribe.memory
        if who.key_id not in self._loaded:
            if self._read is None:
                raise NeedsLock("what was refused before is counted under the lock")
            self._read(wants_of(who.key_id))
            self._loaded.add(who.key_id)
        rows = memory.rows.setdefault(TABLE, {})
        row = rows.get((who.key_id, kind))
        if row is None:
            row = rows[who.key_id, kind] = {
                "tenant_id": memory.tenant.tenant_id,
                "key_id": who.key_id,
                "kind": kind,
                "sender_id": who.entity_id,
                "sender_type": who.entity_type,
                "began_ns": self._scribe.now_ns,
                "last_ns": self._scribe.now_ns,
                "in_full": 0,
                "counted": 0,
                "peaks": b"",
                "agent_id": None,
            }
        return row

    def _write(self, row: Row) -> None:
        """Once a batch: the row goes as it is when the batch is done."""
        pair = row["key_id"], row["kind"]
        if pair not in self._written:
            self._written.add(pair)
            self._scribe.changes.writes.append(Write(TABLE, row, key=KEY))


def _reason(event: Draft, verdict: Verdict) -> str:
    """Of a closed set, whatever was sent: it names a row that stays."""
    said = event.counts_as or getattr(verdict.answer, "reason", None) or event.detail.get("permission")
    return str(said or "refused")


def _count(row: Row, event: Draft, now_ns: int) -> None:
    peaks = bytes(row["peaks"])
    tree = Accumulator(row["counted"], [peaks[i : i + HASH] for i in range(0, len(peaks), HASH)])
    tree.append(leaf_hash(leaf_of(event.event_type, event.summary, event.detail)))
    agent_id = event.detail.get("agent_id")
    if row["counted"] and row["agent_id"] != agent_id:
        agent_id = None  # of several agents; which, only the root says
    row |= {"counted": tree.size, "peaks": b"".join(tree.peaks), "last_ns": now_ns, "agent_id": agent_id}


def leaf_of(event_type: str, summary: str, detail: dict[str, Any]) -> bytes:
    """What a refusal that is only counted would have said, without its time."""
    return jcs({"event_type": event_type, "summary": summary, "detail": detail})


def root_of(row: Row) -> str:
    peaks = bytes(row["peaks"])
    tree = Accumulator(row["counted"], [peaks[i : i + HASH] for i in range(0, len(peaks), HASH)])
    return f"sha256:{tree.root().hex()}"


def summary_of(row: Row, now_ns: int) -> Draft:
    """The event of a minute's refusals that were counted."""
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
    draft = notice(row["tenant_id"], REFUSALS_COUNTED, summary, now_ns, None, detail, severity)
    draft.sender_id, draft.sender_type = row["sender_id"], row["sender_type"]
    draft.key_id = row["key_id"]
    return draft


def conclude(who: Principal, key_id: str, kind: str, now_ns: int) -> Act:
    """The minute is over and nothing more was refused: what was counted is told."""

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get(TABLE, {}).get((key_id, kind))
        if row is None or not row["counted"] or row["began_ns"] <= desk.now_ns < row["began_ns"] + MINUTE:
            return Verdict(200, None)
        event = summary_of(row, desk.now_ns)
        # The minute of what comes next begins with it.
        row |= {"in_full": 0, "counted": 0, "peaks": b"", "agent_id": None, "began_ns": 0}
        return Verdict(200, None, [event], [Write(TABLE, row, key=KEY)])

    return Act(who, now_ns, decide, wants_of(key_id))


def wants_of(key_id: str) -> Wants:
    wants = Wants()
    wants.row(TABLE, key_id)
    return wants
