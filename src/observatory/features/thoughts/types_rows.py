"""What is asked of the decision trail afterwards: records as stored, each with the event that told of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from observatory.ledger.thoughts import Hashes, Thought

Row = dict[str, Any]


class StoredThought(msgspec.Struct, frozen=True):
    """A record just as its row says; `event` is the audit event of its number, None when there is none."""

    thought: Thought
    hashes: Hashes
    sequence_number: int
    audit_event_id: str
    event: bytes | None
    shredded_by: int | None = None  # the event that ordered its words to go


class Left(NamedTuple):
    """A thought that still has its words."""

    sequence_number: int
    session_id: str
    record_id: str
    created_at: str


class Told(NamedTuple):
    """What the trail has of a thought session: how many events, and the last of them, the newest first."""

    events: int
    last: list[bytes]


@runtime_checkable
class Thoughts(Protocol):
    """Committed rows of the one tenant named."""

    async def thoughts(self, tenant_id: str, session_id: str, start: int, limit: int) -> list[StoredThought]:
        """Records of a session from an index on, in order of their index."""

    async def thought_session(self, tenant_id: str, session_id: str) -> Row | None:
        """A session's row just as it stands, bent or not."""

    async def thoughts_left(
        self, tenant_id: str, after: int, limit: int, session_id: str | None = None
    ) -> list[Left]:
        """Of events after that number, in their order; of one session when it is named."""

    async def told_of(self, tenant_id: str, session_id: str) -> Told:
        """By the trail alone, whatever the rows say: its start, records, seal and end."""

    async def sealed_before(self, tenant_id: str, session_id: str) -> int | None:
        """The number of the closing reflection of a sealed session: what came later is not under its seal.
        None too where an agent took the name of a session of others before it began."""

    async def thought_sessions_page(self, tenant_id: str, before: int | None, limit: int) -> list[Row]:
        """Thought sessions, the last started first; `before` is the number of the start event of the last
        one of the page before."""

    async def sealed_among(self, tenant_id: str, session_ids: Collection[str]) -> set[str]:
        """Those of these sessions whose thoughts are sealed."""

    async def records_known(self, tenant_id: str, record_ids: Collection[str]) -> set[str]:
        """Those of these ids that name a record."""

    async def task_home(self, tenant_id: str, task_id: str, opened_by: str) -> str | None:
        """The session in which somebody opened a task of that name last; None when nowhere."""

    async def merkle_nodes(
        self, tenant_id: str, session_id: str, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], bytes]:
        """Nodes of a sealed session's tree by (level, index); what is not there is left out."""
