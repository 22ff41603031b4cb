"""Where a step waits, and for what: the agent's side of pause, stop, cancel and approval.

Law: a step waits only when its agent is known to be paused or stopped (until that ends), or when it asks for
a person's approval (until the verdict). A gate fails closed: without a verdict in time the answer is no.
`permit` asks the gateway's rules instead of a person: it waits for a person only when they say so, and a
gateway that is away forbids nothing. Each function is a generator of waits (see `waiting`), driven alike by
`Agent` and `AsyncAgent`.
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
    from observatory.sdk.session import Line
    from observatory.sdk.speaker import Speaker

NO_VERDICT = "no_verdict"
GATEWAY_AWAY = "gateway_away"
FORBIDDEN_AWAY = "the gateway is away, and this agent may not act without it (on_away=deny)"
NOT_ADMITTED = "not_admitted"
ANSWER_S = 5.0  # how long `permit` waits for the gateway's own answer


Judge = Callable[[Step, Callable[[], float | None]], Waits[Answer]]


class Said(NamedTuple):
    """A step to be: on which line, by whom, and how long its approval may take."""

    line: "Line"
    speaker: "Speaker"
    intent: str
    step_id: str | None
    fields: Mapping[str, Any]
    timeout: float | None = None


def pass_by(speaker: "Speaker", session_id: str, terminal: bool = False) -> Waits[None]:
    """Wait while the agent is paused in this session or stopped; raise if its work there was cancelled.
    A terminal step is the agent's last word: it passes after a cancellation."""
    orders = speaker.orders
    if not terminal:
        # A pause in force when the agent was closed holds for good: nobody can end it any more.
        orders.refuse_cancelled(session_id, waited=orders.is_in_force(session_id))
    while orders.is_held(session_id):
        yield Wait(orders, lambda: not orders.is_held(session_id))
        if not terminal or orders.closed:
            orders.refuse_cancelled(session_id, waited=True)


def say(said: Said) -> Waits[Step]:
    """Record one step when it may be; if it asks for approval, return only when it was given."""
    speaker = said.speaker
    speaker.hear()
    if not speaker.orders.is_free:
        yield from pass_by(speaker, said.line.session_id, bool(said.fields.get("terminal")))
    return (yield from tell(said))


def tell(said: Said) -> Waits[Step]:
    """Record one step now, paused or not: what was done is said. Approval is waited for as in `say`."""
    if not said.fields.get("hitl_required"):
        return said.line.record(said.speaker, said.intent, said.step_id, said.fields)
    return (yield from asked(said, lambda step, left: judged(step, said.speaker, left)))


def asked(said: Said, judge: Judge) -> Waits[Step]:
    """Record one step and return it when it may be done, with its verdict; else `Denied`."""
    line, speaker, intent, step_id, fields, timeout = said
    speaker.listen_now()
    step_id = step_id or new_id()
    key = verdict_key(line.session_id, step_id)
    left, tips, is_open = countdown(timeout), line.tips, True
    fields = frozen(fields)
    speaker.orders.expect(key)
    try:
        step = line.record(speaker, intent, step_id, fields)
        answer = yield from judge(step, left)
        if answer.state == "held":
            item = yield from arrival(speaker, key, line.session_id, left)
            if item is None:
                raise Denied(NO_VERDICT, "nobody answered in time", step=step)
            step.verdict = verdict_of(item, *asked_of(fields))
        else:
            tool_call, tool_input = asked_of(fields)
            step.verdict = Verdict("not_required", tool_call=tool_call, tool_input=tool_input)
        is_open = not step.verdict.approved
    finally:
        speaker.orders.forget(key)
        if is_open:  # what names it as its parent would be held, or refused, with it
            line.retreat(step_id, tips)
    verdict = step.verdict
    if not verdict.approved:
        raise Denied(verdict.verdict, verdict.note, verdict.by, step)
    yield from pass_by(speaker, line.session_id)  # approved, but perhaps paused meanwhile
    return step


def ask(said: Said) -> Waits[Approval]:
    """As `say` with `hitl_required`, but a no is a value."""
    fields = frozen({"status": "pending", **said.fields, "hitl_required": True})
    try:
        return approval_of((yield from say(said._replace(fields=fields))))
    except Denied as no:
        return refusal_of(no)


