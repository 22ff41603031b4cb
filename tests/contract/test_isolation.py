"""No tenant sees or touches another: through the store on both databases, and by PostgreSQL itself."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import asyncpg
import pytest

from observatory.errors import StartupError, StatementFailed
from observatory.gateway import access
from observatory.ports import EventFilter, MessageFilter
from observatory.protocol.otel import trace_id_of_session
from observatory.state import HOME_TENANT, Act, Verdict, Write
from observatory.store import tables
from observatory.store.migrate import migrate
from observatory.store.postgres import ROLE, PostgresStore
from tests.contract import postgres
from tests.contract.conftest import OTHER_TENANT, House, PostgresHouse
from tests.samples import decision_log, envelope

TENANT_TABLES = (*tables.OWNED, *tables.BIG)


@pytest.fixture
def two(house: House) -> House:
    """Both tenants hold the same names: same agent, same session, same step ids."""
    house.create_tenant(OTHER_TENANT)
    user = {"name": "ada", "display_name": "Ada", "role": "admin", "created_ns": 1}
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        row = user | {"tenant_id": tenant_id, "user_id": f"usr_{tenant_id}"}
        house.submit(access.create_user(house.admin(tenant_id), row, house.now()), tenant_id=tenant_id)
    return house


def reads(house: House, tenant_id: str, names: list[str]) -> list[Any]:
    """Whatever any read method says to this tenant about ids of the other."""
    store = house.store
    asked: list[Coroutine[Any, Any, Any]] = [store.message(tenant_id, name) for name in names]
    for name in names:
        asked.append(store.events(tenant_id, EventFilter(entity_id=name), 10, True))
        asked.append(store.events(tenant_id, EventFilter(trace_id=trace_id_of_session(name)), 10, True))
        asked.append(store.messages(tenant_id, MessageFilter(session_id=name), 10, True))
        asked.append(store.messages(tenant_id, MessageFilter(agent=name), 10, True))
        asked.append(store.rows(tenant_id, "sessions", session_id=name))
        asked.append(store.rows(tenant_id, "agents", agent_id=name))
        asked.append(store.rows(tenant_id, "users", user_id=name))
    return [house.read(question) for question in asked]


def test_ids_of_another_tenant_are_invisible_through_every_read(two: House) -> None:
    body = decision_log(
        meta={"step_id": str(uuid.uuid4()), "session_id": "secret-session"},
        identity={"agent_id": "secret-agent"},
    )
    sent = envelope("text")
    first, second = two.send(body, sent, tenant_id=OTHER_TENANT)
    (agent,) = two.read(two.store.rows(OTHER_TENANT, "agents", agent_id="secret-agent"))
    names = [
        body["meta"]["step_id"],
        "secret-session",
        "secret-agent",
        agent["entity_id"],
        first.answer.message_id,
        sent["message_id"],
        second.answer.message_id,
        sent["sender"]["entity_id"],
        sent["recipient"]["entity_id"],
        f"usr_{OTHER_TENANT}",
    ]
    assert [answer for answer in reads(two, HOME_TENANT, names) if answer] == []
    assert any(reads(two, OTHER_TENANT, names)), "the owner does see them"
    assert two.read(two.store.head(HOME_TENANT))[0] == len(two.trail_of(HOME_TENANT)) == 2
    for table in set(tables.OWNED):
        seen = {row["tenant_id"] for row in two.read(two.store.rows(HOME_TENANT, table))}
        assert seen <= {HOME_TENANT}, table


def test_the_same_names_in_two_tenants_are_two_things(two: House) -> None:
    body = decision_log(meta={"step_id": str(uuid.uuid4()), "session_id": "same"})
    (mine,) = two.send(body)
    (theirs,) = two.send({**body, "action": {**body["action"], "status": "failure"}}, tenant_id=OTHER_TENANT)
    assert (mine.code, theirs.code) == (202, 202), "no conflict across tenants"
    here, there = (
        two.read(two.store.message(t, body["meta"]["step_id"])) for t in (HOME_TENANT, OTHER_TENANT)
    )
    assert here is not None and there is not None and here.raw != there.raw
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        assert len(two.read(two.store.messages(tenant_id, MessageFilter(session_id="same"), 10, True))) == 1
        assert (
            len(two.read(two.store.messages(tenant_id, MessageFilter(agent="researcher-alpha-9"), 10, True)))
            == 1
        )


def writing(*writes: Write) -> Callable[[Any, int], Verdict]:
    return lambda memory, now_ns: Verdict(200, None, [], list(writes))


def test_postgres_refuses_an_act_that_writes_into_another_tenant(pg_house: PostgresHouse) -> None:
    pg_house.create_tenant(OTHER_TENANT)
    row = {"tenant_id": OTHER_TENANT, "user_id": "usr_x", "name": "x", "display_name": "X", "role": "admin"}
    act = Act(pg_house.admin(), pg_house.now(), writing(Write("users", row | {"created_ns": 1})))
    with pytest.raises(StatementFailed):
        pg_house.submit(act)
    rename = Write("tenants", {"display_name": "stolen"}, {"tenant_id": OTHER_TENANT})
    with pytest.raises(StatementFailed):
        pg_house.submit(Act(pg_house.admin(), pg_house.now(), writing(rename)))
    assert pg_house.sql("SELECT count(*) FROM users") == [(0,)]


def test_every_table_with_a_tenant_is_under_forced_row_level_security_s71(pg_url: str) -> None:
    rows = postgres.ask(
        pg_url,
        "SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, count(p.oid) FROM pg_attribute a "
        "JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_policy p ON p.polrelid = c.oid "
        "WHERE a.attname = 'tenant_id' AND c.relkind IN ('r', 'p') "
        "AND c.relnamespace = 'public'::regnamespace "
        "GROUP BY 1, 2, 3",
    )
    assert {row[0] for row in rows} == set(TENANT_TABLES)
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


def test_a_forgotten_tenant_is_an_error_and_an_unknown_one_sees_nothing(pg_house: PostgresHouse) -> None:
    pg_house.send(decision_log())
    for table in TENANT_TABLES:
        ask = f"SELECT count(*) FROM {table}"
        with pytest.raises(asyncpg.PostgresError, match=r"app\.tenant"):
            postgres.ask(pg_house.url, ask, role=ROLE, tenant=None)
        assert postgres.ask(pg_house.url, ask, role=ROLE, tenant="tnt_nobody") == [(0,)]


@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {}", "ALTER TABLE {} DISABLE TRIGGER ALL"])
def test_the_working_role_may_neither_delete_nor_disarm(pg_url: str, statement: str) -> None:
    for table in TENANT_TABLES:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            postgres.ask(pg_url, statement.format(table), role=ROLE, tenant=HOME_TENANT)


def refused(url: str) -> str:
    async def start() -> None:
        store = PostgresStore(url)
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
    house = PostgresHouse(owned_pg)
    house.open()
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        house.create_tenant(tenant_id)
        assert house.send(decision_log(), tenant_id=tenant_id)[0].code == 202
    # Forced: even the owner sees only the tenant it names.
    assert postgres.ask(owned_pg, "SELECT DISTINCT tenant_id FROM messages", tenant=OTHER_TENANT) == [
        (OTHER_TENANT,)
    ]
    house.end()
