"""Request and response types of the decision trail; hashes are spelled `sha256:` and hex."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from observatory.protocol.rules import EventId, Name
from observatory.protocol.thoughts import (
    NAMED,
    TYPES,
    RecordedThought,
    RecordId,
    ThoughtSessionId,
    ThoughtTaskId,
)

INTENT_BYTES = 4_096
# A plain string, so that an unknown type is answered with the list of types; OpenAPI lists them too.
AnyType = Annotated[str, Meta(max_length=64, extra_json_schema={"enum": list(TYPES)})]
References = Annotated[list[RecordId], Meta(max_length=NAMED)]
EventIds = Annotated[list[EventId], Meta(max_length=NAMED)]


class NewThoughtSession(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`session_id` may be that of a session of the mesh. `agent_id` names the starting agent, if the key is
    not bound to one."""

    intent: Annotated[str, Meta(min_length=1, max_length=INTENT_BYTES)]
    task_id: ThoughtTaskId | None = None
    session_id: ThoughtSessionId | None = None
    predecessor_session_id: ThoughtSessionId | None = None
    agent_id: Name | None = None


class NewSessionThought(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A plan has `trajectory`, an analysis `observation`, a decision `choice`, `alternatives` and `why`, a
    reflection `happened`, `proved` and `uncertain`; further members are allowed."""

    task_id: ThoughtTaskId
    type: AnyType
    content: dict[str, Any]
    references: References = []
    audit_event_ids: EventIds = []
    record_id: RecordId | None = None
    agent_id: Name | None = None


class NewThought(NewSessionThought, kw_only=True, forbid_unknown_fields=True):
    """Without `session_id` it goes to the session of its task, or opens a session of its own."""

    session_id: ThoughtSessionId | None = None


class StartedSession(msgspec.Struct, kw_only=True):
    session_id: str
    task_id: str
    genesis: str
    started_at: str
    proof_grade: bool


class ThoughtItem(RecordedThought, frozen=True, kw_only=True):
    """A full record: its hashes can be recomputed from these fields (see docs/spec.md)."""

    content: dict[str, Any] | None  # null once shredded, by the event `shredded_by`
    shredded_by: int | None
    author: str
    references: list[str]
    audit_event_ids: list[str]
    predecessor_chain_hash: str | None
    sequence_number: int


class ThoughtSessionItem(StartedSession, kw_only=True):
    caller: str
    intent: str
    predecessor_session_id: str | None
    predecessor_chain_hash: str | None
    records: int
    open_tasks: int
    last_chain_hash: str
    verified_records: int | None
    sealed_at: str | None
    root: str | None
    ended_at: str | None
    intent_shredded_by: int | None


class ThoughtPage(msgspec.Struct, kw_only=True):
    """`next` is the `start` of the next page; null when there is nothing more."""

    session: ThoughtSessionItem
    items: list[ThoughtItem]
    next: int | None


class ThoughtSessionList(msgspec.Struct, kw_only=True):
    items: list[ThoughtSessionItem]
    next_cursor: str | None


class ChainVerdict(msgspec.Struct, kw_only=True):
    """`first_broken_index` past the last record means that the seal is not the root over them.

    `shredded`, if present, counts records whose content was shredded by an order that their events name.
    """

    valid: bool
    records: int
    first_broken_index: int | None
    shredded: int | msgspec.UnsetType = msgspec.UNSET


class ThoughtSeal(msgspec.Struct, kw_only=True):
    root: str
    size: int
    sealed_at: str


class SealAnswer(ThoughtSeal, kw_only=True):
    genesis: str
    last_chain_hash: str


class ThoughtProof(msgspec.Struct, kw_only=True):
    """An RFC 6962 inclusion proof: `leaf` is the hash of 0x00, content_hash and chain_hash, all raw."""

    index: int
    size: int
    leaf: str
    root: str
    hashes: list[str]


class EndedSession(msgspec.Struct, kw_only=True):
    session_id: str
    ended_at: str
    records: int
    root: str | None


THOUGHT_ANSWERS: dict[str, Any] = {
    "start_thought_session": StartedSession,
    "list_thought_sessions": ThoughtSessionList,
    "record_thought": RecordedThought,
    "record_session_thought": RecordedThought,
    "session_thoughts": ThoughtPage,
    "verify_thoughts": ChainVerdict,
    "seal_session": ThoughtSeal,
    "session_seal": SealAnswer,
    "thought_proof": ThoughtProof,
    "end_thoughts": EndedSession,
}
