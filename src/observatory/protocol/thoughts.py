"""The types of the decision trail: the four types of thought and their required members (seed 003).

Law: any other type is a schema error, and there is no informational type. A thought is a JSON object; the
members its type requires are present and not empty, further members are allowed. It is hashed as RFC 8785
text, so its numbers are doubles; ruling 34 forbids floats in audit events, which contain only its hash.
Messages name a member, never a value.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct

from observatory.protocol.rules import END, SessionId

ThoughtType = Literal["plan", "analysis", "decision", "reflection"]
TYPES: Final[tuple[str, ...]] = get_args(ThoughtType)
# Required members of each type, by the seed's table.
MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "plan": ("trajectory",),
    "analysis": ("observation",),
    "decision": ("choice", "alternatives", "why"),
    "reflection": ("happened", "proved", "uncertain"),
}
CONTENT_BYTES: Final = 65_536  # of RFC 8785 text
NAMED: Final = 64  # records, and audit events, one record may refer to
THOUGHTS: Final = "thoughts:"
RECORDS: Final = 10_000  # per session: a seal is one transaction

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
    """The address under which the trail finds the start, records, seal and end of a session; no entity id has
    this form."""
    return THOUGHTS + session_id


def faults_of(kind: str, content: Mapping[str, Any]) -> list[str]:
    """All reasons why this is not a valid thought of that type; empty when it is."""
    if kind not in MEMBERS:
        return [f"type: must be one of {', '.join(TYPES)}"]
    return [
        f"content.{member}: must be a non-empty text or list; a {kind} has {', '.join(MEMBERS[kind])}"
        for member in MEMBERS[kind]
        if not _is_non_empty(content.get(member))
    ]


def _is_non_empty(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else isinstance(value, list) and bool(value)


class RecordedThought(Struct, frozen=True, kw_only=True):
    """A thought in the trail; hashes are `sha256:…`."""

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
