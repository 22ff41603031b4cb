"""Decisions: an agent asks, one person answers, the agent acts (R365–R386, R397–R406, R525).

Law: a forwarded `decision_request` is one row of `decisions`, which holds ids and times only; the words stay
in the archive. The first valid answer wins, and it is a message like any other: `check` refuses what may not
answer (`decision_rules.py`), `follow` writes what was answered. A decision ends once:
pending → answered | expired | cancelled, answered → executing → succeeded | failed.
Whoever forwards a held message asks `want` for its rows first; `follow` looks again before it writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from observatory.features.decisions.stage import (
    CONFIRMABLE,
    Asked,
    Row,
    asked_of,
    auto_option,
    decided,
    is_its_own,
    is_late,
    named_in,
    row_of,
    unknown,
)
from observatory.pipeline import quotas
from observatory.pipeline.event_draft import of_message
from observatory.pipeline.event_writer import notice
from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Memory, Principal, Verdict, Wants
from observatory.protocol.clock import to_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.messages import ActionConfirmation, DecisionRequest, DecisionResponse

# What follows from a confirmation's status.
ENDS = {"success": "succeeded", "failure": "failed", "rollback": "failed"}
AUTO = "auto"  # who answered when the deadline did


def want(message: Message, tenant_id: str, wants: Wants) -> None:
    """Name the rows a message about a decision needs."""
    if message.envelope is None:
        return
    payload = message.envelope.payload
    if isinstance(payload, DecisionRequest):
        wants.row("decisions", payload.decision_id)
        wants.waiting.add((quotas.DECISIONS, agent_entity_id(tenant_id, message.sender_id)))
        if message.recipient_type == "user":
            wants.row("users", message.recipient)
    elif isinstance(payload, DecisionResponse):
        wants.row("decisions", payload.decision_id)
    elif isinstance(payload, ActionConfirmation) and (named := named_in(payload)) is not None:
        wants.row("decisions", named)


def follow(passage: Passage, desk: Desk, number: int) -> None:
    """The effect of a forwarded message: the decision is asked, answered or carried out."""
    if passage.message.envelope is None:
        return
    payload = passage.message.envelope.payload
    if isinstance(payload, DecisionRequest):
        _ask(passage, payload, desk, number)
    elif isinstance(payload, DecisionResponse):
        _answer(passage, payload, desk, number)
    elif isinstance(payload, ActionConfirmation):
        _confirm(passage, payload, desk)


def cancel(who: Principal, decision_id: str, session_id: str, now_ns: int) -> Act:
    """An operator takes a pending decision back; its agent is told."""

    def decide(desk: Desk) -> Verdict:
        row = row_of(desk.memory, decision_id)
        if row is None:
            return Verdict(404, unknown())
        if row["state"] != "pending":
            return Verdict(409, decided(row))
        _end(desk, row, "cancelled", session_id, who, "was cancelled")
        return Verdict(200, row)

    return _act(who, decision_id, session_id, now_ns, decide)


def expire(who: Principal, decision_id: str, session_id: str, now_ns: int) -> Act:
    """The deadline passed and no option was named for it. Changes nothing when that is not so any more."""

    def decide(desk: Desk) -> Verdict:
        row = row_of(desk.memory, decision_id)
        if row is None:
            return Verdict(404, unknown())
        if row["state"] == "pending" and is_late(row, desk.now_ns) and row["auto_option"] is None:
            _end(desk, row, "expired", session_id, who, "found no answer by its deadline")
        return Verdict(200, row)

    return _act(who, decision_id, session_id, now_ns, decide)


def _act(
    who: Principal, decision_id: str, session_id: str, now_ns: int, decide: Callable[[Desk], Verdict]
) -> Act:
    wants = Wants(sessions={session_id})
    wants.row("decisions", decision_id)
    return Act(who, now_ns, decide, wants)


# --- what follows ---


def _ask(passage: Passage, payload: DecisionRequest, desk: Desk, number: int) -> None:
    memory, session, agent = desk.memory, passage.session, passage.agent
    assert session is not None
    known = row_of(memory, payload.decision_id)
    if known is not None:  # it was held while another request took its id
        desk.append(_stale(passage, desk, payload.decision_id, "already names another decision"))
        return
    if quotas.exceeded(memory, quotas.DECISIONS, agent) is not None:  # it was held until others had come
        why = "was not asked: too many decisions of its agent are pending"
        desk.append(_stale(passage, desk, payload.decision_id, why, "too_many_decisions"))
        return
    quotas.note(memory, quotas.DECISIONS, agent.agent_no if agent is not None else 0)
    options = Asked(
        tuple(one.option_id for one in payload.options),
        passage.principal.entity_id,
        passage.principal.key_maker,
    )
    row = {
        "tenant_id": memory.tenant.tenant_id,
        "decision_id": payload.decision_id,
        "request_seq": passage.archived_seq or number,
        "session_no": session.session_no,
        "agent_no": agent.agent_no if agent is not None else 0,
        "user_id": _asked_user(passage, memory),
        "state": "pending",
        "options": msgspec.json.encode(options).decode(),
        "deadline_ns": None if payload.deadline is None else to_ns(payload.deadline),
        "auto_option": auto_option(payload, memory.rulebook.decisions, desk.now_ns),
        "option_id": None,
        "answered_by": None,
        "answered_ns": None,
        "response_seq": None,
        "action_id": None,
        "created_ns": desk.now_ns,
        "updated_ns": desk.now_ns,
    }
    desk.changes.writes.append(Write("decisions", row))
    # A copy: the row in memory is changed by what follows in this batch, the write is not.
    memory.rows.setdefault("decisions", {})[payload.decision_id] = dict(row)


def _asked_user(passage: Passage, memory: Memory) -> str:
    """The user it is addressed to, else the agent's owner, else whoever it was addressed to (R525)."""
    message, agent = passage.message, passage.agent
    user = memory.rows.get("users", {}).get(message.recipient)
    if message.recipient_type == "user" and user is not None and user["disabled_ns"] is None:
        return str(message.recipient)
    return (agent.owner_id if agent is not None else None) or str(message.recipient)


