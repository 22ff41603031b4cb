"""Exceptions raised by the SDK. `step` raises only for people's orders (`Denied`, `Cancelled`), never because
telemetry failed; the others come from configuration and from waiting for an answer."""

from typing import TYPE_CHECKING

from observatory.errors import ObservatoryError

if TYPE_CHECKING:
    from observatory.sdk.answers import Answer, Fault
    from observatory.sdk.step import Step


class NotConfigured(ObservatoryError):
    """No usable gateway URL, key or certificate was found; the message says what to do."""


class NotSupported(ObservatoryError):
    """A framework is missing, or lacks a hook its adapter needs; the message says which, and what to do."""


class NotAnswered(ObservatoryError, TimeoutError):
    """No answer arrived in time. A message is not lost: it stays in memory or in the spool. A thought is not
    stored; it can be recorded again with the same `record_id`."""


class Lost(ObservatoryError):
    """Memory and spool were both full when the step was taken: it was never sent and never will be."""


class Rejected(ObservatoryError):
    """The gateway rejected this message; sending it again would give the same result."""

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
    """The action was not allowed and must not be performed.

    `reason`: `rejected` or `expired` at the gate, the gateway's reason code when it refused the message
    (`policy_denied`, `budget_exceeded`, ...), or `no_verdict` when none arrived: a gate fails closed.
    """

    def __init__(
        self, reason: str, note: str | None = None, by: str | None = None, step: "Step | None" = None
    ) -> None:
        self.reason = reason
        self.note = note
        self.by = by
        self.step = step
        message = f"denied: {reason}" + (f" by {by}" if by else "") + (f" ({note})" if note else "")
        super().__init__(message)


class Cancelled(ObservatoryError):
    """A person cancelled this agent's work in the session, or the agent was closed while a step waited."""

    def __init__(self, session_id: str | None, reason: str = "", by: str | None = None) -> None:
        self.session_id = session_id
        self.reason = reason
        self.by = by
        message = f"session {session_id} was cancelled" + (f" by {by}" if by else "")
        super().__init__(message + (f": {reason}" if reason else ""))


def describe(answer: "Answer") -> str:
    """The refusal in one line: the reason, then the explanation."""
    explanation = explain(answer)
    if answer.faults:
        return f"{answer.reason} ({explanation})"
    return ": ".join(part for part in (answer.reason, explanation) if part) or "no reason given"


def explain(answer: "Answer") -> str:
    """Every fault as `path: problem`; otherwise the cap or rule that refused it, and the gateway's detail."""
    if answer.faults:
        return "; ".join(f"{fault.path}: {fault.problem}" for fault in answer.faults)
    rule = answer.rule_id and f"rule {answer.rule_id}"
    return ": ".join(part for part in (answer.cap, rule, answer.detail) if part)
