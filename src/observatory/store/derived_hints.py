"""What SQLite's planner must know of the derived store: how many rows share a value of each key.

Without such figures it takes a tenant for ten rows and walks all of it rather than use an index (a step's
children among 100,000 took minutes). They are written with the empty tables, so that plans never depend on
when somebody ran ANALYZE. PostgreSQL keeps its own.
"""

from __future__ import annotations

from typing import Final

from observatory.store.derived_tables import DERIVED

ROWS: Final = 1_000_000
LIKE: Final = 20  # rows that share the second column of an index


def hints(dialect: str) -> list[str]:
    if dialect != "sqlite":
        return []
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
