"""A list as one value of a statement: `json_each` on SQLite, an array on PostgreSQL.

Law: no statement of this package has one placeholder per value of a list. Otherwise every length would be a
separate statement: SQLAlchemy caches it compiled, every connection caches it prepared, and a gateway with
batches of different sizes grew to more than a gigabyte. Rule S1200.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    ColumnElement,
    Dialect,
    Double,
    Float,
    FromClause,
    Integer,
    Text,
    and_,
    select,
)
from sqlalchemy import bindparam as place
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import BindParameter
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import in_op
from sqlalchemy.types import TypeDecorator, TypeEngine

from observatory.store import tables
from observatory.store.fetches import TENANT

MAX_PADDED = 1 << 14  # SQLite binds 32,766 values
ROWS = (400, 200, 100, 64, 32, 16)  # rows per INSERT; below the last any number


class _List(TypeDecorator[list[Any]]):
    """Values of one type: bound as JSON text, or as an array where the database supports them."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[TypeEngine[Any]]) -> None:
        super().__init__()
        self.kind = kind

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(ARRAY(self.kind))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: list[Any] | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return msgspec.json.encode(value).decode()


class _Member(FunctionElement[bool]):
    """(column, list) or, with the base every value of the list is packed into, (column, list, base)."""

    inherit_cache = True
    type = Boolean()


@compiles(_Member, "sqlite")
def _member_sqlite(element: Any, compiler: Any, **options: Any) -> str:
    column, values, *base = (compiler.process(one, **options) for one in element.clauses)
    packed = f"{base[0]} | json_each.value" if base else "json_each.value"
    return f"({column} IN (SELECT {packed} FROM json_each({values})))"


@compiles(_Member, "postgresql")
def _member_postgres(element: Any, compiler: Any, **options: Any) -> str:
    column, values = (compiler.process(one, **options) for one in element.clauses)
    return f"({column} = ANY ({values}))"


def any_of(column: ColumnElement[Any], values: Iterable[Any]) -> ColumnElement[bool]:
    """Whether the column is among these. One statement, however many there are."""
    listed = list(values)
    return _member(column, place(None, listed, _List(_kind(column, listed)), unique=True))


def any_named(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """The same for a prebuilt statement: the list is passed to `fetch` by this name."""
    return _member(column, place(name, type_=_List(_kind(column, ()))))


def any_packed(column: ColumnElement[Any], base: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """SQLite's packed key (ADR-024): the base combined with each value of the list of this name."""
    return _member(column, place(name, type_=_List(BigInteger)), base)


def padded(values: Iterable[Any]) -> list[Any]:
    """For statements passed to the driver as text: repeats the last value up to a power of two.

    So there are twenty variants of a statement and not a thousand. Longer lists are not padded.
    """
    listed = list(values)
    size = 1 << max(0, len(listed) - 1).bit_length()
    return listed + listed[-1:] * (size - len(listed)) if size <= MAX_PADDED else listed


def portioned(rows: int) -> Iterator[int]:
    """The row counts of the statements that write `rows` rows: a few fixed sizes instead of any.

    Few statements, because the driver releases the interpreter lock several times in each and must reacquire
    it.
    """
    while rows:
        size = next((size for size in ROWS if size <= rows), rows)
        yield size
        rows -= size


def _member(column: ColumnElement[Any], values: BindParameter[Any], *base: Any) -> ColumnElement[bool]:
    member: ColumnElement[bool] = _Member(column.self_group(in_op), values, *base)
    return member


def _kind(column: ColumnElement[Any], values: Iterable[Any]) -> type[TypeEngine[Any]]:
    """The type of the column, or of the values where it is unknown."""
    if isinstance(column.type, Float):
        return Double
    if isinstance(column.type, Integer) or any(isinstance(value, int) for value in values):
        return BigInteger
    return Text


def among_numbers(table: FromClause) -> ColumnElement[bool]:
    """The rows of a big table whose numbers are passed to `fetch` as `numbers`."""
    if "key" in table.c:
        return any_packed(table.c.key, tenant_base(), "numbers")
    return and_(table.c.tenant_id == TENANT, any_named(table.c.sequence_number, "numbers"))


def tenant_base() -> ColumnElement[Any]:
    """The prefix of the tenant's keys on SQLite (ADR-024)."""
    heads = tables.chain_heads.c
    return select(heads.tenant_no).where(heads.tenant_id == TENANT).scalar_subquery().op("<<")(40)
