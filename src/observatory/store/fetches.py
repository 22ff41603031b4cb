"""The one thing a database adapter must give to whoever composes queries for both databases.

Composing a statement costs as much as its answer, or more. What is asked all the time is composed once, with
places (`TENANT`, `LOW`…) for what differs, and the values are given to `fetch`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import BigInteger, Engine, Executable, Integer, Text, bindparam

T = TypeVar("T")
TENANT = bindparam("tenant", type_=Text)
LOW, HIGH = bindparam("low", type_=BigInteger), bindparam("high", type_=BigInteger)
LIMIT = bindparam("most", type_=Integer)
MOST = 500  # values of one IN list


def portions(values: Iterable[T], most: int = MOST) -> Iterator[list[T]]:
    """So many as one statement may name."""
    left = iter(values)
    while some := list(islice(left, most)):
        yield some


class Fetches(ABC):
    @abstractmethod
    async def fetch(
        self, tenant_id: str, statement: Executable, presented: str = "", **values: Any
    ) -> list[Any]:
        """Committed rows, seen as this tenant; `presented` is the key or token of who is not known yet.

        `values` are for a statement that is composed once and kept. NotDurable when nothing can be read.
        """

    async def fetch_plain(self, tenant_id: str, statement: Executable) -> list[Any]:
        """The same as the driver gives it, values by their place only: for very many rows."""
        return await self.fetch(tenant_id, statement)

    async def fetch_each(
        self, tenant_id: str, statements: Iterable[Executable], **values: Any
    ) -> list[list[Any]]:
        """The rows of each, as plain; the same values are for all of them, whoever has a place for one."""
        return [await self.fetch(tenant_id, statement, **values) for statement in statements]


class PooledFetches(Fetches):
    """By connections of a pool, in threads: a file that any of them may read as any tenant."""

    _engine: Engine

    @abstractmethod
    async def _reading(self, run: Callable[[], list[Any]]) -> list[Any]:
        """In a thread for readers; NotDurable when nothing can be read."""

    async def fetch(
        self, tenant_id: str, statement: Executable, presented: str = "", **values: Any
    ) -> list[Any]:
        def run() -> list[Any]:
            with self._engine.connect() as connection:
                return list(connection.execute(statement, values).all())

        return await self._reading(run)

    async def fetch_plain(self, tenant_id: str, statement: Executable) -> list[Any]:
        return (await self.fetch_each(tenant_id, (statement,)))[0]

    async def fetch_each(
        self, tenant_id: str, statements: Iterable[Executable], **values: Any
    ) -> list[list[Any]]:
        def run() -> list[list[Any]]:  # one way to the reader and back for all of them
            with self._engine.connect() as connection:
                return [list(connection.execute(one, values).cursor.fetchall()) for one in statements]

        return await self._reading(run)
