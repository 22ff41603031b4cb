"""Decisions: an agent asks, one person answers, the agent acts (R365–R386, R397–R406, R525).

A forwarded `decision_request` is one row of `decisions` with ids and times only; the text stays in the
archive. The first valid answer wins. It is a message like any other: `check` (stage.py) refuses invalid
answers, `follow` records the answer. A decision ends once: pending → answered | expired | cancelled, answered
→ executing → succeeded | failed. A caller that forwards a held message declares its rows with `want` first;
`follow` checks again before it writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from observatory.features.decisions.stage import (
    CONFIRMABLE,
    DecisionOptions,
    Row,
    already_decided,
    auto_option,
    is_its_own,
    is_late,
    named_in,
    no_such_decision,
    options_of,
    row_of,
)
from observatory.pipeline import quotas
from observatory.pipeline.event_draft import of_message
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import (
    BatchState,
    Command,
    EventDraft,
    Principal,
    ReadSet,
    SubmissionResult,
    UnitOfWork,
)
from observatory.protocol.clock import to_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.messages import ActionConfirmation, DecisionRequest, DecisionResponse

# The decision's state after a confirmation.
ENDS = {"success": "succeeded", "failure": "failed", "rollback": "failed"}
AUTO = "auto"  # `answered_by` when the deadline chose the option


def add_reads(message: Message, tenant_id: str, read_set: ReadSet) -> None:
    """Declare the rows that a message about a decision needs."""
    if message.envelope is None:
        return
    payload = message.envelope.payload
    if isinstance(payload, DecisionRequest):
        read_set.row("decisions", payload.decision_id)
        read_set.waiting.add((quotas.DECISIONS, agent_entity_id(tenant_id, message.sender_id)))
        if message.recipient_type == "user":
            read_set.row("users", message.recipient)
    elif isinstance(payload, DecisionResponse):
        read_set.row("decisions", payload.decision_id)
    elif isinstance(payload, ActionConfirmation) and (named := named_in(payload)) is not None:
        read_set.row("decisions", named)


def apply_message(ctx: MessageContext, uow: UnitOfWork, number: int) -> None:
    """Apply a forwarded message: the decision is requested, answered or carried out."""
    if ctx.message.envelope is None:
        return
    payload = ctx.message.envelope.payload
    if isinstance(payload, DecisionRequest):
        _ask(ctx, payload, uow, number)
    elif isinstance(payload, DecisionResponse):
        _answer(ctx, payload, uow, number)
    elif isinstance(payload, ActionConfirmation):
        _confirm(ctx, payload, uow)


def cancel(who: Principal, decision_id: str, session_id: str, now_ns: int) -> Command:
    """An operator cancels a pending decision; its agent is notified."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = row_of(uow.memory, decision_id)
        if row is None:
            return SubmissionResult(404, no_such_decision())
        if row["state"] != "pending":
            return SubmissionResult(409, already_decided(row))
        _end(uow, row, "cancelled", session_id, who, "was cancelled")
        return SubmissionResult(200, row)

    return _act(who, decision_id, session_id, now_ns, decide)


def expire(who: Principal, decision_id: str, session_id: str, now_ns: int) -> Command:
    """The deadline passed and no option was named for it. A no-op when that is no longer true."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = row_of(uow.memory, decision_id)
        if row is None:
            return SubmissionResult(404, no_such_decision())
        if row["state"] == "pending" and is_late(row, uow.now_ns) and row["auto_option"] is None:
            _end(uow, row, "expired", session_id, who, "was not answered by its deadline")
        return SubmissionResult(200, row)

    return _act(who, decision_id, session_id, now_ns, decide)


def _act(
    who: Principal,
    decision_id: str,
    session_id: str,
    now_ns: int,
    decide: Callable[[UnitOfWork], SubmissionResult],
) -> Command:
    read_set = ReadSet(sessions={session_id})
    read_set.row("decisions", decision_id)
    return Command(who, now_ns, decide, read_set)


# --- effects ---


def _ask(ctx: MessageContext, payload: DecisionRequest, uow: UnitOfWork, number: int) -> None:
    memory, session, agent = uow.memory, ctx.session, ctx.agent
    assert session is not None
    known = row_of(memory, payload.decision_id)
    if known is not None:  # it was held while another request used its id
        uow.append(_undeliverable(ctx, uow, payload.decision_id, "already belongs to another decision"))
        return
    if quotas.quota_refusal(memory, quotas.DECISIONS, agent) is not None:  # others arrived while it was held
        why = "was not created: too many decisions of its agent are pending"
        uow.append(_undeliverable(ctx, uow, payload.decision_id, why, "too_many_decisions"))
        return
    quotas.count_waiting(memory, quotas.DECISIONS, agent.agent_no if agent is not None else 0)
    options = DecisionOptions(
        tuple(one.option_id for one in payload.options),
        ctx.principal.entity_id,
        ctx.principal.key_maker,
    )
    row = {
        "tenant_id": memory.tenant.tenant_id,
        "decision_id": payload.decision_id,
        "request_seq": ctx.archived_seq or number,
        "session_no": session.session_no,
        "agent_no": agent.agent_no if agent is not None else 0,
        "user_id": _asked_user(ctx, memory),
        "state": "pending",
        "options": msgspec.json.encode(options).decode(),
        "deadline_ns": None if payload.deadline is None else to_ns(payload.deadline),
        "auto_option": auto_option(payload, memory.tenant_config.decisions, uow.now_ns),
        "option_id": None,
        "answered_by": None,
        "answered_ns": None,
        "response_seq": None,
        "action_id": None,
        "created_ns": uow.now_ns,
        "updated_ns": uow.now_ns,
    }
    uow.changes.writes.append(RowWrite("decisions", row))
    # A copy: later messages of this batch change the row in memory, but not this write.
    memory.rows.setdefault("decisions", {})[payload.decision_id] = dict(row)


def _asked_user(ctx: MessageContext, memory: BatchState) -> str:
    """The user it is addressed to, else the agent's owner, else the addressee as given (R525)."""
    message, agent = ctx.message, ctx.agent
    user = memory.rows.get("users", {}).get(message.recipient)
    if message.recipient_type == "user" and user is not None and user["disabled_ns"] is None:
        return str(message.recipient)
    return (agent.owner_id if agent is not None else None) or str(message.recipient)


