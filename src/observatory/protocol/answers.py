"""What the gateway answers to a message.

Law (ruling 10): one shape per outcome, the same over HTTP, in NDJSON lines, WebSocket acks and the SDK.
A fault names a path and a rule; it never quotes a value or an unknown key of the payload.
"""

from typing import Literal

from msgspec import Struct

State = Literal["forwarded", "held", "rejected", "refused"]


class Fault(Struct, frozen=True):
    """One broken rule: where, and what was expected there."""

    path: str
    problem: str


class Accepted(Struct, frozen=True, kw_only=True, gc=False):
    """202: the message is durable. A repeat is answered as the first was."""

    message_id: str
    session_id: str
    step_id: str
    sequence_number: int
    state: State
    warnings: tuple[str, ...] = ()
    status: Literal["accepted"] = "accepted"


class Rejected(Struct, frozen=True, kw_only=True):
    """400, 413, 422: the message breaks the contract; only its hash is kept."""

    reason: str
    faults: tuple[Fault, ...] = ()
    raw_payload_hash: str | None = None
    status: Literal["rejected"] = "rejected"


class Refused(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """401, 402, 403, 409, 429, 503: a well-formed message that may not pass."""

    reason: str
    detail: str | None = None
    rule_id: str | None = None
    cap: str | None = None
    status: Literal["refused"] = "refused"
