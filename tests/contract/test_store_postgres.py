"""What only PostgreSQL promises: many lanes, two gateways on one database, notices, lost connections."""

from __future__ import annotations

import asyncio
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import pytest

from observatory.errors import NotDurable, StartupError, StatementFailed
from observatory.features.access import commands as access
from observatory.ledger.verify import ChainCheck
from observatory.pipeline.pipeline import PipelineBatch
from observatory.pipeline.ports import CommitNotice
from observatory.pipeline.rows import TenantRow
from observatory.pipeline.state import HOME_TENANT, ReadSet
from observatory.stages import WRITE_PATH
from observatory.store import postgres as adapter
from observatory.store.postgres import dsn, translated
from observatory.stores import postgres_record
from tests.contract import postgres
from tests.contract.conftest import OTHER_TENANT, SERVICE, PostgresHarness
from tests.samples import decision_log


def log() -> dict[str, Any]:
    return decision_log(meta={"step_id": str(uuid.uuid4()), "session_id": f"ses-{uuid.uuid4().hex[0]}"})


def test_eight_threads_over_two_gateways_and_two_tenants_give_dense_chains(
    pg_harness: PostgresHarness,
) -> None:
    pg_harness.create_tenant(OTHER_TENANT)
    shared = [
        pg_harness.arrival(log(), tenant_id) for tenant_id in (HOME_TENANT, OTHER_TENANT) for _ in range(5)
    ]
    # Each thread has a store of one lane: two gateways would have four such lanes each.
    stores = [postgres_record(pg_harness.url, lanes=1) for _ in range(8)]
    together = threading.Barrier(8)

    def work(number: int) -> list[Any]:
        store, answers = stores[number], []
        tenant_id = (HOME_TENANT, OTHER_TENANT)[number % 2]
        repeats = shared[:5] if tenant_id == HOME_TENANT else shared[5:]
        together.wait()
        for _ in range(6):
            own = [pg_harness.arrival(log(), tenant_id) for _ in range(10)]
            batch = PipelineBatch(WRITE_PATH, SERVICE, tenant_id, [*own, *repeats], pg_harness.now())
            verdicts, _ = store.transact(0, lambda tx, batch=batch: batch.run(tx, None))
            answers += [verdict.answer for verdict in verdicts]
            assert {verdict.code for verdict in verdicts} == {202}
        store.close_lane(0)
        return answers

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(work, range(8)))
    for tenant_id, mine in ((HOME_TENANT, answers[::2]), (OTHER_TENANT, answers[1::2])):
        events = pg_harness.trail_of(tenant_id)
        check = ChainCheck(tenant_id)
        check.feed((event.sequence_number, event.record, event.leaf_hash) for event in events)
        assert check.result(pg_harness.read(pg_harness.store.head(tenant_id))).valid
        given = {answer.sequence_number for part in mine for answer in part}
        assert len(given) == 4 * 6 * 10 + 5, "each message once, each repeat as the first"


def test_one_tenant_has_one_lane_and_lanes_are_a_setting(pg_url: str) -> None:
    store = postgres_record(pg_url)
    assert store.lanes == 4
    names = [f"tnt_{number}" for number in range(200)]
    assert [store.lane(name) for name in names] == [postgres_record(pg_url).lane(name) for name in names]
    assert {store.lane(name) for name in names} == {0, 1, 2, 3}
    assert {postgres_record(pg_url, lanes=1).lane(name) for name in names} == {0}


def test_two_tenants_made_at_once_get_two_numbers(pg_harness: PostgresHarness) -> None:
    together = threading.Barrier(6)

    def make(number: int) -> TenantRow:
        store, tenant_id = postgres_record(pg_harness.url, lanes=1), f"tnt_{number}"
        act = access.create_tenant(pg_harness.admin(tenant_id), tenant_id, tenant_id, pg_harness.now())
        together.wait()
        batch = PipelineBatch(WRITE_PATH, SERVICE, tenant_id, [act], pg_harness.now())
        _, memory = store.transact(0, lambda tx: batch.run(tx, None))
        store.close_lane(0)
        return memory.tenant

    with ThreadPoolExecutor(6) as threads:
        numbers = [tenant.tenant_no for tenant in threads.map(make, range(6))]
    assert sorted(numbers) == [2, 3, 4, 5, 6, 7]


