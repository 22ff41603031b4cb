"""Taking a command back while that is still possible, and the confirmation that a pause took hold.

Law (ruling 24): a rewrite can be undone until its message is released, an inject withdrawn until it is
delivered, a pause ended at any time; an answer at a gate stands. A pause is *confirmed* when its agent has
acknowledged it and has been silent for a second: who keeps sending is held, and stays unconfirmed.
"""

from __future__ import annotations

from typing import Any

from observatory.features.relay.commands import Command, mark, member_in, unpause
from observatory.features.relay.held_message import changed, find
from observatory.features.relay.release import message_of, scribe_of, wants_of
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns

CONFIRM_AFTER_NS = 1_000_000_000
EVERYWHERE = Verdict(
    409,
    Refused(
        reason="not_reversible",
        detail="this command is about every session; use POST /v1/agents/{agent_id}/unpause, or pause again",
    ),
)
UNDONE = Verdict(409, Refused(reason="already_undone", detail="this command was taken back already"))


def undo(
    who: Principal, row: dict[str, Any], session_id: str, agent: dict[str, Any], now_ns: int
) -> Act | Verdict:
    """`row` is the intervention as read; what has changed since is looked at under the lock."""
    if row["reversed_ns"] is not None:
        return UNDONE
    if row["command"] in ("pause", "unpause") and row["session_no"] == 0:
        return EVERYWHERE
    if row["command"] == "pause":
        return unpause(who, session_id, agent["agent_id"], "undo", now_ns)
    if row["command"] not in ("rewrite", "inject"):
        detail = f"a command {row['command']} cannot be taken back"
        return Verdict(409, Refused(reason="not_reversible", detail=detail))

    def decide(desk: Desk) -> Verdict:
        session, found = desk.memory.sessions.get(session_id), desk.memory.agents.get(agent["entity_id"])
        assert session is not None and found is not None  # named by a row that was read; rows never go
        present = desk.memory.rows.get("interventions", {}).get(row["intervention_id"], row)
        if present["reversed_ns"] is not None:
            return UNDONE
        command = Command(scribe_of(desk), who, session, found)
        return _undo_rewrite(command, row) if row["command"] == "rewrite" else _withdraw(command, row)

    wants = wants_of(session_id)
    wants.agents.add(agent["entity_id"])
    wants.row("interventions", row["intervention_id"])
    wants.row("deliveries", row["sequence_number"])
    if row["message_seq"] is not None:
        wants.named.add(row["message_seq"])
        wants.row("rewrites", row["message_seq"])
    return Act(who, now_ns, decide, wants)


def _undo_rewrite(command: Command, row: dict[str, Any]) -> Verdict:
    scribe, memory = command.scribe, command.scribe.memory
    hold = find(memory, command.session, command.agent, row["message_seq"])
    if hold is None or hold.rewrite_seq != row["sequence_number"]:
        detail = "the message was released, or rewritten again, since; this rewrite is no longer in force"
        return Verdict(409, Refused(reason="too_late", detail=detail))
    before = "sha256:" + hold.digest.hex()
    # What stood before it: the newest rewrite still in force, else what the agent sent.
    rows = [row_ for key, row_ in memory.rows.get("rewrites", {}).items() if key[0] == hold.sequence_number]
    others = [one for one in rows if one["undone_ns"] is None and one["sequence_number"] != hold.rewrite_seq]
    last = max(others, key=lambda one: one["sequence_number"], default=None)
    hold.rewrite_seq = None if last is None else last["sequence_number"]
    if last is not None and last["raw"] is not None:
        memory.raws[last["sequence_number"]] = bytes(last["raw"])
    message = message_of(hold, memory.raws)
    if message is None:
        return Verdict(410, Refused(reason="shredded", detail="what stood before it was shredded by order"))
    changed(hold, message, memory)
    where = {"tenant_id": memory.tenant.tenant_id, "sequence_number": row["sequence_number"]}
    scribe.changes.writes.append(Write("rewrites", {"undone_ns": scribe.now_ns}, where))
    return _taken_back(command, row, "held", before, "sha256:" + hold.digest.hex(), hold.message_id)


def _withdraw(command: Command, row: dict[str, Any]) -> Verdict:
    scribe, key = command.scribe, (row["sequence_number"], command.agent.agent_no)
    delivery = scribe.memory.rows.get("deliveries", {}).get(key)
    if delivery is None or delivery["state"] != "pending" or delivery["given_ns"] is not None:
        detail = "the agent has been given this prompt already; inject a correction instead"
        return Verdict(409, Refused(reason="too_late", detail=detail))
    delivery["state"] = "withdrawn"
    where = {
        "tenant_id": scribe.memory.tenant.tenant_id,
        "sequence_number": key[0],
        "agent_no": key[1],
        "state": "pending",
    }
    values = {"state": "withdrawn", "ended_ns": scribe.now_ns}
    scribe.changes.writes.append(Write("deliveries", values, where))
    return _taken_back(command, row, "withdrawn", row["after_hash"], None, None)


def _taken_back(
    command: Command,
    row: dict[str, Any],
    state: str,
    before: str | None,
    after: str | None,
    message_id: str | None,
) -> Verdict:
    scribe, who, session, agent = command.scribe, command.who, command.session, command.agent
    detail = {
        "intervention_id": row["intervention_id"],
        "command": row["command"],
        "operator_id": who.entity_id,
        "session_id": session.session_id,
        "agent_id": agent.agent_id,
        "reversed_at": from_ns(scribe.now_ns),
        "before_hash": before,
        "after_hash": after,
    }
    summary = f"{row['command']} of {agent.agent_id} taken back by {who.entity_id}"
    event = scribe.in_session(
        session, "hitl_reversed", summary, detail, who, message_id=message_id, recipient_id=agent.entity_id
    )
    number = scribe.append(event)
    mark(scribe, row["sequence_number"], "reversed_ns")
    ids = {"intervention_id": row["intervention_id"], "sequence_number": number, "message_id": message_id}
    return Verdict(200, command.answer("accepted", **ids, state=state, before_hash=before, after_hash=after))


def confirm(who: Principal, row: dict[str, Any], session_id: str, entity_id: str, now_ns: int) -> Act:
    """The clock's: this pause was acknowledged a while ago and its agent has kept still since."""

    def decide(desk: Desk) -> Verdict:
        scribe, memory = scribe_of(desk), desk.memory
        session, agent = memory.sessions.get(session_id), memory.agents.get(entity_id)
        present = memory.rows.get("interventions", {}).get(row["intervention_id"])
        if session is None or agent is None or present is None:
            return Verdict(200, None)
        member = member_in(memory, session, agent)
        acknowledged = present["acknowledged_ns"]
        still = (
            member.pause_seq == row["sequence_number"]
            and present["confirmed_ns"] is None
            and acknowledged is not None
            # What was on its way when the agent acknowledged may still have come, and is held.
            and max(acknowledged, member.arrived_ns) + CONFIRM_AFTER_NS <= desk.now_ns
        )
        if not still:
            return Verdict(200, None)
        detail = {"intervention_id": row["intervention_id"], "agent_id": agent.agent_id}
        summary = f"{agent.agent_id} is paused: acknowledged, and nothing sent since"
        scribe.append(scribe.in_session(session, "pause_confirmed", summary, detail))
        mark(scribe, row["sequence_number"], "confirmed_ns")
        return Verdict(200, None)

    wants = wants_of(session_id)
    wants.releases.clear()
    wants.agents.add(entity_id)
    wants.row("interventions", row["intervention_id"])
    return Act(who, now_ns, decide, wants)
