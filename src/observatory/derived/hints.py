"""Statistics for the query planners of the derived store: how many rows share a value of each key.

Without them the planners assume ten rows per tenant (SQLite) or 1/200 of a table (PostgreSQL), and scan all
of them instead of using an index: a step's children among 100,000 took minutes. They are created with the
empty tables, so that plans never depend on when ANALYZE was run. PostgreSQL replaces them with its own once
it has analysed the rows, a minute or more after the first ones.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Float, LargeBinary, Table

from observatory.derived.tables import DERIVED, documents

ROWS: Final = 1_000_000
LIKE: Final = 20  # rows that share the second column of an index
TENANTS: Final = 4  # assume that a tenant is a large part of a table
SAMPLE: Final = 400


def hints(dialect: str) -> list[str]:
    return _sqlite() if dialect == "sqlite" else _postgres()


def _sqlite() -> list[str]:
    statements = ["ANALYZE", "DELETE FROM sqlite_stat1"]  # the first one makes the table
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
            statements.append(f"INSERT INTO sqlite_stat1 VALUES ('{table.name}', '{name}', '{figures}')")
    return statements


def _postgres() -> list[str]:
    """The statistics of a sample remain after it is truncated. Documents are read by their key only."""
    statements: list[str] = []
    for table in DERIVED.sorted_tables:
        if table is documents:
            continue
        name, tenant = table.name, f"ALTER TABLE {table.name} ALTER COLUMN tenant_id"
        statements += [
            f"INSERT INTO {name} SELECT {_sample(table)} FROM generate_series(1, {SAMPLE}) AS g (n)",
            f"{tenant} SET (n_distinct = {TENANTS})",
            f"ANALYZE {name}",
            f"{tenant} RESET (n_distinct)",
            f"TRUNCATE {name}",
        ]
    return statements


def _sample(table: Table) -> str:
    """Each tenant once: a frequent one would make all others look rare."""
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
