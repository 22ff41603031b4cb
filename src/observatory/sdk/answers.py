"""`Answer`: the gateway's answer to one message. Has few imports, because hook processes load it too."""

from typing import Any

import msgspec


class Fault(msgspec.Struct, frozen=True):
    path: str = ""
    problem: str = ""


class Answer(msgspec.Struct, frozen=True):
    """The gateway's answer to one message (ruling 10)."""

    code: int
    status: str = ""
    message_id: str | None = None
    session_id: str | None = None
    step_id: str | None = None
    sequence_number: int | None = None
    state: str | None = None
    warnings: list[Any] = []
    reason: str = ""
    faults: list[Fault] = []
    raw_payload_hash: str | None = None
    detail: str | None = None
    """A sentence with the reason and what to do."""
    cap: str | None = None
    """The budget that refused it."""
    rule_id: str | None = None
    """The policy that refused it."""

    @property
    def accepted(self) -> bool:
        return 200 <= self.code < 300

    @property
    def is_final(self) -> bool:
        """False when the gateway could not process the line now and it must be sent again."""
        return self.code < 500 and self.code not in (401, 408, 425, 429)
