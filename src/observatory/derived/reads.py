"""The derived store: the reads of every topic over either database, and its DDL.

There are no migrations: a mark identifies the version of the tables; when it differs, they are dropped,
created again and folded from the archive. A topic adds its mixin to the bases of `DerivedReads`, and DDL
beyond plain tables (virtual tables, extensions, triggers) to `EXTRAS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from typing import TypeVar, cast

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from observatory.derived.hints import hints
from observatory.derived.steps import StepReads
from observatory.derived.tables import DERIVED, DERIVED_VERSION
from observatory.store import search_postgres, search_sqlite

T = TypeVar("T")


def word_index(dialect: str) -> Sequence[str]:
    return search_sqlite.DDL if dialect == "sqlite" else search_postgres.DDL


# Each gives the statements of its topic for a dialect (`sqlite`, `postgresql`), run after the tables' own.
EXTRAS: tuple[Callable[[str], Sequence[str]], ...] = (word_index, hints)


class DerivedReads(StepReads):
    """The derived store over any database that can `fetch`; features add their reads (`stores.py`)."""

    def queries(self, kind: type[T]) -> T:
        """This store as the reads of one feature, which every opened store has."""
        return cast(T, self)


@cache
def ddl(dialect: str) -> tuple[str, ...]:
    """Every statement that creates the derived store, except the table of the mark."""
    dialect_compiler = sqlite.dialect() if dialect == "sqlite" else postgresql.dialect()  # type: ignore[no-untyped-call]
    statements: list[str] = []
    for table in DERIVED.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect_compiler)))
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        statements += [str(CreateIndex(index).compile(dialect=dialect_compiler)) for index in indexes]
    for extra in EXTRAS:
        statements += extra(dialect)
    return tuple(statements)


@cache
def mark(dialect: str) -> str:
    """Identifies the tables: the version and a digest of the DDL, so that no change is missed."""
    digest = sha256("\n".join(ddl(dialect)).encode()).hexdigest()
    return f"{DERIVED_VERSION}-{digest[:16]}"