def _answer(passage: Passage, payload: DecisionResponse, desk: Desk, number: int) -> None:
    row = row_of(desk.memory, payload.decision_id)
    is_auto = passage.message.sender_type == "system"
    if (
        row is None
        or row["state"] != "pending"
        or (is_late(row, desk.now_ns) and not is_auto)
        or payload.selected_option_id not in asked_of(row).option_ids
    ):
        # It was held, and another answer or the deadline came first, or a rewrite spoilt it.
        state = "is unknown" if row is None else f"is {row['state']} and cannot take this answer any more"
        desk.append(_stale(passage, desk, payload.decision_id, state))
        return
    answered_by = AUTO if is_auto else passage.entity_id
    archived = passage.archived_seq or number
    _change(
        desk,
        row,
        state="answered",
        option_id=payload.selected_option_id,
        answered_by=answered_by,
        answered_ns=desk.now_ns,
        response_seq=archived,
    )
    detail = {
        "decision_id": payload.decision_id,
        "selected_option_id": payload.selected_option_id,
        "answered_by": answered_by,
        "response_method": payload.response_method,
        "request_sequence_number": row["request_seq"],
    }
    summary = f"{payload.decision_id} was decided by {answered_by}"
    told = desk.append(_event(passage, desk, "decision_made", summary, detail))
    body = {
        "decision_id": payload.decision_id,
        "selected_option_id": payload.selected_option_id,
        "respondent_note": payload.respondent_note,
    }
    _tell(desk, row, told, body, message_seq=archived)


def _confirm(passage: Passage, payload: ActionConfirmation, desk: Desk) -> None:
    named = named_in(payload)
    row = None if named is None else row_of(desk.memory, named)
    if row is not None and is_its_own(passage, row) and row["state"] in CONFIRMABLE:
        _change(desk, row, state=ENDS[payload.status], action_id=payload.action_id)
    detail = {
        "action_id": payload.action_id,
        "action_type": payload.action_type,
        "status": payload.status,
        "decision_id": named,
        "decision_state": None if row is None else row["state"],
    }
    summary = f"{passage.message.sender_id} confirmed {payload.action_type}: {payload.status}"
    desk.append(_event(passage, desk, "action_executed", summary, detail))


def _end(desk: Desk, row: Row, state: str, session_id: str, who: Principal, what: str) -> None:
    """Without an answer: cancelled or expired. The agent that waits is told either way."""
    session = desk.memory.sessions.get(session_id)
    _change(desk, row, state=state)
    draft = notice(
        desk.memory.tenant.tenant_id,
        f"decision_{state}",
        f"{row['decision_id']} {what}",
        desk.now_ns,
        who,
        {
            "decision_id": row["decision_id"],
            "by": who.entity_id,
            "request_sequence_number": row["request_seq"],
        },
    )
    if session is not None:
        draft.trace_id, draft.session_no = session.trace_id, session.session_no
    body = {
        "decision_id": row["decision_id"],
        "selected_option_id": None,
        "respondent_note": None,
        state: True,
    }
    _tell(desk, row, desk.append(draft), body)


def _change(desk: Desk, row: Row, **values: Any) -> None:
    if row["state"] == "pending":
        quotas.note(desk.memory, quotas.DECISIONS, row["agent_no"], -1)
    values["updated_ns"] = desk.now_ns
    where = {name: row[name] for name in ("tenant_id", "decision_id", "state")}
    desk.changes.writes.append(Write("decisions", values, where))
    row.update(values)


def _tell(desk: Desk, row: Row, number: int, body: dict[str, Any], message_seq: int | None = None) -> None:
    if row["agent_no"]:
        desk.tell(
            number, row["agent_no"], "decision", body, session_no=row["session_no"], message_seq=message_seq
        )


def _stale(passage: Passage, desk: Desk, decision_id: str, why: str, reason: str = "too_late") -> Draft:
    detail = {"decision_id": decision_id, "reason": reason}
    summary = f"{passage.message.message_type} changed nothing: {decision_id} {why}"
    return _event(passage, desk, "message_undeliverable", summary, detail)


def _event(passage: Passage, desk: Desk, event_type: str, summary: str, detail: dict[str, Any]) -> Draft:
    """In the message's own session, under its span."""
    place = {"parent_span_id": passage.message.span_id, "message_id": passage.message_id}
    return of_message(passage, event_type, summary, detail, desk.now_ns, **place)
