"""The one thing a database adapter must give to whoever composes queries for both databases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Executable

T = TypeVar("T")
MOST = 500  # values of one IN list


def portions(values: Iterable[T], most: int = MOST) -> Iterator[list[T]]:
    """So many as one statement may name."""
    left = iter(values)
    while some := list(islice(left, most)):
        yield some


class Fetches(ABC):
    @abstractmethod
    async def fetch(self, tenant_id: str, statement: Executable, presented: str = "") -> list[Any]:
        """Committed rows, seen as this tenant; `presented` is the key or token of who is not known yet.

        NotDurable when nothing can be read.
        """

    async def fetch_plain(self, tenant_id: str, statement: Executable) -> list[Any]:
        """The same as the driver gives it, values by their place only: for very many rows."""
        return await self.fetch(tenant_id, statement)
