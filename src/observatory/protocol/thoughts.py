"""Words of the decision trail: the four types of thought and what each must hold (seed 003).

Law: anything but the four is a schema error, and there is no informational type. A thought is a JSON object;
what its type demands is there and not empty, more may stand beside. It is hashed as RFC 8785 text, so
its numbers are doubles; ruling 34 has no floats in audit events, and they hold its hash only. Sentences name
a member, never a value.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct

from observatory.protocol.rules import END, SessionId

ThoughtType = Literal["plan", "analysis", "decision", "reflection"]
TYPES: Final[tuple[str, ...]] = get_args(ThoughtType)
# What a record of each type holds, by the seed's table.
MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "plan": ("trajectory",),
    "analysis": ("observation",),
    "decision": ("choice", "alternatives", "why"),
    "reflection": ("happened", "proved", "uncertain"),
}
CONTENT_BYTES: Final = 65_536  # of RFC 8785 text
NAMED: Final = 64  # records, and audit events, that one record may name
THOUGHTS: Final = "thoughts:"
RECORDS: Final = 10_000  # of one session: a seal is one transaction

ThoughtSessionId = SessionId
ThoughtTaskId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        pattern=rf"^[^\x00-\x1f\x7f-\x9f]+{END}",
        extra={"expects": "1 to 256 characters without control characters"},
    ),
]
RecordId = Annotated[
    str,
    Meta(
        pattern=rf"^[A-Za-z0-9_.:-]{{1,128}}{END}",
        description="Chosen by the caller to repeat a request safely; else minted",
        extra={"expects": "1 to 128 of A-Z a-z 0-9 _ . : -"},
    ),
]


def address_of(session_id: str) -> str:
    """Under which the trail finds the start, records, seal and end of a session; no entity's id has a colon
    behind such a word."""
    return THOUGHTS + session_id


def faults_of(kind: str, content: Mapping[str, Any]) -> list[str]:
    """Everything that keeps this from being a thought of that type, as sentences; empty when it is one."""
    if kind not in MEMBERS:
        return [f"type: one of {', '.join(TYPES)}; there is no other"]
    return [
        f"content.{member}: a text or a list that is not empty; a {kind} holds {', '.join(MEMBERS[kind])}"
        for member in MEMBERS[kind]
        if not _says_something(content.get(member))
    ]


def _says_something(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else isinstance(value, list) and bool(value)


class RecordedThought(Struct, frozen=True, kw_only=True):
    """A thought in the trail; hashes as `sha256:…`."""

    record_id: str
    session_id: str
    task_id: str
    index: int
    type: str
    content_hash: str
    chain_hash: str
    parent_chain_hash: str
    created_at: str
    audit_event_id: str
