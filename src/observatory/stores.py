"""The record and the derived store: an engine, with the queries of every feature mixed in."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, cast

from observatory.derived.reads import DerivedReads
from observatory.derived.seen import Fold
from observatory.derived.sqlite import SqliteDerived
from observatory.features import parts
from observatory.pipeline.ports import RecordReads
from observatory.store.sqlite import SqliteStore


@cache
def with_queries(engine: type[Any], name: str) -> type[Any]:
    """The engine's class and the queries of all features: `RECORD_QUERIES` or `DERIVED_QUERIES`."""
    queries = [kind for part in parts("queries") for kind in getattr(part, name, ())]
    return type(engine.__name__, (engine, *queries), {"__module__": engine.__module__})


def sqlite_record(path: Path) -> Any:
    return with_queries(SqliteStore, "RECORD_QUERIES")(path)


def postgres_record(url: str, **more: Any) -> Any:
    from observatory.store.postgres import PostgresStore

    return with_queries(PostgresStore, "RECORD_QUERIES")(url, **more)


def sqlite_derived(path: Path, *more: Any) -> SqliteDerived:
    return cast(SqliteDerived, with_queries(SqliteDerived, "DERIVED_QUERIES")(path, *more))


def postgres_derived(store: Any, url: str) -> Any:
    from observatory.derived.postgres import PostgresDerived

    return with_queries(PostgresDerived, "DERIVED_QUERIES")(store, url)


def all_folds(derived: DerivedReads, past: RecordReads) -> list[Fold]:
    """Each is handed committed messages and returns rows.

    Law: a fold keeps only what it can read again, in bounded memory, and `forget` drops all of it: after a
    failure, and when another analyst has moved a cursor. What it reads of the derived store is as of the
    batch's `after`.
    """
    return [fold for part in parts("fold") for fold in part.folds(derived, past)]
