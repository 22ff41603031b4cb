"""Turns puts into statements of the derived store: the shared part, and the SQL of each database.

SQL is built once per table and set of columns. Rows for the same key within one batch are merged before they
reach PostgreSQL, whose upsert refuses to change a row twice: the last one replaces, sums are added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import BigInteger, Float, LargeBinary

from observatory.derived.seen import DerivedWrite, Finding
from observatory.derived.tables import DERIVED

Row = tuple[Any, ...]
TYPES = {BigInteger: "bigint", Float: "float8", LargeBinary: "bytea"}
# Maximum findings per number; the last one has the count of those beyond it. Their ids are in the record
# (S189):
# never change this, or a rebuilt store would report everything again.
PER_SEQ = 16


class Upsert(NamedTuple):
    """Rows of one table, without their tenant, in the order of `columns`."""

    table: str
    columns: tuple[str, ...]
    mode: str
    rows: list[Row]


class Writes(NamedTuple):
    clears: dict[str, list[int]]
    upserts: list[Upsert]  # "replace" before "add"


def writes_of(puts: Iterable[DerivedWrite], findings: Sequence[Finding], after: int, until: int) -> Writes:
    clears: dict[str, list[int]] = {}
    found: dict[tuple[str, tuple[str, ...], str], list[Row]] = {}
    for put in puts:
        if put.clear:
            clears.setdefault(put.table, []).extend(put.clear)
        if not put.rows:
            continue
        columns = tuple(put.rows[0])
        rows = found.setdefault((put.table, columns, put.mode), [])
        if len(columns) == 1:
            rows += [(row[columns[0]],) for row in put.rows]
        else:
            rows += map(itemgetter(*columns), put.rows)
    if findings:
        rows = finding_rows(findings, after, until)
        found["insight_findings", FINDING, "replace"] = rows
    upserts = [Upsert(*key, rows) for key, rows in found.items()]
    upserts.sort(key=lambda one: one.mode == "add")
    return Writes(clears, upserts)


FINDING = ("finding_id", "kind", "seq", "session_id", "agent_id", "at_ns", "body")


def finding_rows(findings: Sequence[Finding], after: int, until: int) -> list[Row]:
    """Rows of findings. A finding has a number of the batch that found it, so numbers only grow."""
    counted: dict[int, int] = {}
    rows: list[Row] = []
    numbers = [one.seq if after < one.seq <= until else until for one in findings]
    total = Counter(numbers)
    for one, number in zip(findings, numbers, strict=True):
        place = counted[number] = counted.get(number, -1) + 1
        if place < PER_SEQ:
            more = total[number] - PER_SEQ if place == PER_SEQ - 1 else 0
            finding_body = one.body | {"more_findings": more} if more > 0 else one.body
            body = msgspec.json.encode(finding_body).decode()
            rows.append(
                (number * PER_SEQ + place, one.kind, one.seq, one.session_id, one.agent_id, one.at_ns, body)
            )
    return rows


@cache
def keys_of(table: str) -> tuple[str, ...]:
    """The table's key without the tenant."""
    return tuple(column.name for column in DERIVED.tables[table].primary_key.columns)[1:]


def once_each(one: Upsert) -> list[Row]:
    """Merge rows with the same key: the last one for "replace", the sum for "add"."""
    at = [one.columns.index(name) for name in keys_of(one.table)]
    sums = [place for place in range(len(one.columns)) if place not in at]
    found: dict[Row, Row] = {}
    for row in one.rows:
        key = tuple(row[place] for place in at)
        before = found.get(key) if one.mode == "add" else None
        if before is not None:
            row = tuple(row[i] + before[i] if i in sums else row[i] for i in range(len(row)))
        found[key] = row
    return list(found.values())


@cache
def conflict_sql(table: str, columns: tuple[str, ...], mode: str) -> str:
    keys = keys_of(table)
    missing = set(keys) - set(columns)
    if missing:
        raise ValueError(f"rows for {table} lack {', '.join(sorted(missing))}")
    others = [name for name in columns if name not in keys]
    if mode == "add":
        sets = [f"{name} = {table}.{name} + excluded.{name}" for name in others]
    else:
        sets = [f"{name} = excluded.{name}" for name in others]
    do = f"UPDATE SET {', '.join(sets)}" if sets else "NOTHING"
    return f"ON CONFLICT (tenant_id, {', '.join(keys)}) DO {do}"


@cache
def sqlite_sql(table: str, columns: tuple[str, ...], mode: str) -> str:
    """Inserts one row; the tenant is the first value."""
    marks = ", ".join("?" * (1 + len(columns)))
    names = ", ".join(("tenant_id", *columns))
    return f"INSERT INTO {table} ({names}) VALUES ({marks}) {conflict_sql(table, columns, mode)}"


@cache
def postgres_sql(table: str, columns: tuple[str, ...], mode: str) -> str:
    """Inserts all rows: the tenant, then each column as an array."""
    kinds = DERIVED.tables[table].columns
    types = [TYPES.get(type(kinds[name].type), "text") for name in columns]
    arrays = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(types, 2))
    names = ", ".join(("tenant_id", *columns))
    conflict = conflict_sql(table, columns, mode)
    return f"INSERT INTO {table} ({names}) SELECT $1, * FROM unnest({arrays}) {conflict}"
