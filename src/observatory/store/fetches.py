"""The one thing a database adapter must give to whoever composes queries for both databases.

Composing a statement costs as much as its answer, or more. What is asked all the time is composed once, with
places (`TENANT`, `LOW`…) for what differs, and the values are given to `fetch`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import BigInteger, Engine, Executable, Integer, Text, bindparam

from observatory.store.short_reads import ShortReads

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
    """By connections of a pool, in threads: a file that any of them may read as any tenant.

    What is answered at once is asked without a thread (`short_reads.py`).
    """

    _engine: Engine
    _short: ShortReads

    def reads(self) -> dict[str, int]:
        """Queries so far, by where they were asked."""
        return {"loop": self._short.on_loop, "thread": self._short.in_threads}

    @abstractmethod
    async def _reading(self, run: Callable[[], list[Any]]) -> list[Any]:
        """In a thread for readers; NotDurable when nothing can be read."""

    async def fetch(
        self, tenant_id: str, statement: Executable, presented: str = "", **values: Any
    ) -> list[Any]:
        if (found := self._short.fetch(statement, values)) is not None:
            return found
        took = 0.0

        def run() -> list[Any]:
            nonlocal took
            with self._engine.connect() as connection:
                began = time.perf_counter()
                rows = list(connection.execute(statement, values).all())
                took = time.perf_counter() - began
                return rows

        found = await self._reading(run)
        self._short.took(statement, took)
        return found

    async def fetch_plain(self, tenant_id: str, statement: Executable) -> list[Any]:
        return (await self.fetch_each(tenant_id, (statement,)))[0]

    async def fetch_each(
        self, tenant_id: str, statements: Iterable[Executable], **values: Any
    ) -> list[list[Any]]:
        asked = list(statements)
        if (found := self._short.fetch_each(asked, values)) is not None:
            return found
        took: list[float] = []

        def run() -> list[list[Any]]:  # one way to the reader and back for all of them
            rows = []
            with self._engine.connect() as connection:
                for one in asked:
                    began = time.perf_counter()
                    rows.append(list(connection.execute(one, values).cursor.fetchall()))
                    took.append(time.perf_counter() - began)
            return rows

        found = await self._reading(run)
        for one, seconds in zip(asked, took, strict=True):
            self._short.took(one, seconds)
        return found
