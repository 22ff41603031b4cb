"""Undoing a command while that is possible, and confirming that a pause took effect.

Law (ruling 24): a rewrite can be undone until its message is released, an inject withdrawn until it is
delivered, a pause ended at any time; an answer at a gate is final. A pause is *confirmed* when its agent has
acknowledged it and then sent nothing for a second: an agent that keeps sending is held, and not confirmed.
"""

from __future__ import annotations

from typing import Any

from observatory.features.relay.commands import Intervention, member_of, set_timestamp, unpause
from observatory.features.relay.held_message import content_changed, find_hold
from observatory.features.relay.release import event_writer_of, message_of, wants_of
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns
from observatory.protocol.responses import Refused

CONFIRM_AFTER_NS = 1_000_000_000
EVERYWHERE = SubmissionResult(
    409,
    Refused(
        reason="not_reversible",
        detail="this command is for every session; use POST /v1/agents/{agent_id}/unpause, or pause again",
    ),
)
UNDONE = SubmissionResult(409, Refused(reason="already_undone", detail="this command is already undone"))


def undo(
    who: Principal, row: dict[str, Any], session_id: str, agent: dict[str, Any], now_ns: int
) -> Command | SubmissionResult:
    """`row` is the intervention as read; it is checked again under the lock."""
    if row["reversed_ns"] is not None:
        return UNDONE
    if row["command"] in ("pause", "unpause") and row["session_no"] == 0:
        return EVERYWHERE
    if row["command"] == "pause":
        return unpause(who, session_id, agent["agent_id"], "undo", now_ns)
    if row["command"] not in ("rewrite", "inject"):
        detail = f"a command {row['command']} cannot be undone"
        return SubmissionResult(409, Refused(reason="not_reversible", detail=detail))

    def decide(uow: UnitOfWork) -> SubmissionResult:
        session, target = uow.memory.sessions.get(session_id), uow.memory.agents.get(agent["entity_id"])
        assert session is not None and target is not None  # a stored row names them; rows are never deleted
        present = uow.memory.rows.get("interventions", {}).get(row["intervention_id"], row)
        if present["reversed_ns"] is not None:
            return UNDONE
        command = Intervention(event_writer_of(uow), who, session, target)
        return _undo_rewrite(command, row) if row["command"] == "rewrite" else _withdraw(command, row)

    read_set = wants_of(session_id)
    read_set.agents.add(agent["entity_id"])
    read_set.row("interventions", row["intervention_id"])
    read_set.row("deliveries", row["sequence_number"])
    if row["message_seq"] is not None:
        read_set.named.add(row["message_seq"])
        read_set.row("rewrites", row["message_seq"])
    return Command(who, now_ns, decide, read_set)


def _undo_rewrite(command: Intervention, row: dict[str, Any]) -> SubmissionResult:
    event_writer, memory = command.event_writer, command.event_writer.memory
    hold = find_hold(memory, command.session, command.agent, row["message_seq"])
    if hold is None or hold.rewrite_seq != row["sequence_number"]:
        detail = "the message has been released or rewritten since; this rewrite is no longer in force"
        return SubmissionResult(409, Refused(reason="too_late", detail=detail))
    before = "sha256:" + hold.digest.hex()
    # The previous content: the newest rewrite still in force, else what the agent sent.
    rows = [row_ for key, row_ in memory.rows.get("rewrites", {}).items() if key[0] == hold.sequence_number]
    others = [one for one in rows if one["undone_ns"] is None and one["sequence_number"] != hold.rewrite_seq]
    last = max(others, key=lambda one: one["sequence_number"], default=None)
    hold.rewrite_seq = None if last is None else last["sequence_number"]
    if last is not None and last["raw"] is not None:
        memory.raws[last["sequence_number"]] = bytes(last["raw"])
    message = message_of(hold, memory.raws)
    if message is None:
        return SubmissionResult(
            410, Refused(reason="shredded", detail="the previous content was shredded by order")
        )
    content_changed(hold, message, memory)
    where = {"tenant_id": memory.tenant.tenant_id, "sequence_number": row["sequence_number"]}
    event_writer.changes.writes.append(RowWrite("rewrites", {"undone_ns": event_writer.now_ns}, where))
    return _record_undo(command, row, "held", before, "sha256:" + hold.digest.hex(), hold.message_id)


