"""The gateway's responses to a message.

Law (ruling 10): one struct per outcome, the same over HTTP, in NDJSON lines, WebSocket acks and the SDK.
A fault names a path and a rule; it never quotes a value or an unknown key of the payload.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

State = Literal["forwarded", "held", "rejected", "refused"]


class Fault(Struct, frozen=True):
    """One broken rule: its path, and what was expected there."""

    path: str
    problem: str


def faults_text(faults: Iterable[Fault]) -> str:
    """Every fault with its path, as a sentence."""
    return "; ".join(f"{fault.path}: {fault.problem}" for fault in faults)


class Accepted(Struct, frozen=True, kw_only=True, gc=False):
    """202: the message is durable. A repeat gets the same response."""

    message_id: str
    session_id: str
    step_id: str
    sequence_number: int
    state: State
    warnings: tuple[str, ...] = ()
    status: Literal["accepted"] = "accepted"


class Rejected(Struct, frozen=True, kw_only=True):
    """400, 413, 422: the message breaks the contract; only its hash is stored."""

    reason: str
    faults: tuple[Fault, ...] = ()
    raw_payload_hash: str | None = None
    status: Literal["rejected"] = "rejected"


class Invalid(Struct, frozen=True, kw_only=True):
    """400, 422: an operator's request breaks the contract; lists all faults, in `detail` as one sentence."""

    detail: str
    faults: tuple[Fault, ...]
    reason: str = "bad_request"
    status: Literal["refused"] = "refused"


class Refused(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """401, 402, 403, 409, 429, 503: a well-formed message that may not pass."""

    reason: str
    detail: str | None = None
    rule_id: str | None = None
    cap: str | None = None
    status: Literal["refused"] = "refused"
