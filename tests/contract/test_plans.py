"""PostgreSQL's plans of what the analyst asks for every page, before the tables were ever analysed.

A plan that walks through a tenant's rows is right, and slower with every message: no test of results sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import Executable

from observatory.derived.postgres import PostgresDerived
from observatory.pipeline.state import HOME_TENANT
from observatory.store.committed import PLACES
from observatory.store.postgres import PostgresStore
from observatory.store.postgres_append import NAME_TENANT
from observatory.stores import with_queries
from tests.contract.analysis import Analyst, spoken
from tests.contract.conftest import PostgresHarness

SESSIONS, LENGTH = 80, 4


class ExplainedReads(with_queries(PostgresDerived, "DERIVED_QUERIES")):  # type: ignore[misc]
    """Remembers what it was asked."""

    asked: Executable

    async def fetch(
        self, tenant_id: str, statement: Executable, presented: str = "", **values: Any
    ) -> list[Any]:
        self.asked = statement
        return await super().fetch(tenant_id, statement, presented, **values)


async def plan(store: PostgresStore, statement: Executable, **values: Any) -> list[dict[str, Any]]:
    """Every node of the plan that was run, as a reader of the gateway runs it."""
    sql, names, given = store._compiled_sql(statement)
    bound = [values[name] if name in values else given[name] for name in names]
    async with store._reader() as connection, connection.transaction(readonly=True):
        await connection.execute(NAME_TENANT, HOME_TENANT, "")
        received = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", *bound)
    return list(_nodes(msgspec.json.decode(received)[0]["Plan"]))


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for below in node.get("Plans", ()):
        yield from _nodes(below)


def filled(harness: PostgresHarness) -> None:
    """Several lines of steps, each step the parent of the next; nothing is analysed."""
    for step in range(LENGTH):
        parent = str(step - 1) if step else None
        harness.send(*(spoken(str(step), parent, f"ses-{number}") for number in range(SESSIONS)))
    with Analyst(harness) as analyst:
        analyst.catch_up()


def test_a_page_of_the_record_touches_no_row_beside_its_own_s936(pg_harness: PostgresHarness) -> None:
    filled(pg_harness)
    store, page = pg_harness.store, 20
    assert isinstance(store, PostgresStore)
    nodes = pg_harness.read(plan(store, store._pages, tenant=HOME_TENANT, low=1, high=page))
    rows = pg_harness.read(store.committed(HOME_TENANT, 0, page))
    numbers = [row.session_no for row in rows if row.session_no]
    for query in PLACES:
        nodes += pg_harness.read(
            plan(store, query, tenant=HOME_TENANT, numbers=numbers, traces=["0" * 32] * page)
        )
    scans = [node for node in nodes if "Relation Name" in node]
    assert {node["Relation Name"] for node in scans} == {"audit_events", "messages", "payloads", "sessions"}
    for node in nodes:
        assert not node.get("Rows Removed by Join Filter") and not node.get("Rows Removed by Filter"), node
    for node in scans:
        assert node["Actual Rows"] * node["Actual Loops"] <= page, node


def test_what_descends_from_a_step_is_found_by_the_parents_key_s936(pg_harness: PostgresHarness) -> None:
    """Of a tenant with many: a few are as well walked through."""
    filled(pg_harness)
    pg_harness.sql(
        "INSERT INTO insight_links SELECT :tenant, n + 1000000, n, 'name', 1 "
        "FROM generate_series(1, 20000) AS g (n)",
        tenant=HOME_TENANT,
    )
    assert isinstance(pg_harness.store, PostgresStore)
    derived = ExplainedReads(pg_harness.store, pg_harness.url)
    assert (
        pg_harness.read(derived.descendant_keys(HOME_TENANT, pg_harness.trail_of()[-1].sequence_number))
        is not None
    )
    nodes = pg_harness.read(plan(pg_harness.store, derived.asked))
    used = {node.get("Index Name") for node in nodes if node.get("Relation Name") == "insight_links"}
    assert used == {"insight_links_parent_key"}
