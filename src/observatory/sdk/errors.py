"""What the SDK raises. `step` itself raises only for people's orders (`Denied`, `Cancelled`), never for its
telemetry; the rest comes from setting up and from asking for an answer."""

from typing import TYPE_CHECKING

from observatory.errors import ObservatoryError

if TYPE_CHECKING:
    from observatory.sdk.answers import Answer, Fault
    from observatory.sdk.step import Step


class NotConfigured(ObservatoryError):
    """No gateway is known, or what is known of it cannot be used; the sentence says what to do."""


class NotSupported(ObservatoryError):
    """A framework is missing, or lacks a hook its adapter needs; the sentence says which, and what to do."""


class NotAnswered(ObservatoryError, TimeoutError):
    """No verdict came in time. A message is not lost: it waits in memory or in the spool; of a thought
    nothing is kept, and it may be thought again under its `record_id`."""


class Lost(ObservatoryError):
    """Memory and spool were both full when the step was taken: it was never sent and never will be."""


class Rejected(ObservatoryError):
    """The gateway judged this one message and refused it; sending it again would change nothing."""

    def __init__(self, answer: "Answer", step_id: str | None) -> None:
        self.answer = answer
        self.step_id = step_id
        super().__init__(f"{step_id or 'raw message'} was refused with {answer.code}: {describe(answer)}")

    @property
    def code(self) -> int:
        return self.answer.code

    @property
    def reason(self) -> str:
        return self.answer.reason

    @property
    def detail(self) -> str | None:
        return self.answer.detail

    @property
    def faults(self) -> "list[Fault]":
        return self.answer.faults


class Denied(ObservatoryError):
    """What was asked for was not allowed, so it must not be done.

    `reason`: `rejected` or `expired` at the gate, the gateway's own word when it refused the message
    (`policy_denied`, `budget_exceeded`, ...), or `no_verdict` when none could be had: a gate fails closed.
    """

    def __init__(
        self, reason: str, note: str | None = None, by: str | None = None, step: "Step | None" = None
    ) -> None:
        self.reason = reason
        self.note = note
        self.by = by
        self.step = step
        told = f"denied: {reason}" + (f" by {by}" if by else "") + (f" ({note})" if note else "")
        super().__init__(told)


class Cancelled(ObservatoryError):
    """A person ended this agent's work on the session; or the agent was closed while a step waited."""

    def __init__(self, session_id: str | None, reason: str = "", by: str | None = None) -> None:
        self.session_id = session_id
        self.reason = reason
        self.by = by
        told = f"session {session_id} was cancelled" + (f" by {by}" if by else "")
        super().__init__(told + (f": {reason}" if reason else ""))


def describe(answer: "Answer") -> str:
    """The refusal in one line: the reason, then what explains it."""
    told = explain(answer)
    if answer.faults:
        return f"{answer.reason} ({told})"
    return ": ".join(part for part in (answer.reason, told) if part) or "no reason given"


def explain(answer: "Answer") -> str:
    """Why: every fault as `path: problem`; else the cap or rule that refused it, and the gateway's words."""
    if answer.faults:
        return "; ".join(f"{fault.path}: {fault.problem}" for fault in answer.faults)
    rule = answer.rule_id and f"rule {answer.rule_id}"
    return ": ".join(part for part in (answer.cap, rule, answer.detail) if part)
