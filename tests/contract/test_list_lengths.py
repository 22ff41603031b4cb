"""A question is one statement, however long the lists in it: over both databases, and for what is written."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from sqlalchemy import Executable, event

from observatory.derived.sqlite import SqliteDerived
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.identity import agent_entity_id
from observatory.store import sqlite_append
from observatory.store.lists import padded, portioned
from observatory.store.postgres import PostgresStore
from observatory.store.row_mapping import write_sql
from observatory.store.sqlite import SqliteStore
from tests.contract.analysis import Analyst
from tests.contract.conftest import Harness
from tests.samples import decision_log

LENGTHS = (*range(1, 40), 60, 120, 250, 499)
T = HOME_TENANT
Asked = Callable[[Any, list[int]], Coroutine[Any, Any, Any]]


def words(numbers: list[int]) -> list[str]:
    return [f"w{number}" for number in numbers]


RECORD: dict[str, Asked] = {
    "rows": lambda s, n: s.rows(T, "agents", entity_id=words(n)),
    "deliveries": lambda s, n: s.deliveries(T, [(one, 1) for one in n], True),
    "deliveries of many": lambda s, n: s.deliveries(T, [(one, one) for one in n], True),
    "contents": lambda s, n: s.contents(T, n),
    "ended": lambda s, n: s.ended(T, n),
    "steps_named": lambda s, n: s.steps_named(T, words(n)),
    "steps_recorded": lambda s, n: s.steps_recorded(T, words(n)),
    "records": lambda s, n: s.records(T, n),
    "played": lambda s, n: s.played(T, n),
    "sealed_among": lambda s, n: s.sealed_among(T, words(n)),
    "records_known": lambda s, n: s.records_known(T, words(n)),
    "merkle_nodes": lambda s, n: s.merkle_nodes(T, "ses-1", [(one % 7, one) for one in n]),
    "acknowledged": lambda s, n: s.acknowledged(T, n),
    "runs_counted": lambda s, n: s.runs_counted(T, words(n), 0, 10, 1),
    "spoken_in": lambda s, n: s.spoken_in(T, n, 0),
    "events of senders": lambda s, n: s.events(T, EventFilter(senders=tuple(words(n))), 5, False),
}
DERIVED: dict[str, Asked] = {
    "placed": lambda d, n: d.placed(T, n),
    "spanned": lambda d, n: d.spanned(T, n),
    "waiting_for": lambda d, n: d.waiting_for(T, n),
    "waiting_for_spans": lambda d, n: d.waiting_for_spans(T, n),
    "cells": lambda d, n: d.cells(T, "agent", n, 0, 10),
    "session_lines": lambda d, n: d.session_lines(T, n),
    "totals": lambda d, n: d.totals(T, [1], n),
    "totals of sessions": lambda d, n: d.totals(T, n, [1]),
    "costs_of": lambda d, n: d.costs_of(T, n),
    "facts_by_id": lambda d, n: d.facts_by_id(T, n),
    "facts_within": lambda d, n: d.facts_within(T, "session", n, 10),
    "uses_of": lambda d, n: d.uses_of(T, n),
    "faces": lambda d, n: d.faces(T, n),
    "spots": lambda d, n: d.spots(T, numbers=n, keys=n),
    "upstream": lambda d, n: d.upstream(T, n, 100, 10),
    "taken_from": lambda d, n: d.taken_from(T, n, 0),
    "troubles": lambda d, n: d.troubles(T, n, 0, 10),
    "awaited": lambda d, n: d.awaited(T, n),
    "alerts": lambda d, n: d.alerts(T, None, 5, words(n)),
}


@pytest.fixture
def analyst(harness: Harness) -> Iterator[Analyst]:
    with Analyst(harness) as made:
        yield made


class Statements:
    """The texts the driver of a store is given: each is prepared, and kept so, on every connection."""

    def __init__(self, store: Any, patch: pytest.MonkeyPatch) -> None:
        self.texts: set[str] = set()
        if isinstance(store, SqliteStore | SqliteDerived):
            event.listen(store._engine, "before_cursor_execute", self._heard)
            return
        record: PostgresStore = store if isinstance(store, PostgresStore) else store._store
        spelling = record._compiled_sql

        def spelt(statement: Executable) -> Any:
            found = spelling(statement)
            self.texts.add(found[0])
            return found

        patch.setattr(record, "_compiled_sql", spelt)

    def _heard(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self.texts.add(statement)


def statements_of(harness: Harness, store: Any, asked: Asked, patch: pytest.MonkeyPatch) -> list[int]:
    """How many there are after a list of each length."""
    seen, counts = Statements(store, patch), []
    for length in LENGTHS:
        harness.read(asked(store, list(range(1, length + 1))))
        counts.append(len(seen.texts))
    assert counts[0], "nothing was asked"
    return counts


@pytest.mark.parametrize("name", RECORD)
def test_a_question_to_the_record_is_as_many_statements_for_one_value_as_for_hundreds_s1200(
    harness: Harness, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = statements_of(harness, harness.store, RECORD[name], monkeypatch)
    assert counts[-1] <= counts[0] + 1, counts  # a last, shorter query may be another one, once


@pytest.mark.parametrize("name", DERIVED)
def test_a_question_to_the_derived_store_is_as_many_statements_for_one_value_as_for_hundreds_s1200(
    analyst: Analyst, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = statements_of(analyst.harness, analyst.derived, DERIVED[name], monkeypatch)
    assert counts[-1] <= counts[0] + 1, counts


def test_the_compiled_statements_of_a_store_do_not_grow_with_the_lengths_of_lists_s1200(
    sqlite_harness: Harness,
) -> None:
    """SQLAlchemy keeps what it compiled: one webhook on completed tasks filled a gigabyte of it."""
    store = sqlite_harness.store
    assert isinstance(store, SqliteStore)

    def kept() -> int:
        return len(store._engine._compiled_cache or ())

    def ask(length: int) -> None:
        for asked in RECORD.values():
            sqlite_harness.read(asked(store, list(range(1, length + 1))))

    ask(1)
    ask(499)
    before = kept()
    for length in range(2, 60):
        ask(length)
    assert kept() <= before + 2


def test_the_same_rows_are_found_by_a_list_of_any_length_s1200(harness: Harness) -> None:
    names = [f"agent-{number}" for number in range(120)]
    harness.send(*(decision_log(identity={"agent_id": name}) for name in names))
    every = [agent_entity_id(T, name) for name in names]
    for length in (1, 2, 3, 64, 65, 120):
        found = harness.read(harness.store.rows(T, "agents", entity_id=every[:length]))
        assert {row["agent_id"] for row in found} == set(names[:length])
    assert harness.read(harness.store.rows(T, "agents", entity_id=[])) == []
    heads = harness.read(harness.store.rows(T, "agents"))
    numbers = sorted(row["agent_no"] for row in heads)
    found = harness.read(harness.store.rows(T, "agents", agent_no=numbers[:7]))
    assert sorted(row["agent_no"] for row in found) == numbers[:7]


def test_what_a_batch_reads_and_writes_is_of_few_sizes_s1200() -> None:
    read = {sqlite_append._in(range(length))[0] for length in range(1, 1_500)}
    assert len(read) == 12
    rows = [{"job_id": f"job_{number}", "state": "due"} for number in range(1_500)]
    for mark in (lambda number: "?", lambda number: f"${number}"):
        written = set()
        for length in range(1, 1_500, 7):
            write = RowWrite("job_runs", rows[0], more=tuple(rows[1:length]))
            made = list(write_sql(write, mark))
            assert [value for _, values in made for value in values] == [
                value for row in rows[:length] for value in row.values()
            ]
            written |= {sql for sql, _ in made}
            update = RowWrite("job_runs", {"state": "done"}, where={"job_id": words(list(range(length)))})
            written |= {sql for sql, _ in write_sql(update, mark)}
        assert len(written) <= 40
    for length in range(1, 1_500):
        inserted = sqlite_append._inserts("leases", 2, list(range(2 * length)))
        assert sum(len(values) for _, values, _ in inserted) == 2 * length


def test_padding_repeats_a_value_and_portions_leave_none_out_s1200() -> None:
    for length in range(0, 2_000, 3):
        values = list(range(length))
        assert set(padded(values)) == set(values)
        assert sum(portioned(length)) == length
    assert len({len(padded(range(length))) for length in range(1, 16_384)}) == 15
    assert len({size for length in range(1, 4_000) for size in portioned(length)}) == 21
    assert padded(range(20_000)) == list(range(20_000))  # as many as a statement takes, and no more