def _answer(ctx: MessageContext, payload: DecisionResponse, uow: UnitOfWork, number: int) -> None:
    row = row_of(uow.memory, payload.decision_id)
    is_auto = ctx.message.sender_type == "system"
    if (
        row is None
        or row["state"] != "pending"
        or (is_late(row, uow.now_ns) and not is_auto)
        or payload.selected_option_id not in options_of(row).option_ids
    ):
        # While it was held, another answer or the deadline came first, or a rewrite made it invalid.
        state = "is unknown" if row is None else f"is {row['state']} and can no longer be answered"
        uow.append(_undeliverable(ctx, uow, payload.decision_id, state))
        return
    answered_by = AUTO if is_auto else ctx.entity_id
    archived = ctx.archived_seq or number
    _change(
        uow,
        row,
        state="answered",
        option_id=payload.selected_option_id,
        answered_by=answered_by,
        answered_ns=uow.now_ns,
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
    event_seq = uow.append(_event(ctx, uow, "decision_made", summary, detail))
    body = {
        "decision_id": payload.decision_id,
        "selected_option_id": payload.selected_option_id,
        "respondent_note": payload.respondent_note,
    }
    _notify_agent(uow, row, event_seq, body, message_seq=archived)


def _confirm(ctx: MessageContext, payload: ActionConfirmation, uow: UnitOfWork) -> None:
    named = named_in(payload)
    row = None if named is None else row_of(uow.memory, named)
    if row is not None and is_its_own(ctx, row) and row["state"] in CONFIRMABLE:
        _change(uow, row, state=ENDS[payload.status], action_id=payload.action_id)
    detail = {
        "action_id": payload.action_id,
        "action_type": payload.action_type,
        "status": payload.status,
        "decision_id": named,
        "decision_state": None if row is None else row["state"],
    }
    summary = f"{ctx.message.sender_id} confirmed {payload.action_type}: {payload.status}"
    uow.append(_event(ctx, uow, "action_executed", summary, detail))


def _end(uow: UnitOfWork, row: Row, state: str, session_id: str, who: Principal, what: str) -> None:
    """End without an answer: cancelled or expired. The waiting agent is notified either way."""
    session = uow.memory.sessions.get(session_id)
    _change(uow, row, state=state)
    draft = gateway_event(
        uow.memory.tenant.tenant_id,
        f"decision_{state}",
        f"{row['decision_id']} {what}",
        uow.now_ns,
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
    _notify_agent(uow, row, uow.append(draft), body)


def _change(uow: UnitOfWork, row: Row, **values: Any) -> None:
    if row["state"] == "pending":
        quotas.count_waiting(uow.memory, quotas.DECISIONS, row["agent_no"], -1)
    values["updated_ns"] = uow.now_ns
    where = {name: row[name] for name in ("tenant_id", "decision_id", "state")}
    uow.changes.writes.append(RowWrite("decisions", values, where))
    row.update(values)


def _notify_agent(
    uow: UnitOfWork, row: Row, number: int, body: dict[str, Any], message_seq: int | None = None
) -> None:
    if row["agent_no"]:
        uow.deliver(
            number, row["agent_no"], "decision", body, session_no=row["session_no"], message_seq=message_seq
        )


def _undeliverable(
    ctx: MessageContext, uow: UnitOfWork, decision_id: str, why: str, reason: str = "too_late"
) -> EventDraft:
    detail = {"decision_id": decision_id, "reason": reason}
    summary = f"{ctx.message.message_type} changed nothing: {decision_id} {why}"
    return _event(ctx, uow, "message_undeliverable", summary, detail)


def _event(
    ctx: MessageContext, uow: UnitOfWork, event_type: str, summary: str, detail: dict[str, Any]
) -> EventDraft:
    """In the message's own session, under its span."""
    place = {"parent_span_id": ctx.message.span_id, "message_id": ctx.message_id}
    return of_message(ctx, event_type, summary, detail, uow.now_ns, **place)
