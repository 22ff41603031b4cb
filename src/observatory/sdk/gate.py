"""Where a step waits, and for what: the agent's side of pause, stop, cancel and approval.

Law: a step waits only when its agent is known to be paused or stopped (until that ends), or when it asks for
a person's approval (until the verdict). A gate fails closed: without a verdict in time the answer is no. Each
function is a generator of waits (see `waiting`), driven alike by `Agent` and `AsyncAgent`.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from observatory.sdk.client import Answer
from observatory.sdk.errors import Denied, Lost, NotAnswered, Rejected, explain
from observatory.sdk.orders import verdict_key, verdict_of
from observatory.sdk.received import Received, Verdict, decoded
from observatory.sdk.step import Step, new_id, written_input
from observatory.sdk.waiting import Wait, Waits

if TYPE_CHECKING:
    from observatory.sdk.session import Line
    from observatory.sdk.speaker import Speaker

NO_VERDICT = "no_verdict"


class Said(NamedTuple):
    """A step to be: on which line, by whom, and how long its approval may take."""

    line: "Line"
    speaker: "Speaker"
    intent: str
    step_id: str | None
    fields: Mapping[str, Any]
    timeout: float | None = None


class Approval(msgspec.Struct, frozen=True):
    """What came of asking. True in an `if` only when it may be done.

    `verdict` is the person's word (`approved`, `edited`, `rejected`, `expired`), `not_required` when no gate
    held it, `no_verdict`, or why the gateway refused. `content` is the message as edited, or None.
    `tool_call` and `tool_input` are what may be done: as the person edited it, else as it was asked (both
    as data: JSON is decoded); None when it may not.
    """

    approved: bool
    verdict: str
    note: str | None = None
    by: str | None = None
    content: dict[str, Any] | None = None
    step: Step | None = None
    tool_call: str | None = None
    tool_input: Any = None

    @property
    def edited(self) -> bool:
        """A person changed it: what was asked is not what was approved."""
        return self.content is not None

    def __bool__(self) -> bool:
        return self.approved


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
    line, speaker, intent, step_id, fields, timeout = said
    if not fields.get("hitl_required"):
        return line.record(speaker, intent, step_id, fields)
    speaker.listen_now()
    step_id = step_id or new_id()
    key = verdict_key(line.session_id, step_id)
    left, tips, is_open = countdown(timeout), line.tips, True
    fields = frozen(fields)
    speaker.orders.expect(key)
    try:
        step = line.record(speaker, intent, step_id, fields)
        answer = yield from judged(step, speaker, left)
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
        step = yield from say(said._replace(fields=fields))
    except Denied as no:
        return Approval(False, no.reason, no.note, no.by, None, no.step)
    verdict = step.verdict
    assert verdict is not None  # a step that asked has one
    told = verdict.note, verdict.by, verdict.content, step, verdict.tool_call, verdict.tool_input
    return Approval(True, verdict.verdict, *told)


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
