"""The derived store: every topic's reads over whichever database, and its DDL.

There are no migrations: a mark says which tables these are; where it differs, everything is made anew and
folded from the archive again. A topic adds its mixin to the bases of `DerivedReads`, and what the tables
alone cannot say (virtual tables, extensions, triggers) to `EXTRAS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from observatory.features.alerting.queries_tray import AlertReads
from observatory.features.annotations.queries import ReviewReads
from observatory.features.cascade.queries import CascadeReads
from observatory.features.costs.queries import CostReads
from observatory.features.facts.queries import FactsInStore
from observatory.features.fleet.queries_traffic import TrafficReads
from observatory.features.graph.queries_causes import CauseReads
from observatory.features.graph.queries_spread import SpreadReads
from observatory.features.search.queries import SearchReads, extra_ddl
from observatory.features.sessions.queries_lines import LineReads
from observatory.store.derived_hints import hints
from observatory.store.derived_tables import DERIVED, DERIVED_VERSION

# Each gives the statements of its topic for a dialect (`sqlite`, `postgresql`), run after the tables' own.
EXTRAS: tuple[Callable[[str], Sequence[str]], ...] = (extra_ddl, hints)


class DerivedReads(
    TrafficReads,
    CostReads,
    FactsInStore,
    ReviewReads,
    SearchReads,
    CauseReads,
    CascadeReads,
    SpreadReads,
    LineReads,
    AlertReads,
):
    """All reads, over any database that can `fetch`."""


@cache
def ddl(dialect: str) -> tuple[str, ...]:
    """Every statement that makes the derived store, the mark's own table aside."""
    words = sqlite.dialect() if dialect == "sqlite" else postgresql.dialect()  # type: ignore[no-untyped-call]
    made: list[str] = []
    for table in DERIVED.sorted_tables:
        made.append(str(CreateTable(table).compile(dialect=words)))
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        made += [str(CreateIndex(index).compile(dialect=words)) for index in indexes]
    for extra in EXTRAS:
        made += extra(dialect)
    return tuple(made)


@cache
def mark(dialect: str) -> str:
    """Which tables these are: the version, and a digest of the DDL, so that no change is forgotten."""
    digest = sha256("\n".join(ddl(dialect)).encode()).hexdigest()
    return f"{DERIVED_VERSION}-{digest[:16]}"
