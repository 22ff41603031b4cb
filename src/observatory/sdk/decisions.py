"""Decision requests to the owner, and confirmations of what was done (`decide`, `confirm`).

Rule: a person decides or, at the deadline, the gateway takes the default option; the agent never decides.
Without a decision, `Denied` is raised, as at a gate.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from observatory.protocol import clock
from observatory.protocol.identity import USER, canonical_id
from observatory.protocol.otel import span_id_of
from observatory.protocol.steps import step_of_name
from observatory.sdk.errors import Denied, NotAnswered
from observatory.sdk.gate import NO_VERDICT, await_answer, await_item, countdown, wait_while_held
from observatory.sdk.orders import decision_key
from observatory.sdk.received import Decision
from observatory.sdk.step import Step, new_id
from observatory.sdk.waiting import Wait, Waits

if TYPE_CHECKING:
    from observatory.sdk.sender import Sender
    from observatory.sdk.session import SessionBranch

Deadline = datetime | timedelta | float | str
Option = str | Mapping[str, Any]
ConfirmationStatus = Literal["success", "failure", "rollback"]
CONFIRM_S = 10.0
AGENT_OWNER = {"entity_id": "sys_owner", "entity_type": "system"}  # the gateway asks the agent's owner


class DecisionTerms(TypedDict, total=False):
    """Optional terms of a decision request."""

    deadline: Deadline | None  # a time, or seconds from now
    default: str | None  # the option the gateway takes at the deadline
    description: str | None
    owner: str | None
    timeout: float | None


def decide(
    line: "SessionBranch",
    sender: "Sender",
    title: str,
    options: Sequence[Option],
    *,
    deadline: Deadline | None = None,
    default: str | None = None,
    description: str | None = None,
    owner: str | None = None,
    timeout: float | None = None,
) -> Waits[Decision]:
    """Send the request and wait for the answer."""
    recipient = party(owner)
    sender.listen_now()
    yield from wait_while_held(sender, line.session_id)
    left, decision_id = countdown(timeout), f"dec_{new_id()}"
    key = decision_key(decision_id)
    payload: dict[str, Any] = {
        "decision_id": decision_id,
        "title": title,
        "options": [_option(option, default) for option in options],
    }
    if description is not None:
        payload["description"] = description
    if deadline is not None:
        payload["deadline"] = _moment(deadline)
        if default is not None:
            payload["auto_action"] = {"option_id": default, "trigger": "deadline_expired"}
    orders = sender.orders
    yield from await_entity_id(sender, left)
    if orders.entity_id is None:
        raise Denied(NO_VERDICT, "the gateway is unreachable")
    orders.expect(key)
    try:
        step = send(line, sender, "decision_request", recipient, payload)
        yield from await_answer(step, sender, left)
        item = yield from await_item(sender, key, line.session_id, left)
        if item is None:
            raise Denied(NO_VERDICT, "no decision arrived in time", step=step)
        chosen, note = item.body_value("selected_option_id"), item.body_value("respondent_note")
        if chosen is None:
            raise Denied("expired" if item.body_value("expired") else "cancelled", note, step=step)
        yield from wait_while_held(sender, line.session_id)  # decided, but paused meanwhile
        return Decision(str(chosen), decision_id, note, (item.message or {}).get("sender") or recipient)
    finally:
        orders.forget(key)


def confirm(
    line: "SessionBranch",
    sender: "Sender",
    decision: Decision | str | None,
    status: ConfirmationStatus,
    summary: str | None,
    fields: Mapping[str, Any],
) -> Waits[Step]:
    """Report the result at once, paused or not."""
    yield from await_entity_id(sender, countdown(CONFIRM_S))
    if sender.orders.entity_id is None:
        raise NotAnswered("not confirmed: this agent was never connected, so it has no entity id")
    recipient = decision.owner if isinstance(decision, Decision) else AGENT_OWNER
    payload = {"action_type": "decision", **fields, "action_id": f"act_{new_id()}", "status": status}
    if summary is not None:
        payload["summary"] = summary
    if decision is not None:
        named = decision.decision_id if isinstance(decision, Decision) else decision
        payload["triggered_by"] = {"decision_id": named}
    return send(line, sender, "action_confirmation", recipient, payload)


def await_entity_id(sender: "Sender", left: Callable[[], float | None]) -> Waits[None]:
    """Wait for the entity id that names the sender of an envelope; the gateway assigns it."""
    sender.listen_now()
    orders = sender.orders
    yield Wait(orders, lambda: orders.entity_id is not None or orders.closed, left())


def send(
    line: "SessionBranch",
    sender: "Sender",
    kind: str,
    recipient: Mapping[str, str],
    payload: Mapping[str, Any],
) -> Step:
    """One envelope at the tip of this branch; its step id is its message id."""
    message_id = f"msg_{new_id()}"
    with line.advance(message_id) as tips:
        step = sender.queue_raw(
            {
                "envelope_version": "1.0.0",
                "message_id": message_id,
                "message_type": kind,
                "trace_id": canonical_id(line.trace_id).replace("-", ""),
                "span_id": span_id_of(message_id),
                "parent_span_id": span_id_of(step_of_name(tips[0])) if tips else None,
                "timestamp": clock.from_ns(time.time_ns()),
                "sender": {"entity_id": str(sender.orders.entity_id), "entity_type": "agent"},
                "recipient": dict(recipient),
                "payload": dict(payload),
                "metadata": {"session_id": line.session_id},
            }
        )
        step.step_id, step.session_id = message_id, line.session_id
    return step


def party(owner: str | None) -> dict[str, str]:
    if owner is None:
        return AGENT_OWNER
    if not str(owner).startswith(USER) or owner == USER:
        raise ValueError(f"owner={owner!r} is not a user id ({USER}…); `observatory users list` lists them")
    return {"entity_id": owner, "entity_type": "user"}


def _option(option: Option, default: str | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"option_id": option, "label": option} if isinstance(option, str) else {**option}
    if default is not None:
        fields["is_default"] = fields.get("option_id") == default
    return fields


def _moment(deadline: Deadline) -> str:
    """A time, or a number of seconds from now."""
    match deadline:
        case str():
            return deadline
        case datetime():
            return deadline.astimezone().isoformat()
        case timedelta():
            return _moment(deadline.total_seconds())
        case _:
            return clock.from_ns(time.time_ns() + int(deadline * 1e9))
