"""What the planners must know of the derived store: how many rows share a value of each key.

Without such figures a tenant is taken for ten rows (SQLite) or for a two-hundredth of a table (PostgreSQL),
and all of it is walked rather than an index used: a step's children among 100,000 took minutes. They come
with the empty tables, so that plans never depend on when somebody ran ANALYZE. PostgreSQL replaces them by
its own once it has looked at the rows, a minute or more after the first ones.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Float, LargeBinary, Table

from observatory.store.derived_tables import DERIVED, documents

ROWS: Final = 1_000_000
LIKE: Final = 20  # rows that share the second column of an index
TENANTS: Final = 4  # a tenant is no small part of a table
SAMPLE: Final = 400


def hints(dialect: str) -> list[str]:
    return _sqlite() if dialect == "sqlite" else _postgres()


def _sqlite() -> list[str]:
    made = ["ANALYZE", "DELETE FROM sqlite_stat1"]  # the first one makes the table
    for table in DERIVED.sorted_tables:
        key = len(table.primary_key.columns)
        indexes = [(str(index.name), len(index.columns), False) for index in table.indexes]
        if not table.dialect_options["sqlite"]["with_rowid"]:
            indexes.append((table.name, key, True))
        for name, columns, unique in sorted(indexes):
            likely = [ROWS, ROWS, *[LIKE] * (columns - 1)]
            if unique:
                likely[-1] = ROWS if key == 1 else 1
            figures = " ".join(map(str, likely))
            made.append(f"INSERT INTO sqlite_stat1 VALUES ('{table.name}', '{name}', '{figures}')")
    return made


def _postgres() -> list[str]:
    """What ANALYZE finds in a sample stays when that goes. Documents are asked for by their key only."""
    made: list[str] = []
    for table in DERIVED.sorted_tables:
        if table is documents:
            continue
        name, tenant = table.name, f"ALTER TABLE {table.name} ALTER COLUMN tenant_id"
        made += [
            f"INSERT INTO {name} SELECT {_sample(table)} FROM generate_series(1, {SAMPLE}) AS g (n)",
            f"{tenant} SET (n_distinct = {TENANTS})",
            f"ANALYZE {name}",
            f"{tenant} RESET (n_distinct)",
            f"TRUNCATE {name}",
        ]
    return made


def _sample(table: Table) -> str:
    """No tenant twice: one that is seen often would make every other one rare."""
    last = list(table.primary_key.columns)[-1]
    values = []
    for column in table.columns:
        value = "n" if column is last or column.name == "tenant_id" else f"n / {LIKE}"
        if isinstance(column.type, LargeBinary):
            value = f"decode(md5(({value})::text), 'hex')"
        elif not isinstance(column.type, BigInteger | Float):
            value = f"({value})::text"
        values.append(value)
    return ", ".join(values)
