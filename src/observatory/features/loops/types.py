"""What the loop fold asks of the record: the last messages of a session or of an agent in it, and a knob."""

from __future__ import annotations

from typing import Any, Protocol

from observatory.pipeline.ports import MessageFilter, StoredMessage


class Past(Protocol):
    """Committed rows of one tenant; the store's own reads serve. NotDurable when nothing can be read."""

    async def messages(
        self, tenant_id: str, where: MessageFilter, limit: int, newest_first: bool
    ) -> list[StoredMessage]: ...

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]: ...
