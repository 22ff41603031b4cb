"""Where a step waits and for what: the agent side of pause, stop, cancel and approval.

Rule: a step waits only while its agent is known to be paused or stopped, or while it waits for a person's
approval. A gate fails closed: without a verdict in time the action is refused. `permit` asks the gateway's
rules instead of a person: it waits for a person only when a rule requires one, and an unreachable gateway
forbids nothing. Each function is a generator of waits (see `waiting`), driven by both `Agent` and
`AsyncAgent`.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from observatory.sdk.answers import Answer
from observatory.sdk.approval import Approval
from observatory.sdk.errors import Denied, Lost, NotAnswered, Rejected, explain
from observatory.sdk.orders import verdict_key, verdict_of
from observatory.sdk.received import Received, Verdict, decoded
from observatory.sdk.step import Step, new_id, written_input
from observatory.sdk.waiting import Wait, Waits

if TYPE_CHECKING:
    from observatory.sdk.sender import Sender
    from observatory.sdk.session import SessionBranch

NO_VERDICT = "no_verdict"
GATEWAY_AWAY = "gateway_away"
FORBIDDEN_AWAY = "the gateway is unreachable, and this agent may not act without it (on_away=deny)"
NOT_ADMITTED = "not_admitted"
ANSWER_S = 5.0  # how long `permit` waits for the gateway's own answer


AwaitDecision = Callable[[Step, Callable[[], float | None]], Waits[Answer]]


class StepRequest(NamedTuple):
    """A step to be recorded: its branch, its sender, and how long its approval may take."""

    line: "SessionBranch"
    sender: "Sender"
    intent: str
    step_id: str | None
    fields: Mapping[str, Any]
    timeout: float | None = None


def wait_while_held(sender: "Sender", session_id: str, terminal: bool = False) -> Waits[None]:
    """Wait while the agent is paused in this session or stopped; raise if its work there was cancelled.
    A terminal step is allowed after a cancellation."""
    orders = sender.orders
    if not terminal:
        # A pause in force when the agent was closed can no longer end.
        orders.refuse_cancelled(session_id, waited=orders.is_in_force(session_id))
    while orders.is_held(session_id):
        yield Wait(orders, lambda: not orders.is_held(session_id))
        if not terminal or orders.closed:
            orders.refuse_cancelled(session_id, waited=True)


def take_step(request: StepRequest) -> Waits[Step]:
    """Record one step once the agent may proceed; if it needs approval, return only when approved."""
    sender = request.sender
    sender.auto_listen()
    if not sender.orders.is_free:
        yield from wait_while_held(sender, request.line.session_id, bool(request.fields.get("terminal")))
    return (yield from record_step(request))


def record_step(request: StepRequest) -> Waits[Step]:
    """Record one step now, paused or not, because it was done already. Waits for approval as `take_step`
    does."""
    if not request.fields.get("hitl_required"):
        return request.line.record(request.sender, request.intent, request.step_id, request.fields)
    return (yield from await_verdict(request, lambda step, left: await_answer(step, request.sender, left)))


def await_verdict(request: StepRequest, await_decision: AwaitDecision) -> Waits[Step]:
    """Record one step and return it with its verdict when it is approved; else raise `Denied`."""
    line, sender, intent, step_id, fields, timeout = request
    sender.listen_now()
    step_id = step_id or new_id()
    key = verdict_key(line.session_id, step_id)
    left, tips, is_open = countdown(timeout), line.tips, True
    fields = frozen(fields)
    sender.orders.expect(key)
    try:
        step = line.record(sender, intent, step_id, fields)
        answer = yield from await_decision(step, left)
        if answer.state == "held":
            item = yield from await_item(sender, key, line.session_id, left)
            if item is None:
                raise Denied(NO_VERDICT, "no verdict arrived in time", step=step)
            step.verdict = verdict_of(item, *requested_action(fields))
        else:
            tool_call, tool_input = requested_action(fields)
            step.verdict = Verdict("not_required", tool_call=tool_call, tool_input=tool_input)
        is_open = not step.verdict.approved
    finally:
        sender.orders.forget(key)
        if is_open:  # a step that names it as parent would be held or refused with it
            line.retreat(step_id, tips)
    verdict = step.verdict
    if not verdict.approved:
        raise Denied(verdict.verdict, verdict.note, verdict.by, step)
    yield from wait_while_held(sender, line.session_id)  # approved, but possibly paused meanwhile
    return step


def ask(request: StepRequest) -> Waits[Approval]:
    """Like `take_step` with `hitl_required`, but a refusal is returned as a value."""
    fields = frozen({"status": "pending", **request.fields, "hitl_required": True})
    try:
        return approval_of((yield from take_step(request._replace(fields=fields))))
    except Denied as no:
        return refusal_of(no)


def permit(request: StepRequest, needs_approval: bool = False) -> Waits[Approval]:
    """Ask the gateway whether an action is allowed: its rules decide, or a person where a rule, a held
    ancestor or `needs_approval` requires one. With the gateway unreachable it is allowed, unless it needs
    approval; the step is stored. A gateway that refuses this agent's key is not unreachable: then the action
    is refused."""
    line, sender, outbox = request.line, request.sender, request.sender.outbox
    fields = frozen({"status": "pending", **request.fields, "hitl_required": needs_approval})
    sender.auto_listen()
    if not sender.orders.is_free:
        yield from wait_while_held(sender, line.session_id)
    earlier_failures = outbox.failures

    def await_decision(step: Step, left: Callable[[], float | None]) -> Waits[Answer]:
        outbox.hurry()
        patience, waited = left(), countdown(ANSWER_S)
        # A gateway that was already unreachable gets one try: ten tools must not wait ten times as long.
        yield Wait(
            outbox,
            lambda: (
                step.is_settled
                or (outbox.failures > earlier_failures and (earlier_failures > 0 or outbox.key_refused))
            ),
            ANSWER_S if patience is None else min(patience, ANSWER_S),
        )
        if not needs_approval:  # slower than `timeout` is not unreachable: its rules may forbid it
            yield Wait(outbox, lambda: step.is_settled or outbox.failures > earlier_failures, waited())
        return (yield from await_answer(step, sender, lambda: 0.0))

    try:
        return approval_of((yield from await_verdict(request._replace(fields=fields), await_decision)))
    except Denied as no:
        is_silent = no.step is not None and not isinstance(no.step.outcome, Answer)
        if is_silent and outbox.key_refused:
            return Approval(False, NOT_ADMITTED, "the gateway does not accept this agent's key", step=no.step)
        if needs_approval or outbox.closed or not is_silent:
            return refusal_of(no)
        yield from wait_while_held(sender, line.session_id)
        if sender.on_away == "deny":
            return Approval(False, GATEWAY_AWAY, FORBIDDEN_AWAY, step=no.step)
        tool_call, tool_input = requested_action(fields)
        return Approval(True, GATEWAY_AWAY, no.note, None, None, no.step, tool_call, tool_input)


def approval_of(step: Step) -> Approval:
    verdict = step.verdict
    assert verdict is not None  # set for every step that asked for a verdict
    details = verdict.note, verdict.by, verdict.content, step, verdict.tool_call, verdict.tool_input
    return Approval(True, verdict.verdict, *details, gated=verdict.gated)


def refusal_of(no: Denied) -> Approval:
    return Approval(False, no.reason, no.note, no.by, None, no.step)


def frozen(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """With the input as it will be sent: later changes by the agent are not part of what was approved."""
    return {**fields, "tool_input": written_input(fields.get("tool_input"))}


def requested_action(fields: Mapping[str, Any]) -> tuple[str | None, Any]:
    """Tool and input as they were requested."""
    return fields.get("tool_call"), decoded(fields.get("tool_input"))


def await_answer(step: Step, sender: "Sender", left: Callable[[], float | None]) -> Waits[Answer]:
    """Send it at once and wait for the gateway's answer; anything but an acceptance is a denial."""
    sender.outbox.hurry()
    yield Wait(step, lambda: step.is_settled, left())
    try:
        return step.result()
    except Rejected as refused:
        raise Denied(refused.reason or "refused", explain(refused.answer) or None, step=step) from refused
    except (Lost, NotAnswered) as silent:
        raise Denied(NO_VERDICT, "the gateway did not answer", step=step) from silent


