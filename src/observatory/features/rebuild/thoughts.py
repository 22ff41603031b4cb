"""Import: rebuilds the decision trail: sessions, records, tasks and seals, every hash checked.

The events hold everything but the texts, which are next to them in the export. A session whose texts were
left out (an export of a version that had none) remains as its events describe it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from observatory.cli.terminal import CommandFailed
from observatory.features.thoughts import commands_sealing as concluding
from observatory.features.thoughts.queries_rows import Row, row_of, task_key, where_of
from observatory.ledger import thoughts as ledger
from observatory.ledger.canonical import jcs
from observatory.ledger.export import ExportEntry
from observatory.ledger.thoughts import Thought, ThoughtHashes
from observatory.pipeline.rows import RowWrite, SessionRow
from observatory.pipeline.state import TransactionChanges
from observatory.protocol.clock import to_ns

Event = dict[str, Any]


class ThoughtRows:
    """Keeps the sessions, their open tasks and 32 bytes of every record not yet sealed."""

    def __init__(self, tenant_id: str) -> None:
        self._tenant_id = tenant_id
        self._sessions: dict[str, Row] = {}
        self._tasks: dict[str, Row] = {}
        self._leaves: dict[str, list[bytes]] = {}
        # Records without text in the file: a shred order must follow that names them. None: the session's
        # intent.
        self._bare: set[tuple[str, int | None]] = set()

    def apply(
        self, entry: ExportEntry, event: Event, session: SessionRow | None, changes: TransactionChanges
    ) -> None:
        body = event["body"]
        kind, writes = body["event_type"], changes.writes
        if kind == "thought_session_started" and entry.words is not None:
            self._begin(entry, event, session, writes)
            return
        row = self._sessions.get(body.get("session_id", ""))
        if row is None:
            return
        if kind == "thought_recorded":
            self._record(entry, event, row, writes)
        elif kind == "thought_chain_verified":
            writes += concluding.remember(row, body["records"], entry.sequence_number)
        elif kind == "chain_broken":
            writes += concluding.forget(row)
        elif kind == "thought_session_sealed":
            leaves = self._leaves.pop(row["session_id"])
            writes += concluding.tree_of(row, leaves, to_ns(event["timestamp"]))
            _must_be(row["root"] == body["root"], entry)
        elif kind == "thoughts_shredded":
            self._forget(entry, body, row, writes)
        elif kind == "thought_session_ended":
            row["ended_ns"] = to_ns(event["timestamp"])
            writes.append(RowWrite("thought_sessions", {"ended_ns": row["ended_ns"]}, where_of(row)))

    def _begin(
        self, entry: ExportEntry, event: Event, session: SessionRow | None, writes: list[RowWrite]
    ) -> None:
        body, intent = event["body"], (entry.words or b"").decode()
        if body["intent_hash"] != "sha256:" + sha256(intent.encode()).hexdigest():
            _must_be(not intent, entry)
            self._bare.add((body["session_id"], None))
        copied = ("session_id", "caller", "task_id", "started_at", "genesis", "predecessor_session_id")
        row: Row = {"tenant_id": self._tenant_id} | {name: body[name] for name in copied}
        row |= {
            "session_no": 0 if session is None else session.session_no,
            "opened_by": event["attributes"]["av.sender.entity_id"],
            "intent": intent,
            "sequence_number": entry.sequence_number,
            "predecessor_chain_hash": body["predecessor_chain_hash"],
            "proof_grade": int(body["proof_grade"]),
            "records": 0,
            "open_tasks": 0,
            "last_chain_hash": body["genesis"],
            "verified_records": None,
            "verified_by": None,
            "sealed_ns": None,
            "root": None,
            "ended_ns": None,
        }
        self._sessions[row["session_id"]], self._leaves[row["session_id"]] = row, []
        writes.append(RowWrite("thought_sessions", dict(row)))
        if body["opens_task"]:
            writes += self._task(row, row["task_id"], row["caller"], event)
            writes.append(RowWrite("thought_sessions", {"open_tasks": 1}, where_of(row)))

    def _task(self, row: Row, task_id: str, opened_by: str, event: Event) -> list[RowWrite]:
        task: Row = {
            "tenant_id": self._tenant_id,
            "task_key": task_key(row["session_id"], task_id),
            "session_id": row["session_id"],
            "task_id": task_id,
            "proof_grade": row["proof_grade"],
            "state": "open",
            "opened_by": opened_by,
            "opened_ns": to_ns(event["timestamp"]),
            "closed_by": None,
            "closed_ns": None,
        }
        row["open_tasks"] += 1
        self._tasks[task["task_key"]] = task
        return [RowWrite("thought_tasks", task)]

    def _record(self, entry: ExportEntry, event: Event, row: Row, writes: list[RowWrite]) -> None:
        body, content = event["body"], entry.words
        _must_be(content is not None and body["index"] == row["records"], entry)
        thought = Thought(
            record_id=body["record_id"],
            session_id=body["session_id"],
            task_id=body["task_id"],
            index=body["index"],
            type=body["type"],
            content=content or b"",
            author=body["author"],
            created_at=event["timestamp"],
            references=jcs(body["references"]),
            audit_event_ids=jcs(body["audit_event_ids"]),
            predecessor_chain_hash=None if body["index"] else row["predecessor_chain_hash"],
        )
        hashes = ThoughtHashes(body["content_hash"], body["chain_hash"], body["parent_chain_hash"])
        try:
            if content:
                holds = ledger.link(thought, row["last_chain_hash"]) == hashes
            else:
                holds = ledger.relinked(thought, hashes, row["last_chain_hash"])
                self._bare.add((row["session_id"], body["index"]))
        except ValueError:  # content without a canonical form
            holds = False
        _must_be(holds, entry)
        self._leaves[row["session_id"]].append(ledger.leaf(hashes))
        key = task_key(row["session_id"], thought.task_id)
        if key not in self._tasks:
            writes += self._task(row, thought.task_id, thought.author, event)
        writes.append(
            RowWrite(
                "thought_records",
                row_of(self._tenant_id, thought, hashes, entry.sequence_number, event["audit_event_id"]),
            )
        )
        if thought.type == "reflection":
            row["open_tasks"] -= 1
            del self._tasks[key]
            closed = {
                "state": "closed",
                "closed_by": thought.record_id,
                "closed_ns": to_ns(event["timestamp"]),
            }
            writes.append(RowWrite("thought_tasks", closed, {"tenant_id": self._tenant_id, "task_key": key}))
        row |= {"records": row["records"] + 1, "last_chain_hash": hashes.chain_hash}
        changed = {name: row[name] for name in ("records", "last_chain_hash", "open_tasks")}
        writes.append(RowWrite("thought_sessions", changed, where_of(row)))

    def _forget(self, entry: ExportEntry, body: dict[str, Any], row: Row, writes: list[RowWrite]) -> None:
        """Apply a shred order; texts that are in the file in spite of it are dropped too."""
        session_id, number = row["session_id"], entry.sequence_number
        if indexes := list(body["records"]):
            where = where_of(row) | {"record_index": indexes}
            writes.append(RowWrite("thought_records", {"content": b"", "shredded_by": number}, where))
        if body["intent"]:
            changed = {"intent": "", "intent_shredded_by": number}
            row |= changed
            writes.append(RowWrite("thought_sessions", changed, where_of(row)))
        self._bare -= {(session_id, one) for one in (*indexes, *([None] if body["intent"] else []))}

    def finish(self) -> None:
        if self._bare:
            raise CommandFailed(
                "the text of a thought is missing, and no event orders its shredding; nothing was imported"
            )


def _must_be(holds: bool, entry: ExportEntry) -> None:
    if not holds:
        raise _mismatch(entry)


def _mismatch(entry: ExportEntry) -> CommandFailed:
    return CommandFailed(
        f"the text of event {entry.sequence_number} does not match its hash; nothing was imported"
    )