def kill_others(url: str) -> None:
    postgres.ask(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


def test_a_connection_lost_before_the_commit_is_not_durable_and_the_next_batch_reconnects(
    pg_harness: PostgresHarness,
) -> None:
    body = log()
    batch = PipelineBatch(WRITE_PATH, SERVICE, HOME_TENANT, [pg_harness.arrival(body)], pg_harness.now())

    def unit(transaction: Any) -> None:
        batch.run(transaction, None)
        kill_others(pg_harness.url)

    with pytest.raises(NotDurable):
        pg_harness.transact(HOME_TENANT, unit)
    assert pg_harness.sql("SELECT count(*) FROM messages") == [(0,)]
    assert pg_harness.send(body)[0].code == 202


def test_a_unit_that_goes_on_after_a_failed_statement_is_never_taken_for_committed(
    pg_harness: PostgresHarness,
) -> None:
    def unit(transaction: Any) -> None:
        batch.run(transaction, None)
        with pytest.raises(asyncpg.PostgresError):
            transaction._ask("SELECT 1 / 0")

    batch = PipelineBatch(WRITE_PATH, SERVICE, HOME_TENANT, [pg_harness.arrival(log())], pg_harness.now())
    with pytest.raises(NotDurable):
        pg_harness.transact(HOME_TENANT, unit)
    assert pg_harness.sql("SELECT count(*) FROM messages") == [(0,)]


def test_an_idle_connection_that_was_lost_costs_one_batch_and_reads_recover(
    pg_harness: PostgresHarness,
) -> None:
    pg_harness.send(log())
    kill_others(pg_harness.url)
    with pytest.raises(NotDurable):
        pg_harness.send(log())
    assert pg_harness.send(log())[0].code == 202
    for _ in range(5):
        try:
            assert pg_harness.read(pg_harness.store.head(HOME_TENANT))[0] > 2
            break
        except NotDurable:
            continue
    else:
        pytest.fail("reads never recovered")


def test_a_commit_whose_outcome_is_unknown_is_reported_as_not_durable_and_a_repeat_answers(
    pg_harness: PostgresHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, real = log(), asyncpg.Connection.execute

    async def cut_after_commit(self: Any, query: str, *values: Any, **options: Any) -> Any:
        done = await real(self, query, *values, **options)
        if query == "COMMIT":
            self.terminate()
            raise ConnectionResetError
        return done

    with monkeypatch.context() as patched:
        patched.setattr(asyncpg.Connection, "execute", cut_after_commit)
        with pytest.raises(NotDurable):
            pg_harness.send(body)
    length = pg_harness.read(pg_harness.store.head(HOME_TENANT))[0]
    (again,) = pg_harness.send(body)
    assert again.code == 202 and again.answer.sequence_number == length
    assert pg_harness.read(pg_harness.store.head(HOME_TENANT))[0] == length, "the repeat wrote nothing"


def test_a_read_only_server_is_not_durable_and_a_ping_says_so(pg_harness: PostgresHarness) -> None:
    name = pg_harness.url.partition("?")[0].rpartition("/")[2]
    postgres.execute(pg_harness.url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    pg_harness.reopen()
    with pytest.raises(NotDurable, match="read-only"):
        pg_harness.read(pg_harness.store.ping())
    with pytest.raises(NotDurable):
        pg_harness.send(log())


def test_a_store_that_was_not_started_or_whose_server_is_away_is_not_durable() -> None:
    store = postgres_record("postgresql://nobody@/none?host=/tmp/no-such-folder")
    with pytest.raises(NotDurable):
        asyncio.run(store.ping())
    with pytest.raises(NotDurable):
        store.transact(0, lambda tx: None)
    store.close_lane(0)


def test_every_commit_is_noticed_by_the_other_gateway_and_a_rollback_is_not(
    pg_harness: PostgresHarness,
) -> None:
    heard: list[CommitNotice] = []
    news: asyncio.Queue[CommitNotice] = asyncio.Queue()
    other = postgres_record(pg_harness.url)

    async def received(number: int) -> None:
        while not heard or heard[-1].sequence_number < number:
            heard.append(await news.get())

    async def listen() -> asyncio.Task[None]:
        task = asyncio.ensure_future(other.listen(news.put_nowait))
        query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        while not await asyncio.to_thread(postgres.ask, pg_harness.url, query):
            pass
        return task

    task = pg_harness.read(listen())
    with pytest.raises(StatementFailed):
        pg_harness.send(log(), tenant_id="tnt_unborn")
    (verdict,) = pg_harness.send(log())
    pg_harness.read(asyncio.wait_for(received(verdict.answer.sequence_number), 10))
    assert {notice.tenant_id for notice in heard} == {HOME_TENANT}

    async def end() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    pg_harness.read(end())


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (asyncpg.UniqueViolationError("x"), StatementFailed),
        (asyncpg.CharacterNotInRepertoireError("x"), StatementFailed),
        (asyncpg.UntranslatableCharacterError("x"), StatementFailed),
        (asyncpg.ProgramLimitExceededError("x"), StatementFailed),
        (asyncpg.DiskFullError("x"), NotDurable),
        (asyncpg.TooManyConnectionsError("x"), NotDurable),
        (asyncpg.AdminShutdownError("x"), NotDurable),
        (asyncpg.CannotConnectNowError("x"), NotDurable),
        (asyncpg.PostgresIOError("x"), NotDurable),
        (asyncpg.ConnectionDoesNotExistError("x"), NotDurable),
        (asyncpg.DeadlockDetectedError("x"), NotDurable),
        (asyncpg.ReadOnlySQLTransactionError("x"), NotDurable),
        (asyncpg.UndefinedTableError("x"), NotDurable),
        (asyncpg.InterfaceError("x"), NotDurable),
        (ConnectionResetError("x"), NotDurable),
        (TimeoutError("x"), NotDurable),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_row_is_blamed_only_for_what_is_in_the_row(error: Exception, kind: type[Exception]) -> None:
    found = translated(error)
    assert type(found) is kind
    assert not str(found).endswith(" x"), "a driver's text may quote a payload"


def test_a_nul_in_a_text_is_a_refused_statement(pg_harness: PostgresHarness) -> None:
    arrival = pg_harness.arrival(log())
    arrival.message = arrival.message.__class__(
        **{name: getattr(arrival.message, name) for name in arrival.message.__struct_fields__}
        | {"step_id": "a\0b"}
    )
    with pytest.raises(StatementFailed):
        pg_harness.submit(arrival)
    assert pg_harness.send(log())[0].code == 202


def test_an_old_server_is_refused(pg_harness: PostgresHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "OLDEST", 990_000)
    with pytest.raises(StartupError, match="too old"):
        pg_harness.read(postgres_record(pg_harness.url).start())


def test_a_server_that_could_lose_what_it_confirmed_is_refused(pg_harness: PostgresHarness) -> None:
    def set_fsync(value: str) -> None:
        postgres.execute(pg_harness.url, f"ALTER SYSTEM SET fsync = {value}")
        postgres.execute(pg_harness.url, "SELECT pg_reload_conf()")
        while postgres.ask(pg_harness.url, "SELECT current_setting('fsync')") != [(value,)]:
            pass

    set_fsync("off")
    try:
        with pytest.raises(StartupError, match="fsync"):
            pg_harness.read(postgres_record(pg_harness.url).start())
    finally:
        set_fsync("on")


def test_synchronous_commit_is_on_and_the_role_taken_whatever_the_server_defaults_to(
    pg_harness: PostgresHarness,
) -> None:
    name = pg_harness.url.partition("?")[0].rpartition("/")[2]
    postgres.execute(pg_harness.url, f"ALTER DATABASE {name} SET synchronous_commit = off")
    pg_harness.reopen()
    asked = "SELECT current_setting('synchronous_commit'), current_user"
    found = pg_harness.transact(HOME_TENANT, lambda tx: tx._ask(asked))  # type: ignore[attr-defined]
    assert tuple(found[0]) == ("on", adapter.ROLE)


def test_the_append_path_never_scans_a_table(pg_harness: PostgresHarness) -> None:
    pg_harness.send(*(log() for _ in range(50)))
    read_set = ReadSet(steps={"a"}, sessions={"ses-1"}, agents={"agt_x"}, keys={"key_x": -1})
    postgres.execute(pg_harness.url, "SELECT pg_stat_reset()")
    before = dict(pg_harness.sql("SELECT relname, seq_scan FROM pg_stat_user_tables"))
    pg_harness.transact(HOME_TENANT, lambda tx: tx.load(HOME_TENANT, read_set, None))
    pg_harness.send(*(log() for _ in range(50)))
    pg_harness.store.close_lane(pg_harness.store.lane(HOME_TENANT))  # its statistics are told when it ends
    after = dict(pg_harness.sql("SELECT relname, seq_scan FROM pg_stat_user_tables"))
    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == {}


def test_urls_of_postgres_are_understood_with_any_driver_named() -> None:
    assert dsn("postgres://u@h/d") == dsn("postgresql+asyncpg://u@h/d") == "postgresql://u@h/d"
    assert dsn("postgresql://postgres:@/db?host=/tmp/x").endswith("?host=/tmp/x")
    with pytest.raises(StartupError):
        dsn("/var/lib/observatory.db")


def test_a_page_that_postgresql_did_not_write_is_not_forgotten_by_the_readiness_s1063(
    pg_harness: PostgresHarness,
) -> None:
    """S1063: with the server's own words for it."""

    async def met() -> None:
        store = postgres_record(pg_harness.url)
        await store.start()
        await store.ping()
        with pytest.raises(NotDurable):
            async with store._reader() as connection:
                await connection.execute("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = 'XX001'; END $$")
        with pytest.raises(NotDurable, match="malformed"):
            await store.ping()
        await store.stop()

    asyncio.run(met())
