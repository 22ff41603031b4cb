"""PostgreSQL itself keeps tenants apart: roles, policies, and what the store refuses to start on."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from observatory.derived.tables import DERIVED
from observatory.errors import StartupError, StatementFailed
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command
from observatory.store import tables
from observatory.store.migrations.migrate import migrate
from observatory.store.postgres import ROLE
from observatory.stores import postgres_record
from tests.contract import postgres
from tests.contract.conftest import OTHER_TENANT, PostgresHarness, writing
from tests.samples import decision_log

TENANT_TABLES = (*tables.OWNED, *tables.BIG)


def test_postgres_refuses_an_act_that_writes_into_another_tenant(pg_harness: PostgresHarness) -> None:
    pg_harness.create_tenant(OTHER_TENANT)
    row = {"tenant_id": OTHER_TENANT, "user_id": "usr_x", "name": "x", "display_name": "X", "role": "admin"}
    act = Command(pg_harness.admin(), pg_harness.now(), writing(RowWrite("users", row | {"created_ns": 1})))
    with pytest.raises(StatementFailed):
        pg_harness.submit(act)
    rename = RowWrite("tenants", {"display_name": "stolen"}, {"tenant_id": OTHER_TENANT})
    with pytest.raises(StatementFailed):
        pg_harness.submit(Command(pg_harness.admin(), pg_harness.now(), writing(rename)))
    assert pg_harness.sql("SELECT count(*) FROM users") == [(0,)]


def test_every_table_with_a_tenant_is_under_forced_row_level_security_s71(pg_url: str) -> None:
    rows = postgres.ask(
        pg_url,
        "SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, count(p.oid) FROM pg_attribute a "
        "JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_policy p ON p.polrelid = c.oid "
        "WHERE a.attname = 'tenant_id' AND c.relkind IN ('r', 'p') "
        "AND c.relnamespace = 'public'::regnamespace "
        "GROUP BY 1, 2, 3",
    )
    assert {row[0] for row in rows} == {*TENANT_TABLES, *DERIVED.tables}
    assert {row[1:3] for row in rows} == {(True, True)}
    assert min(row[3] for row in rows) == 1
    views = "SELECT count(*) FROM pg_views WHERE schemaname = 'public'"
    assert postgres.ask(pg_url, views) == [(0,)], "a view would run with its owner's rights"


def test_the_working_role_may_not_log_in_owns_nothing_and_passes_no_policy_s71(pg_url: str) -> None:
    flags = "rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb"
    flags = f"SELECT {flags} FROM pg_roles WHERE rolname = $1"
    assert postgres.ask(pg_url, flags, ROLE) == [(False,) * 5]
    owned = "SELECT count(*) FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolname = $1"
    assert postgres.ask(pg_url, owned, ROLE) == [(0,)]


def test_a_forgotten_tenant_is_an_error_and_an_unknown_one_sees_nothing(pg_harness: PostgresHarness) -> None:
    pg_harness.send(decision_log())
    for table in TENANT_TABLES:
        ask = f"SELECT count(*) FROM {table}"
        with pytest.raises(asyncpg.PostgresError, match=r"app\.tenant"):
            postgres.ask(pg_harness.url, ask, role=ROLE, tenant=None)
        assert postgres.ask(pg_harness.url, ask, role=ROLE, tenant="tnt_nobody") == [(0,)]


@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {}", "ALTER TABLE {} DISABLE TRIGGER ALL"])
def test_the_working_role_may_neither_delete_nor_disarm(pg_url: str, statement: str) -> None:
    for table in TENANT_TABLES:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            postgres.ask(pg_url, statement.format(table), role=ROLE, tenant=HOME_TENANT)


def refused(url: str) -> str:
    async def start() -> None:
        store = postgres_record(url)
        try:
            await store.start()
        finally:
            await store.stop()

    with pytest.raises(StartupError) as error:
        asyncio.run(start())
    return str(error.value)


def test_the_store_refuses_to_start_where_row_security_is_off(pg_url: str) -> None:
    for table in TENANT_TABLES:
        postgres.execute(pg_url, f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        assert f"row level security is not active on {table} " in refused(pg_url)
        postgres.execute(pg_url, f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


def test_the_store_refuses_to_start_on_a_database_that_was_not_migrated(
    empty_pg: str, pg_template: str
) -> None:
    assert "observatory migrate" in refused(empty_pg)


def test_a_server_that_is_not_there_is_refused_with_a_sentence() -> None:
    assert "PostgreSQL cannot be" in refused("postgresql://nobody@/none?host=/tmp/no-such-folder")
    assert "postgresql://" in refused("mysql://somewhere/db")


def test_an_owner_without_other_rights_runs_the_whole_house(owned_pg: str) -> None:
    migrate(owned_pg)
    harness = PostgresHarness(owned_pg)
    harness.open()
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        harness.create_tenant(tenant_id)
        assert harness.send(decision_log(), tenant_id=tenant_id)[0].code == 202
    # Forced: even the owner sees only the tenant it names.
    assert postgres.ask(owned_pg, "SELECT DISTINCT tenant_id FROM messages", tenant=OTHER_TENANT) == [
        (OTHER_TENANT,)
    ]
    harness.end()
