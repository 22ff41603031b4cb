"""The house every contract test lives in: the corridor over a real database, SQLite and PostgreSQL alike.

Test bodies speak to `House` only and know no backend. `submit` runs the pipeline's own `Batch` in the
store's own transaction; `sql` and `refuses` go past the store with every right the operator of the
database has, to see what the database itself enforces.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import msgspec
import pytest

from observatory.features.access import commands as access
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.pipeline import PipelineBatch
from observatory.pipeline.ports import EventFilter, Store, StoredEvent, Transaction
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import (
    HOME_TENANT,
    BatchState,
    IncomingMessage,
    Principal,
    Submission,
    SubmissionResult,
    UnitOfWork,
)
from observatory.protocol.message import Message
from observatory.stages import WRITE_PATH
from observatory.store.migrations.migrate import migrate
from observatory.stores import postgres_record, sqlite_record
from tests.contract import postgres

T = TypeVar("T")
SERVICE = ServiceInfo("observatory", "0.1.0", "test")
OTHER_TENANT = "tnt_other"


class Harness:
    """One database with its store open and the home tenant made."""

    name: str
    url: str
    store: Any
    trail: str  # the table that holds it
    now_sql: str  # the seed's "last 24 hours" in this database's words

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._clock = itertools.count(time.time_ns(), 1_000_000)
        self._access: dict[str, int] = {}

    def build(self) -> Any:
        raise NotImplementedError

    def sql(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def refuses(self, statement: str) -> bool:
        raise NotImplementedError

    def open(self) -> None:
        self.store = self.build()
        self.read(self.store.start())

    def close(self) -> None:
        for lane in range(self.store.lanes):
            self.store.close_lane(lane)
        self.read(self.store.stop())

    def reopen(self) -> None:
        self.close()
        self.open()

    def end(self) -> None:
        self.close()
        self._runner.close()

    def read(self, question: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(question)

    def now(self) -> int:
        return next(self._clock)

    def wait(self, ns: int) -> int:
        """The house's clock so much later; what it shows then."""
        self._clock = itertools.count(self.now() + ns, 1_000_000)
        return self.now()

    def admin(self, tenant_id: str = HOME_TENANT) -> Principal:
        version = self._access.get(tenant_id, 0)
        return Principal(tenant_id=tenant_id, role="admin", key_id="key_admin", access_version=version)

    def transact(self, tenant_id: str, unit: Callable[[Transaction], T]) -> T:
        return self.store.transact(self.store.lane(tenant_id), unit)

    def submit(self, *items: Submission, tenant_id: str = HOME_TENANT) -> list[SubmissionResult]:
        return self.submit_all(items, tenant_id)[0]

    def submit_all(
        self, items: Sequence[Submission], tenant_id: str = HOME_TENANT
    ) -> tuple[list[SubmissionResult], BatchState]:
        batch = PipelineBatch(WRITE_PATH, SERVICE, tenant_id, items, self.now())
        verdicts, memory = self.transact(tenant_id, lambda tx: batch.run(tx, None))
        self._access[tenant_id] = memory.tenant.access_version
        return verdicts, memory

    def create_tenant(self, tenant_id: str) -> None:
        (verdict,) = self.submit(
            access.create_tenant(self.admin(tenant_id), tenant_id, tenant_id, self.now()), tenant_id=tenant_id
        )
        assert verdict.code == 201

    def arrival(self, body: dict[str, Any], tenant_id: str = HOME_TENANT) -> IncomingMessage:
        raw = json.dumps(body).encode()
        message = intercept(raw)
        assert isinstance(message, Message), message
        who = self.admin(tenant_id)
        if message.sender_type == "user":  # people speak in their own name
            who = msgspec.structs.replace(who, user_id=message.sender_id)
        return IncomingMessage(message, who, self.now(), len(raw))

    def send(self, *bodies: dict[str, Any], tenant_id: str = HOME_TENANT) -> list[SubmissionResult]:
        return self.submit(*(self.arrival(body, tenant_id) for body in bodies), tenant_id=tenant_id)

    def trail_of(self, tenant_id: str = HOME_TENANT) -> list[StoredEvent]:
        return self.read(self.store.events(tenant_id, EventFilter(), 10_000, False))


class SqliteHarness(Harness):
    name = "sqlite"
    trail = "audit_log"
    now_sql = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours')"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.url = path, f"sqlite:///{path}"

    def build(self) -> Any:
        return sqlite_record(self.path)

    def sql(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(str(self.path), isolation_level=None)
        try:
            connection.execute("PRAGMA recursive_triggers=1")
            return [tuple(row) for row in connection.execute(statement, values).fetchall()]
        finally:
            connection.close()

    def refuses(self, statement: str) -> bool:
        try:
            self.sql(statement)
        except sqlite3.Error:
            return True
        return False


class PostgresHarness(Harness):
    name = "postgres"
    trail = "audit_events"
    now_sql = "now() - interval '24 hours'"

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def build(self) -> Any:
        return postgres_record(self.url)

    def sql(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        for number, name in enumerate(values, 1):
            statement = statement.replace(f":{name}", f"${number}")
        return postgres.ask(self.url, statement, *values.values())

    def refuses(self, statement: str) -> bool:
        try:
            self.sql(statement)
        except asyncpg.PostgresError:
            return True
        return False


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    with postgres.server() as running:
        yield running


@pytest.fixture(scope="session")
def pg_template(server: postgres.Server) -> str:
    """A migrated database that others are copied from: 20 ms instead of 200."""
    url = server.fresh()
    migrate(url)
    return url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "observatory.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def empty_pg(server: postgres.Server) -> Iterator[str]:
    url = server.fresh()
    yield url
    server.drop(url)


@pytest.fixture
def owned_pg(server: postgres.Server, pg_template: str) -> Iterator[str]:
    """An empty database of an owner without any other right, as an administrator would prepare it."""
    server.run(
        "postgres",
        "DO $$ BEGIN CREATE ROLE plain LOGIN NOSUPERUSER NOCREATEROLE; GRANT observatory_app TO plain; "
        "EXCEPTION WHEN duplicate_object THEN NULL; END $$",
    )
    url = server.fresh(owner="plain")
    yield url.replace("//postgres:@", "//plain:@")
    server.drop(url)


@pytest.fixture
def pg_url(server: postgres.Server, pg_template: str) -> Iterator[str]:
    url = server.fresh(template=pg_template)
    yield url
    server.drop(url)


@pytest.fixture
def sqlite_harness(tmp_path: Path, sqlite_template: Path) -> Iterator[SqliteHarness]:
    path = tmp_path / "observatory.db"
    shutil.copyfile(sqlite_template, path)
    yield from _lived_in(SqliteHarness(path))


@pytest.fixture
def pg_harness(pg_url: str) -> Iterator[PostgresHarness]:
    yield from _lived_in(PostgresHarness(pg_url))


@pytest.fixture(params=["sqlite", "postgres"])
def harness(request: pytest.FixtureRequest) -> Harness:
    found: Harness = request.getfixturevalue("sqlite_harness" if request.param == "sqlite" else "pg_harness")
    return found


@pytest.fixture
def store(harness: Harness) -> Store:
    return harness.store


H = TypeVar("H", bound=Harness)


def _lived_in(harness: H) -> Iterator[H]:
    harness.open()
    harness.create_tenant(HOME_TENANT)
    yield harness
    harness.end()


def writing(*writes: RowWrite) -> Callable[[UnitOfWork], SubmissionResult]:
    return lambda uow: SubmissionResult(200, None, [], list(writes))
