"""Store protocol of the decision trail, and its row types."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from observatory.ledger.thoughts import Thought, ThoughtHashes

Row = dict[str, Any]


class StoredThought(msgspec.Struct, frozen=True):
    """A record exactly as stored; `event` is the audit event of its number, None when there is none."""

    thought: Thought
    hashes: ThoughtHashes
    sequence_number: int
    audit_event_id: str
    event: bytes | None
    shredded_by: int | None = None  # the event that ordered its content shredded


class UnshreddedThought(NamedTuple):
    """A thought that still has its content."""

    sequence_number: int
    session_id: str
    record_id: str
    created_at: str


class ThoughtEvents(NamedTuple):
    """The audit events of a thought session: how many, and the last two, newest first."""

    events: int
    last: list[bytes]


@runtime_checkable
class Thoughts(Protocol):
    """Committed rows of the one tenant named."""

    async def thoughts(self, tenant_id: str, session_id: str, start: int, limit: int) -> list[StoredThought]:
        """Records of a session from an index on, in order of their index."""

    async def thought_session(self, tenant_id: str, session_id: str) -> Row | None:
        """A session's row exactly as stored, valid or not."""

    async def thoughts_left(
        self, tenant_id: str, after: int, limit: int, session_id: str | None = None
    ) -> list[UnshreddedThought]:
        """Thoughts with content whose event is after that number, in order; of one session if given."""

    async def events_of_session(self, tenant_id: str, session_id: str) -> ThoughtEvents:
        """From the audit events alone, not the rows: its start, records, seal and end."""

    async def sealed_before(self, tenant_id: str, session_id: str) -> int | None:
        """The number of the closing reflection of a sealed session: later records are not under its seal.
        None too if an agent took the name of others' session before that session began."""

    async def thought_sessions_page(self, tenant_id: str, before: int | None, limit: int) -> list[Row]:
        """Thought sessions, most recently started first; `before` is the number of the start event of the
        previous page's last one."""

    async def sealed_among(self, tenant_id: str, session_ids: Collection[str]) -> set[str]:
        """Those of these sessions whose thoughts are sealed."""

    async def records_known(self, tenant_id: str, record_ids: Collection[str]) -> set[str]:
        """Those of these ids that name a record."""

    async def task_home(self, tenant_id: str, task_id: str, opened_by: str) -> str | None:
        """The session in which `opened_by` last opened a task of that name; None when there is none."""

    async def merkle_nodes(
        self, tenant_id: str, session_id: str, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], bytes]:
        """Nodes of a sealed session's tree by (level, index); missing ones are left out."""
