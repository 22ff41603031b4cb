"""`Step`, the handle returned by `step`, and the encoding of a step as a DecisionLog.

Rule: a step is encoded when it is recorded, so later changes to the agent's objects do not change it. Field
names are those on the wire. A value the encoder cannot write is sent in a form the gateway will validate: a
step never raises because of a value, only for an unknown argument.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from observatory.protocol.clock import from_ns
from observatory.protocol.decision_log import ActionStatus
from observatory.sdk.answers import Answer
from observatory.sdk.errors import Lost, NotAnswered, Rejected

if TYPE_CHECKING:
    from observatory.sdk.outbox import Outbox
    from observatory.sdk.received import Verdict

Outcome = Answer | Lost


class StepFields(TypedDict, total=False):
    """Optional fields of a step, besides its intent (names as on the wire)."""

    tool_call: str | None
    tool_input: Any
    tool_output_summary: str | None
    status: ActionStatus
    duration_ms: int | None
    reasoning_chain: Sequence[str] | None
    confidence_score: float | None
    strategy_used: str | None
    entropy_score: float | None
    alternatives: Sequence[Mapping[str, str]] | None
    citations: Sequence[str | Mapping[str, str]] | None
    added_to_memory: Sequence[str] | None
    read_from_memory: Sequence[str] | None
    tokens_consumed: int | None
    cost: float | None
    recipient: str | None
    hitl_required: bool
    terminal: bool
    gateway_away: bool


class Step:
    """One recorded step, queued for sending; `answer` waits for the gateway's answer."""

    __slots__ = ("__weakref__", "_listeners", "_outbox", "outcome", "session_id", "step_id", "verdict")

    def __init__(self, outbox: "Outbox", step_id: str | None, session_id: str | None) -> None:
        self._outbox = outbox
        self._listeners: list[Callable[[], None]] | None = None
        self.step_id = step_id
        self.session_id = session_id
        self.outcome: Outcome | None = None
        """The result of sending it."""
        self.verdict: Verdict | None = None
        """The verdict, for a step with `hitl_required`; `tool_input` is what was approved."""

    def answer(self, timeout: float | None = None) -> Answer:
        """The gateway's answer if it accepted; else `Rejected`, `Lost`, or `NotAnswered` after `timeout`."""
        self._outbox.wait_for(lambda: self.outcome is not None, timeout)
        return self.result()

    def result(self) -> Answer:
        match self.outcome:
            case None:
                raise NotAnswered(f"no answer yet for step {self.step_id}; it is stored and will be sent")
            case Lost() as lost:
                raise lost
            case answer if answer.accepted:
                return answer
            case answer:
                raise Rejected(answer, self.step_id)

    def when_answered(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, from the sender's thread, when there is an answer; at once if there is
        one."""
        with self._outbox.changed:
            if self.outcome is None and not self._outbox.closed:
                self._listeners = [*(self._listeners or ()), callback]
                return
        callback()

    def wait_for(self, done: Callable[[], bool], timeout: float | None) -> bool:
        return self._outbox.wait_for(done, timeout)

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        self.when_answered(callback)
        return lambda: None

    @property
    def is_settled(self) -> bool:
        """Its result will not change any more in this process."""
        return self.outcome is not None or self._outbox.closed

    def settle(self, outcome: Outcome | None) -> None:
        """Called by the outbox with its lock held."""
        self.outcome = outcome
        listeners, self._listeners = self._listeners, None
        for callback in listeners or ():
            callback()

    def __repr__(self) -> str:
        return f"Step({self.step_id!r}, session_id={self.session_id!r})"


def new_id() -> str:
    """A UUIDv7. Uses the system's randomness: an agent that seeds `random` must not repeat ids, and
    ids must not advance its sequence."""
    low = int.from_bytes(os.urandom(10))
    high = (time.time_ns() // 1_000_000) << 16 | 0x7000 | low >> 68
    digits = f"{high:016x}{(low & 0x3FFF_FFFF_FFFF_FFFF) | 1 << 63:016x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def write_log(
    meta: dict[str, Any],
    identity: dict[str, Any],
    total_cost: float | None,
    intent: str,
    *,
    tool_call: str | None = None,
    tool_input: Any = None,
    tool_output_summary: str | None = None,
    status: ActionStatus = "success",
    duration_ms: int | None = None,
    reasoning_chain: Sequence[str] | None = None,
    confidence_score: float | None = None,
    strategy_used: str | None = None,
    entropy_score: float | None = None,
    alternatives: Sequence[Mapping[str, str]] | None = None,
    citations: Sequence[str | Mapping[str, str]] | None = None,
    added_to_memory: Sequence[str] | None = None,
    read_from_memory: Sequence[str] | None = None,
    tokens_consumed: int | None = None,
    cost: float | None = None,
    recipient: str | None = None,
    hitl_required: bool = False,
    terminal: bool = False,
    gateway_away: bool = False,
) -> bytes:
    """The DecisionLog of one step as one line of JSON."""
    if recipient is not None:
        identity = {**identity, "recipient": recipient}
    cognition = {
        "intent": intent,
        "reasoning_chain": _listed(reasoning_chain),
        "confidence_score": confidence_score,
        "strategy_used": strategy_used,
        "entropy_score": entropy_score,
        "alternatives": alternatives,
        "citations": _listed(citations),
    }
    action = {
        "tool_call": tool_call,
        "tool_input": written_input(tool_input),
        "tool_output_summary": tool_output_summary,
        "status": status,
        "duration_ms": duration_ms,
    }
    state_delta = {
        "added_to_memory": _listed(added_to_memory),
        "read_from_memory": _listed(read_from_memory),
        "tokens_consumed": tokens_consumed,
        "cost": cost,
        "cumulative_session_cost": total_cost,
    }
    control = {"hitl_required": hitl_required, "interrupt_signal": None, "is_terminal": terminal}
    if gateway_away:
        control["gateway_away"] = True
    meta["timestamp"] = from_ns(time.time_ns())
    return _encoded(
        {
            "meta": meta,
            "identity": identity,
            "cognition": _without_none(cognition),
            "action": _without_none(action),
            "state_delta": _without_none(state_delta),
            "control": control,
        }
    )


def _without_none(section: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if value is not None}


def _listed(value: Sequence[Any] | None) -> Sequence[Any] | None:
    """A single string becomes a list of one: `reasoning_chain="…"` is a common mistake."""
    return [value] if isinstance(value, str) else value


_encoder = msgspec.json.Encoder(enc_hook=str, decimal_format="number")


def _encoded(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):  # lone surrogates, keys of odd types
        return json.dumps(value, default=str, skipkeys=True).encode()


def written_input(tool_input: Any) -> str | None:
    """A tool's input as it is sent: a string unchanged, anything else as JSON."""
    return tool_input if tool_input is None or isinstance(tool_input, str) else _text(tool_input)


def _text(value: Any) -> str:
    try:
        return _encoded(value).decode()
    except (ValueError, RecursionError):  # it contains itself
        return repr(value)
