"""The interface for reading from either database with SQLAlchemy statements: `fetch`.

Building a statement costs as much as executing it, or more. Frequent statements are built once, with
parameters (`TENANT`, `LOW`…) for what differs, and the values are passed to `fetch`.
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
MAX_IN_VALUES = 500  # values of one IN list


def portions(values: Iterable[T], most: int = MAX_IN_VALUES) -> Iterator[list[T]]:
    """Split values into lists of at most `most`, the limit of one statement."""
    remaining = iter(values)
    while portion := list(islice(remaining, most)):
        yield portion


class Fetches(ABC):
    @abstractmethod
    async def fetch(
        self, tenant_id: str, statement: Executable, presented: str = "", **values: Any
    ) -> list[Any]:
        """Committed rows as this tenant sees them; `presented` is the key or token of a caller not yet
        identified.

        `values` are the parameters of a prebuilt statement. Raises NotDurable when nothing can be read.
        """

    async def fetch_plain(self, tenant_id: str, statement: Executable) -> list[Any]:
        """The same as plain tuples of the driver: for very many rows."""
        return await self.fetch(tenant_id, statement)

    async def fetch_each(
        self, tenant_id: str, statements: Iterable[Executable], **values: Any
    ) -> list[list[Any]]:
        """The rows of each statement, as plain tuples; all statements share the same parameter values."""
        return [await self.fetch(tenant_id, statement, **values) for statement in statements]


class PooledFetches(Fetches):
    """Reads with pooled connections in threads: for a file, which has no access control per tenant.

    Fast statements are executed without a thread (`short_reads.py`).
    """

    _engine: Engine
    _short: ShortReads

    def reads(self) -> dict[str, int]:
        """Number of queries so far, by where they were executed."""
        return {"loop": self._short.on_loop, "thread": self._short.in_threads}

    @abstractmethod
    async def _reading(self, run: Callable[[], list[Any]]) -> list[Any]:
        """Run in a reader thread; NotDurable when nothing can be read."""

    async def fetch(
        self, tenant_id: str, statement: Executable, presented: str = "", **values: Any
    ) -> list[Any]:
        if (rows_read := self._short.fetch(statement, values)) is not None:
            return rows_read
        took = 0.0

        def run() -> list[Any]:
            nonlocal took
            with self._engine.connect() as connection:
                began = time.perf_counter()
                rows = list(connection.execute(statement, values).all())
                took = time.perf_counter() - began
                return rows

        rows_read = await self._reading(run)
        self._short.took(statement, took)
        return rows_read

    async def fetch_plain(self, tenant_id: str, statement: Executable) -> list[Any]:
        return (await self.fetch_each(tenant_id, (statement,)))[0]

    async def fetch_each(
        self, tenant_id: str, statements: Iterable[Executable], **values: Any
    ) -> list[list[Any]]:
        asked = list(statements)
        if (rows_read := self._short.fetch_each(asked, values)) is not None:
            return rows_read
        took: list[float] = []

        def run() -> list[list[Any]]:  # one round trip to the reader thread for all of them
            rows = []
            with self._engine.connect() as connection:
                for one in asked:
                    began = time.perf_counter()
                    rows.append(list(connection.execute(one, values).cursor.fetchall()))
                    took.append(time.perf_counter() - began)
            return rows

        rows_read = await self._reading(run)
        for one, seconds in zip(asked, took, strict=True):
            self._short.took(one, seconds)
        return rows_read
