"""Commands on facts: mark false, unmark, quarantine, and notify agents of a correction (rules S251–S253).

Ruling 20: the record holds the hash of a fact, its source and who decided, never its text. A quarantine is
one transaction: every agent it names is paused and sent the correction by the relay's own commands, each with
its own `hitl_intervention`, or nothing happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from observatory.features.relay import commands as interventions
from observatory.features.relay.commands_group import combined_command, notify_agent
from observatory.features.relay.types import FactTarget, hashed
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.redaction import typed_text as typed
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.plural import plural
from observatory.protocol.responses import Refused


class FactReference(NamedTuple):
    """The fact a command is about. Archived content stays, so it was looked up before."""

    fact_id: int
    name: str
    fact_key: int
    fact_hash: str
    source_seq: int
    session_id: str
    agent_id: str


def mark_id(fact_id: int) -> str:
    """A fact has one mark, however often it is set and undone."""
    return f"mrk_{fact_id}"


def mark_false(who: Principal, about: FactReference, note: str | None, now_ns: int) -> Command:
    name = mark_id(about.fact_id)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        before = uow.memory.rows.get("fact_marks", {}).get(name)
        if before is not None and before["undone_ns"] is None:
            return SubmissionResult(200, {"status": "already_marked", "mark_id": name, "fact_id": about.name})
        stored_text = typed.redact_text(uow.memory, "note", note)
        row = {
            "tenant_id": who.tenant_id,
            "mark_id": name,
            "fact_key": about.fact_key,
            "fact_id": about.fact_id,
            "note": stored_text,
            "marked_by": who.entity_id,
            "marked_ns": uow.now_ns,
            "undone_ns": None,
        }
        detail = _detail(about) | {"note_hash": None if stored_text is None else hashed(stored_text)}
        summary = f"a fact of {about.agent_id} marked false by {who.entity_id}"
        event = gateway_event(who.tenant_id, "fact_marked_false", summary, uow.now_ns, who, detail)
        answer = {"status": "marked", "mark_id": name, "fact_id": about.name}
        uow.memory.rows.setdefault("fact_marks", {})[name] = row  # for later commands of this batch
        return SubmissionResult(
            201, answer, [event], [RowWrite("fact_marks", row, key=("tenant_id", "mark_id"))]
        )

    read_set = ReadSet()
    read_set.row("fact_marks", name)
    return Command(who, now_ns, decide, read_set)


def undo_mark(who: Principal, about: FactReference, now_ns: int) -> Command:
    name = mark_id(about.fact_id)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        before = uow.memory.rows.get("fact_marks", {}).get(name)
        if before is None or before["undone_ns"] is not None:
            return SubmissionResult(404, Refused(reason="not_marked", detail="this fact is not marked false"))
        before["undone_ns"] = uow.now_ns
        where = {"tenant_id": who.tenant_id, "mark_id": name}
        summary = f"a fact of {about.agent_id} unmarked as false by {who.entity_id}"
        event = gateway_event(who.tenant_id, "fact_mark_undone", summary, uow.now_ns, who, _detail(about))
        answer = {"status": "undone", "mark_id": name, "fact_id": about.name}
        return SubmissionResult(
            200, answer, [event], [RowWrite("fact_marks", {"undone_ns": uow.now_ns}, where)]
        )

    read_set = ReadSet()
    read_set.row("fact_marks", name)
    return Command(who, now_ns, decide, read_set)


def quarantine(
    who: Principal, about: FactReference, targets: Sequence[FactTarget], prompt: str, now_ns: int
) -> Command:
    """Pause each, and inject the correction into its next context. Already paused and notified agents stay
    so."""
    commands: list[tuple[FactTarget, Command, Command | None]] = []
    for target in targets:
        place = (who, target.session_id, target.agent_id)
        halt = interventions.pause(*place, f"quarantine of {about.name}", now_ns)
        commands.append((target, halt, notify_agent(who, target, prompt, now_ns)))

    def conclude(uow: UnitOfWork, results: list[dict[str, Any]]) -> SubmissionResult:
        answer = {"status": "quarantined", "fact_id": about.name, "agents": results}
        if not any(
            result[step]["status"] == "accepted" for result in results for step in ("pause", "inject")
        ):
            return SubmissionResult(200, answer | {"status": "already_quarantined"})
        stored_text = typed.redact_text(uow.memory, "prompt", prompt)
        detail = _detail(about) | {"correction_hash": hashed(stored_text), "agents": _reached(results)}
        summary = (
            f"a fact of {about.agent_id} quarantined by {who.entity_id}: {plural(len(results), 'agent')}"
        )
        return SubmissionResult(
            202, answer, [gateway_event(who.tenant_id, "fact_quarantined", summary, now_ns, who, detail)]
        )

    return combined_command(who, commands, now_ns, conclude)


def _reached(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The agents reached, for the record."""
    return [
        {
            "agent_id": result["agent_id"],
            "session_id": result["session_id"],
            **{step: result[step]["status"] for step in ("pause", "inject") if step in result},
        }
        for result in results
    ]


def _detail(about: FactReference) -> dict[str, Any]:
    return {
        "fact_id": about.name,
        "fact_hash": about.fact_hash,
        "source_sequence_number": about.source_seq,
        "source_session_id": about.session_id,
        "agent_id": about.agent_id,
    }