def permit(said: Said, needs_approval: bool = False) -> Waits[Approval]:
    """Ask the gateway whether it may be done: its rules answer, or a person where a rule, a held ancestor or
    `needs_approval` says so. Without the gateway it may, unless it needs approval; the step is kept. But one
    that does not take our key is not away: who was shut out may do nothing."""
    line, speaker, outbox = said.line, said.speaker, said.speaker.outbox
    fields = frozen({"status": "pending", **said.fields, "hitl_required": needs_approval})
    speaker.hear()
    if not speaker.orders.is_free:
        yield from pass_by(speaker, line.session_id)
    was_away = outbox.failures

    def judge(step: Step, left: Callable[[], float | None]) -> Waits[Answer]:
        outbox.hurry()
        patience, waited = left(), countdown(ANSWER_S)
        # Whoever was away before gets one try, not its time over again: ten tools are not ten times slower.
        yield Wait(
            outbox,
            lambda: step.is_settled or (outbox.failures > was_away and (was_away > 0 or outbox.barred)),
            ANSWER_S if patience is None else min(patience, ANSWER_S),
        )
        if not needs_approval:  # one that is only slower than `timeout` is not away: its rules may forbid it
            yield Wait(outbox, lambda: step.is_settled or outbox.failures > was_away, waited())
        return (yield from judged(step, speaker, lambda: 0.0))

    try:
        return approval_of((yield from asked(said._replace(fields=fields), judge)))
    except Denied as no:
        is_silent = no.step is not None and not isinstance(no.step.outcome, Answer)
        if is_silent and outbox.barred:
            return Approval(False, NOT_ADMITTED, "the gateway does not take this agent's key", step=no.step)
        if needs_approval or outbox.closed or not is_silent:
            return refusal_of(no)
        yield from pass_by(speaker, line.session_id)
        if speaker.on_away == "deny":
            return Approval(False, GATEWAY_AWAY, FORBIDDEN_AWAY, step=no.step)
        tool_call, tool_input = asked_of(fields)
        return Approval(True, GATEWAY_AWAY, no.note, None, None, no.step, tool_call, tool_input)


def approval_of(step: Step) -> Approval:
    verdict = step.verdict
    assert verdict is not None  # a step that asked has one
    told = verdict.note, verdict.by, verdict.content, step, verdict.tool_call, verdict.tool_input
    return Approval(True, verdict.verdict, *told, gated=verdict.gated)


def refusal_of(no: Denied) -> Approval:
    return Approval(False, no.reason, no.note, no.by, None, no.step)


def frozen(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """With the input as it will be sent: what the agent changes while it waits is not what was approved."""
    return {**fields, "tool_input": written_input(fields.get("tool_input"))}


def asked_of(fields: Mapping[str, Any]) -> tuple[str | None, Any]:
    """Tool and input as they were said."""
    return fields.get("tool_call"), decoded(fields.get("tool_input"))


def judged(step: Step, speaker: "Speaker", left: Callable[[], float | None]) -> Waits[Answer]:
    """Send it at once and wait for the gateway's answer; whatever is not an acceptance is a denial."""
    speaker.outbox.hurry()
    yield Wait(step, lambda: step.is_settled, left())
    try:
        return step.judged()
    except Rejected as refused:
        raise Denied(refused.reason or "refused", explain(refused.answer) or None, step=step) from refused
    except (Lost, NotAnswered) as silent:
        raise Denied(NO_VERDICT, "the gateway did not answer", step=step) from silent


def arrival(
    speaker: "Speaker", key: object, session_id: str, left: Callable[[], float | None]
) -> Waits[Received | None]:
    """What answers `key`, or None if it did not come in time; raises when the work was cancelled."""
    orders = speaker.orders
    yield Wait(
        orders,
        lambda: orders.answer(key) is not None or orders.closed or orders.is_cancelled(session_id),
        left(),
    )
    item = orders.answer(key)
    if item is None:
        orders.refuse_cancelled(session_id)
    return item


def receive(speaker: "Speaker", timeout: float | None) -> Waits[list[Received]]:
    """The messages that wait; with none, those that come within `timeout`."""
    speaker.listen_now()
    orders = speaker.orders
    yield Wait(orders, lambda: orders.has_messages or orders.closed, timeout)
    return orders.take_messages()


def next_message(speaker: "Speaker", timeout: float | None) -> Waits[Received | None]:
    """The oldest message, to be finished by whoever asked."""
    speaker.listen_now()
    orders = speaker.orders
    yield Wait(orders, lambda: orders.has_messages or orders.closed, timeout)
    return orders.next_message()


def connection(speaker: "Speaker", timeout: float | None) -> Waits[bool]:
    """Begin to listen; True once the gateway has greeted us."""
    speaker.listen_now()
    orders = speaker.orders
    yield Wait(orders, lambda: orders.connected or orders.closed, timeout)
    return orders.connected


def countdown(timeout: float | None) -> Callable[[], float | None]:
    """How much of `timeout` is left, each time it is called."""
    if timeout is None:
        return lambda: None
    end = time.monotonic() + timeout
    return lambda: max(end - time.monotonic(), 0.0)