def _withdraw(command: Intervention, row: dict[str, Any]) -> SubmissionResult:
    event_writer, key = command.event_writer, (row["sequence_number"], command.agent.agent_no)
    delivery = event_writer.memory.rows.get("deliveries", {}).get(key)
    if delivery is None or delivery["state"] != "pending" or delivery["given_ns"] is not None:
        detail = "this prompt is already delivered to the agent; inject a correction instead"
        return SubmissionResult(409, Refused(reason="too_late", detail=detail))
    delivery["state"] = "withdrawn"
    where = {
        "tenant_id": event_writer.memory.tenant.tenant_id,
        "sequence_number": key[0],
        "agent_no": key[1],
        "state": "pending",
    }
    values = {"state": "withdrawn", "ended_ns": event_writer.now_ns}
    event_writer.changes.writes.append(RowWrite("deliveries", values, where))
    return _record_undo(command, row, "withdrawn", row["after_hash"], None, None)


def _record_undo(
    command: Intervention,
    row: dict[str, Any],
    state: str,
    before: str | None,
    after: str | None,
    message_id: str | None,
) -> SubmissionResult:
    event_writer, who, session, agent = command.event_writer, command.who, command.session, command.agent
    detail = {
        "intervention_id": row["intervention_id"],
        "command": row["command"],
        "operator_id": who.entity_id,
        "session_id": session.session_id,
        "agent_id": agent.agent_id,
        "reversed_at": from_ns(event_writer.now_ns),
        "before_hash": before,
        "after_hash": after,
    }
    summary = f"{row['command']} of {agent.agent_id} undone by {who.entity_id}"
    event = event_writer.in_session(
        session, "hitl_reversed", summary, detail, who, message_id=message_id, recipient_id=agent.entity_id
    )
    number = event_writer.append(event)
    set_timestamp(event_writer, row["sequence_number"], "reversed_ns")
    ids = {"intervention_id": row["intervention_id"], "sequence_number": number, "message_id": message_id}
    return SubmissionResult(
        200, command.answer("accepted", **ids, state=state, before_hash=before, after_hash=after)
    )


def confirm(who: Principal, row: dict[str, Any], session_id: str, entity_id: str, now_ns: int) -> Command:
    """Confirm a pause that was acknowledged and whose agent has sent nothing since."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        event_writer, memory = event_writer_of(uow), uow.memory
        session, agent = memory.sessions.get(session_id), memory.agents.get(entity_id)
        present = memory.rows.get("interventions", {}).get(row["intervention_id"])
        if session is None or agent is None or present is None:
            return SubmissionResult(200, None)
        member = member_of(memory, session, agent)
        acknowledged = present["acknowledged_ns"]
        is_confirmed = (
            member.pause_seq == row["sequence_number"]
            and present["confirmed_ns"] is None
            and acknowledged is not None
            # Messages in flight when the agent acknowledged may still arrive, and are held.
            and max(acknowledged, member.arrived_ns) + CONFIRM_AFTER_NS <= uow.now_ns
        )
        if not is_confirmed:
            return SubmissionResult(200, None)
        detail = {"intervention_id": row["intervention_id"], "agent_id": agent.agent_id}
        summary = f"{agent.agent_id} is paused: acknowledged, and nothing sent since"
        event_writer.append(event_writer.in_session(session, "pause_confirmed", summary, detail))
        set_timestamp(event_writer, row["sequence_number"], "confirmed_ns")
        return SubmissionResult(200, None)

    read_set = wants_of(session_id)
    read_set.releases.clear()
    read_set.agents.add(entity_id)
    read_set.row("interventions", row["intervention_id"])
    return Command(who, now_ns, decide, read_set)