def await_item(
    sender: "Sender", key: object, session_id: str, left: Callable[[], float | None]
) -> Waits[Received | None]:
    """The item that answers `key`, or None if it did not arrive in time; raises when the work was
    cancelled."""
    orders = sender.orders
    yield Wait(
        orders,
        lambda: orders.answer(key) is not None or orders.closed or orders.is_cancelled(session_id),
        left(),
    )
    item = orders.answer(key)
    if item is None:
        orders.refuse_cancelled(session_id)
    return item


def receive(sender: "Sender", timeout: float | None) -> Waits[list[Received]]:
    """The waiting messages; if there are none, those that arrive within `timeout`."""
    sender.listen_now()
    orders = sender.orders
    yield Wait(orders, lambda: orders.has_messages or orders.closed, timeout)
    return orders.take_messages()


def next_message(sender: "Sender", timeout: float | None) -> Waits[Received | None]:
    """The oldest message; the caller acknowledges it."""
    sender.listen_now()
    orders = sender.orders
    yield Wait(orders, lambda: orders.has_messages or orders.closed, timeout)
    return orders.next_message()


def await_connection(sender: "Sender", timeout: float | None) -> Waits[bool]:
    """Start listening; True once the gateway has accepted the connection."""
    sender.listen_now()
    orders = sender.orders
    yield Wait(orders, lambda: orders.connected or orders.closed, timeout)
    return orders.connected


def countdown(timeout: float | None) -> Callable[[], float | None]:
    """How much of `timeout` is left, each time it is called."""
    if timeout is None:
        return lambda: None
    end = time.monotonic() + timeout
    return lambda: max(end - time.monotonic(), 0.0)
