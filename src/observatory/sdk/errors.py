"""What the SDK raises. Nothing here is raised by `step`: only by setting up, and by asking for an answer."""

from typing import TYPE_CHECKING

from observatory.errors import ObservatoryError

if TYPE_CHECKING:
    from observatory.sdk.client import Answer, Fault


class NotConfigured(ObservatoryError):
    """No gateway is known, or what is known of it cannot be used; the sentence says what to do."""


class NotAnswered(ObservatoryError, TimeoutError):
    """No verdict came in time. The message is not lost: it waits in memory or in the spool."""


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
    def faults(self) -> "list[Fault]":
        return self.answer.faults


def describe(answer: "Answer") -> str:
    """The refusal in one line: every fault as `path: problem`, else the reason."""
    told = "; ".join(f"{fault.path}: {fault.problem}" for fault in answer.faults)
    return f"{answer.reason} ({told})" if told else answer.reason or "no reason given"
