"""The one thing a database adapter must give to whoever composes queries for both databases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sqlalchemy import Executable


class Fetches(ABC):
    @abstractmethod
    async def fetch(self, tenant_id: str, statement: Executable, presented: str = "") -> list[Any]:
        """Committed rows, seen as this tenant; `presented` is the key or token of who is not known yet.

        NotDurable when nothing can be read.
        """

    async def fetch_plain(self, tenant_id: str, statement: Executable) -> list[Any]:
        """The same as the driver gives it, values by their place only: for very many rows."""
        return await self.fetch(tenant_id, statement)
