"""One real PostgreSQL per test session, from a wheel, in a temporary folder; a fresh database per test.

Works as root (the wheel then runs the server as a user of its own) and as an ordinary user.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from bench.postgres import running

_numbers = itertools.count(1)


def _name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


class Server:
    def __init__(self, uri: str) -> None:
        self._uri = uri

    def url(self, database: str) -> str:
        return self._uri.replace("/postgres?", f"/{database}?")

    def fresh(self, template: str | None = None, owner: str = "postgres") -> str:
        """The URL of a new database: empty, or a copy of the one at `template`."""
        name = f"observatory_{next(_numbers)}"
        source = _name(template) if template else "template1"
        # Copied as files and not page by page through the log: half the work, and half that of the drop.
        self.run("postgres", f"CREATE DATABASE {name} OWNER {owner} TEMPLATE {source} STRATEGY file_copy")
        return self.url(name)

    def drop(self, url: str) -> None:
        self.run("postgres", f"DROP DATABASE IF EXISTS {_name(url)} WITH (FORCE)")

    def run(self, database: str, sql: str) -> None:
        execute(self.url(database), sql)


@contextmanager
def server() -> Iterator[Server]:
    with running(in_memory=True) as url:
        yield Server(url)


async def _ask(
    url: str, sql: str, values: tuple[Any, ...], role: str | None, tenant: str | None
) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        if not values and role is None and tenant is None:
            await connection.execute(sql)
            return []
        async with connection.transaction():
            if role is not None:
                await connection.execute(f"SET LOCAL ROLE {role}")
            if tenant is not None:
                await connection.execute(
                    "SELECT set_config('app.tenant', $1, true), set_config('app.presented', '', true)", tenant
                )
            return [tuple(row) for row in await connection.fetch(sql, *values)]
    finally:
        await connection.close()


def execute(url: str, sql: str) -> None:
    """As the URL's role, outside any transaction."""
    asyncio.run(_ask(url, sql, (), None, None))


def ask(url: str, sql: str, *values: Any, tenant: str | None = "", role: str | None = None) -> list[Any]:
    """Rows, in one transaction, in a tenant's name and, if given, a role's."""
    return asyncio.run(_ask(url, sql, values, role, tenant))
