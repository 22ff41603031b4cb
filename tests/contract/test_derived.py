"""The derived store's law over both databases: one transaction, one cursor; made anew when in doubt."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from observatory.derived import sqlite as derived_sqlite
from observatory.derived.seen import DerivedWrite, Finding
from observatory.derived.tables import DERIVED
from observatory.errors import NotDurable, StatementFailed
from observatory.pipeline.state import HOME_TENANT
from observatory.store.migrations.migrate import migrate
from tests.contract import postgres
from tests.contract.analysis import Analyst
from tests.contract.conftest import OTHER_TENANT, Harness, SqliteHarness


@pytest.fixture
def analyst(harness: Harness) -> Iterator[Analyst]:
    with Analyst(harness) as made:
        yield made


def link(seq: int, parent: int, kind: str = "declared") -> dict[str, Any]:
    return {"seq": seq, "parent_key": parent, "kind": kind, "session_no": 1}


def minute(session: int, messages: int, cost: float = 0.0) -> dict[str, Any]:
    return {"minute": 7, "session_no": session, "messages": messages, "tokens": 0, "cost": cost}


def apply(analyst: Analyst, after: int, until: int, *puts: DerivedWrite, **more: Any) -> bool:
    tenant_id = more.pop("tenant_id", HOME_TENANT)
    findings = more.pop("findings", ())
    return analyst.harness.read(analyst.derived.apply(tenant_id, after, until, 5, puts, findings, **more))


def links(analyst: Analyst, tenant_id: str = HOME_TENANT) -> list[tuple[int, int, str]]:
    return [(row["seq"], row["parent_key"], row["kind"]) for row in analyst.table("insight_links", tenant_id)]


def cursor(analyst: Analyst, tenant_id: str = HOME_TENANT) -> int:
    return analyst.harness.read(analyst.derived.progress(tenant_id)).seq


def test_rows_and_cursor_go_together_s198(analyst: Analyst) -> None:
    assert apply(analyst, 0, 5, DerivedWrite("insight_links", [link(1, 10), link(2, 10)]))
    assert (links(analyst), cursor(analyst)) == ([(1, 10, "declared"), (2, 10, "declared")], 5)
    bad = DerivedWrite("insight_links", [link(6, 1), link(7, 1) | {"kind": None}])
    with pytest.raises(StatementFailed):
        apply(analyst, 5, 9, DerivedWrite("insight_links", [link(5, 1)]), bad)
    assert (len(links(analyst)), cursor(analyst)) == (2, 5)


def test_a_cursor_elsewhere_writes_nothing_s198(analyst: Analyst) -> None:
    """As for the second of two analysts that folded the same batch."""
    add = DerivedWrite("insight_session_minutes", [minute(1, 3)], "add")
    assert apply(analyst, 0, 5, add)
    assert not apply(analyst, 0, 5, add)
    assert not apply(analyst, 4, 9, add)
    assert apply(analyst, 5, 6, add)
    assert [row["messages"] for row in analyst.table("insight_session_minutes")] == [6]


def test_clears_come_first_then_what_replaces_then_what_adds_s198(analyst: Analyst) -> None:
    apply(analyst, 0, 5, DerivedWrite("insight_links", [link(1, 10), link(1, 11), link(2, 10)]))
    again = DerivedWrite("insight_links", [link(1, 12), link(2, 10, "span")])
    assert apply(analyst, 5, 6, again, DerivedWrite("insight_links", [], clear=[1]))
    assert links(analyst) == [(1, 12, "declared"), (2, 10, "span")]


def test_a_key_twice_in_a_batch_is_one_row_s198(analyst: Analyst) -> None:
    """The last replaces, the sums add up: across rows, puts and batches."""
    sums = [minute(1, 1, 0.5), minute(2, 1), minute(1, 2, 0.25)]
    puts = [
        DerivedWrite("insight_links", [link(1, 10), link(1, 10, "inferred")]),
        DerivedWrite("insight_session_minutes", sums, "add"),
        DerivedWrite("insight_session_minutes", [minute(1, 4)], "add"),
    ]
    assert apply(analyst, 0, 1, *puts)
    assert links(analyst) == [(1, 10, "inferred")]
    found = {
        row["session_no"]: (row["messages"], row["cost"]) for row in analyst.table("insight_session_minutes")
    }
    assert found == {1: (7, 0.75), 2: (1, 0.0)}


def test_every_kind_of_value_comes_back_as_it_went_s198(analyst: Analyst) -> None:
    fact = {
        "fact_id": 1 << 50,
        "seq": 1,
        "session_no": 1,
        "agent_no": 1,
        "cluster_id": None,
        "at_ns": 2**62,
        "fact_key": -(2**63),
        "subject_key": None,
        "subject": "Ünïcode \U0001f600 'quoted'",
        "value": "",
        "text": "x" * 100_000,
        "sketch": b"\x00\xff",
    }
    names = set(DERIVED.tables["insight_facts"].columns.keys()) & set(fact)
    assert apply(analyst, 0, 1, DerivedWrite("insight_facts", [{name: fact[name] for name in names}]))
    (row,) = analyst.table("insight_facts")
    assert {name: row[name] for name in names} == {name: fact[name] for name in names}


def test_findings_have_numbers_that_only_grow_s198(analyst: Analyst) -> None:
    def found(seq: int, kind: Any = "orphan") -> Finding:
        return Finding(kind=kind, seq=seq, session_id="s", agent_id="a", at_ns=3, body={"n": seq})

    apply(analyst, 0, 10, findings=[found(4), found(4, "cycle"), found(9)])
    apply(analyst, 10, 12, findings=[found(2)])  # about an old number, found now
    read = analyst.harness.read(analyst.derived.findings(HOME_TENANT, 0, 10))
    assert [(one.finding_id, one.seq, one.kind) for one in read] == [
        (64, 4, "orphan"),
        (65, 4, "cycle"),
        (144, 9, "orphan"),
        (192, 2, "orphan"),
    ]
    assert read[-1].body == {"n": 2}
    assert [one.seq for one in analyst.harness.read(analyst.derived.findings(HOME_TENANT, 65, 1))] == [9]


def test_no_finding_of_a_number_is_lost_silently(analyst: Analyst) -> None:
    """Ids leave room for sixteen of a number; the last says how many more there were."""

    def found(place: int, seq: int) -> Finding:
        return Finding(kind="cycle", seq=seq, session_id="s", agent_id="a", at_ns=3, body={"n": place})

    apply(analyst, 0, 2, findings=[*(found(n, 1) for n in range(16)), *(found(n, 2) for n in range(20))])
    read = analyst.harness.read(analyst.derived.findings(HOME_TENANT, 0, 100))
    assert [one.finding_id for one in read] == list(range(16, 48))
    assert [one.body for one in read[:16]] == [{"n": n} for n in range(16)]
    assert [one.body for one in read[16:]] == [*({"n": n} for n in range(15)), {"n": 15, "more_findings": 4}]


def test_what_was_passed_by_adds_up_s200(analyst: Analyst) -> None:
    apply(analyst, 0, 5, passed=(1, 2))
    apply(analyst, 5, 6, passed=(1, 0))
    progress = analyst.harness.read(analyst.derived.progress(HOME_TENANT))
    assert (progress.seq, progress.at_ns, progress.skipped, progress.unread) == (6, 5, 2, 2)


def test_tenants_see_their_own_rows_only_s199(analyst: Analyst) -> None:
    apply(analyst, 0, 5, DerivedWrite("insight_links", [link(1, 10)]))
    assert apply(analyst, 0, 3, DerivedWrite("insight_links", [link(1, 20)]), tenant_id=OTHER_TENANT)
    assert links(analyst) == [(1, 10, "declared")]
    assert links(analyst, OTHER_TENANT) == [(1, 20, "declared")]
    analyst.harness.read(analyst.derived.restart(OTHER_TENANT))
    assert (links(analyst, OTHER_TENANT), cursor(analyst, OTHER_TENANT)) == ([], 0)
    assert (links(analyst), cursor(analyst)) == ([(1, 10, "declared")], 5)


def test_policies_stand_on_every_derived_table_s199(pg_harness: Harness) -> None:
    """The working role sees nothing of another tenant even without a WHERE, and cannot write as one."""
    with Analyst(pg_harness) as analyst:
        apply(analyst, 0, 5, DerivedWrite("insight_links", [link(1, 10)]))
    for table in DERIVED.tables:
        seen = postgres.ask(
            pg_harness.url, f"SELECT count(*) FROM {table}", tenant=OTHER_TENANT, role="observatory_app"
        )
        forced = postgres.ask(
            pg_harness.url,
            "SELECT relrowsecurity AND relforcerowsecurity FROM pg_class WHERE relname = $1",
            table,
        )
        assert (seen, forced) == ([(0,)], [(True,)])
    with pytest.raises(Exception, match="row-level security"):
        postgres.ask(
            pg_harness.url,
            "INSERT INTO insight_cursors VALUES ('tnt_default', 'x', 1, 1) RETURNING 1",
            tenant=OTHER_TENANT,
            role="observatory_app",
        )


def test_another_version_on_postgres_is_dropped_and_made_anew_s199(pg_harness: Harness) -> None:
    with Analyst(pg_harness) as analyst:
        apply(analyst, 0, 5, DerivedWrite("insight_links", [link(1, 10)]))
        migrate(pg_harness.url)  # the same version: nothing happens
        assert cursor(analyst) == 5
        postgres.execute(pg_harness.url, "UPDATE insight_version SET mark = 'other'")
        postgres.execute(pg_harness.url, "CREATE TABLE insight_old (tenant_id TEXT)")
        assert not apply(analyst, 4, 5)  # another analyst was there; from now on it looks
        with pytest.raises(NotDurable, match="another version"):
            apply(analyst, 5, 6)
        migrate(pg_harness.url)
        assert (links(analyst), cursor(analyst)) == ([], 0)
        assert apply(analyst, 0, 5, DerivedWrite("insight_links", [link(1, 10)]))
    left = postgres.ask(pg_harness.url, "SELECT to_regclass('insight_old') IS NULL", tenant="")
    assert left == [(True,)]


@pytest.mark.parametrize("harm", ["missing", "garbage", "other version", "empty", "torn"])
def test_a_file_that_cannot_be_used_is_made_anew_s199(sqlite_harness: SqliteHarness, harm: str) -> None:
    path = sqlite_harness.path.with_name(derived_sqlite.FILE)
    with Analyst(sqlite_harness) as analyst:
        apply(analyst, 0, 5, DerivedWrite("insight_links", [link(number, 10) for number in range(20_000)]))
    assert path.stat().st_mode & 0o777 == 0o600
    if harm == "missing":
        derived_sqlite.remove(path)
    elif harm == "garbage":
        path.write_bytes(b"this is no database" * 1_000)
    elif harm == "empty":
        path.write_bytes(b"")
    elif harm == "torn":
        data, whole = path.read_bytes(), 96 * 4096  # the roots of all tables, not their leaves
        path.write_bytes(data[:whole] + b"\xa5" * (len(data) - whole))
    else:
        connection = sqlite3.connect(str(path))
        connection.execute("UPDATE insight_version SET mark = 'other'")
        connection.commit()
        connection.close()
    with Analyst(sqlite_harness) as analyst:
        if harm == "torn":  # found out when a page is read; whoever finds it removes it
            with pytest.raises(NotDurable):
                apply(analyst, 5, 6, DerivedWrite("insight_links", [link(9, 9)]))
            assert analyst.harness.read(analyst.derived.ready()) is False
        assert (links(analyst), cursor(analyst)) == ([], 0)
        assert apply(analyst, 0, 2, DerivedWrite("insight_links", [link(1, 10)]))
        assert analyst.harness.read(analyst.derived.ready()) is True
    assert path.stat().st_mode & 0o777 == 0o600


def test_readers_follow_a_file_that_was_made_anew_s199(sqlite_harness: SqliteHarness) -> None:
    """Doors hold connections open; they must not go on reading a file nobody writes."""
    path = sqlite_harness.path.with_name(derived_sqlite.FILE)
    with Analyst(sqlite_harness) as websocket, Analyst(sqlite_harness) as analyst:
        apply(analyst, 0, 5, DerivedWrite("insight_links", [link(1, 10)]))
        assert cursor(websocket) == 5
        derived_sqlite.remove(path)
        with pytest.raises(NotDurable):
            cursor(websocket)
        assert analyst.harness.read(analyst.derived.ready()) is False
        assert cursor(websocket) == 0
        apply(analyst, 0, 7)
        assert cursor(websocket) == 7
