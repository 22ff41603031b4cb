"""PostgreSQL: one lane and one connection per group of tenants, row level security, exact bytes beside derived columns.

The law kept here: every working connection acts as `observatory_app`, which owns nothing and passes no
policy; every transaction names its tenant before it touches a table; the chain head is locked first; an
answer leaves after a commit with synchronous_commit=on. A commit whose outcome is unknown is reported as
`NotDurable`: the client sends again and the dedupe key answers as before. Nothing of asyncpg crosses.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import asyncpg
import msgspec
from sqlalchemy import CHAR, ColumnElement, Executable, FromClause, and_, cast, func, literal_column, or_
from sqlalchemy.dialects.postgresql import asyncpg as sqlalchemy_asyncpg

from observatory.errors import NotDurable, StartupError, StatementFailed
from observatory.ledger.chain import Head
from observatory.ports import Notice
from observatory.protocol.clock import from_ns, to_ns
from observatory.protocol.steps import step_name
from observatory.state import HOME_TENANT, Changes, Member, Memory, Rulebook, Step, Tenant, Wants
from observatory.store import tables
from observatory.store.keys import dedupe_key, entity_key
from observatory.store.memory import AGENT_COLUMNS, SESSION_COLUMNS, agent_of, agent_row, session_of, session_row
from observatory.store.memory import write_sql
from observatory.store.reads import Reads, Where
from observatory.store.rulebook import rulebook_of

T = TypeVar("T")
ROLE = "observatory_app"
CHANNEL = "observatory"
OLDEST = 140_000
TENANT_LOCK = 0x0B5E71  # advisory: numbers of new tenants are given one at a time
COMMAND_TIMEOUT_S = 30
LAST_NS = to_ns("2261-12-31T23:59:59.999999999Z")
DIALECT = sqlalchemy_asyncpg.dialect()  # type: ignore[no-untyped-call]
NAME_TENANT = "SELECT set_config('app.tenant', $1, true), set_config('app.presented', $2, true)"
# Data the database refuses: 22 data, 23 constraint, 54 limits, 42501 a row of another tenant. All else is
# the medium or the house, and no reason to refuse a message for good.
ROW_ERRORS = ("22", "23", "54", "42501")
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, EOFError)
SESSION = {"application_name": "observatory", "synchronous_commit": "on", "jit": "off", "TimeZone": "UTC"}
# The append path asks only by key. Plans made while a table was empty would scan it for as long as they
# are cached, so scans are ruled out; a gateway that hangs must not keep a head locked for ever.
LANE_SESSION = SESSION | {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "idle_in_transaction_session_timeout": "60s",
}


def dsn(url: str) -> str:
    """What asyncpg takes: `postgres://` or `postgresql://`, unix sockets as `?host=/folder`."""
    scheme, mark, rest = url.partition("://")
    if not mark or scheme.partition("+")[0] not in ("postgres", "postgresql"):
        raise StartupError("the database URL must start with postgresql://")
    return "postgresql://" + rest


async def connect(url: str, session: dict[str, str]) -> asyncpg.Connection:
    """A working connection: the role taken, the settings set *and read back*."""
    connection = await asyncpg.connect(
        dsn(url), timeout=10, command_timeout=COMMAND_TIMEOUT_S, server_settings=session
    )
    await prepare(connection)
    return connection


async def prepare(connection: asyncpg.Connection) -> None:
    await connection.execute(f"SET ROLE {ROLE}")
    durable = await connection.fetchval("SELECT current_setting('synchronous_commit')")
    if durable != "on":
        await connection.close()
        raise NotDurable(f"PostgreSQL did not accept synchronous_commit=on (it says {durable})")


def translated(error: BaseException) -> Exception:
    code = getattr(error, "sqlstate", None) or ""
    # asyncpg's own DataError: a value that cannot be encoded for its column; it never left the process.
    if isinstance(error, asyncpg.DataError | UnicodeEncodeError | OverflowError) or code.startswith(ROW_ERRORS):
        return StatementFailed(f"the database refused a row: {type(error).__name__}")
    return NotDurable(f"the database cannot be written now: {type(error).__name__} {code}".rstrip())


class PostgresShape:
    """The seed's columns. The tenant stands in every query, beside the policy that enforces it."""

    events: FromClause = tables.audit_events
    messages: FromClause = tables.pg_messages
    payloads: FromClause = tables.pg_payloads

    def sequence(self) -> ColumnElement[Any]:
        return self.events.c.sequence_number

    def order(self) -> ColumnElement[Any]:
        return self.events.c.sequence_number

    def same_row(self, table: FromClause) -> ColumnElement[bool]:
        mine = self.events.c
        return and_(table.c.tenant_id == mine.tenant_id, table.c.sequence_number == mine.sequence_number)

    def in_tenant(self, tenant_id: str, after: int | None, before: int | None) -> Where:
        where: Where = [self.events.c.tenant_id == tenant_id]
        if after is not None:
            where.append(self.events.c.sequence_number > after)
        if before is not None:
            where.append(self.events.c.sequence_number < before)
        return where

    def of_trace(self, tenant_id: str, trace_id: str) -> ColumnElement[bool]:
        # Compared as CHAR: as text the index on the CHAR(32) column would not be used.
        return self.events.c.trace_id == cast(trace_id, CHAR(32))

    def of_entity(self, tenant_id: str, entity_id: str) -> ColumnElement[bool]:
        received = self._named(self.events.c.recipient_key, "av.recipient.entity_id", tenant_id, entity_id)
        return or_(self.sent_by(tenant_id, entity_id), received)

    def sent_by(self, tenant_id: str, entity_id: str) -> ColumnElement[bool]:
        return self._named(self.events.c.sender_key, "av.sender.entity_id", tenant_id, entity_id)

    def _named(self, key: ColumnElement[Any], name: str, tenant_id: str, entity_id: str) -> ColumnElement[bool]:
        """By the hashed key, then by the text: `@>` is not leakproof, so a policy keeps it from its GIN index."""
        text = self.events.c.attributes.op("@>", is_comparison=True)(func.jsonb_build_object(name, entity_id))
        return and_(key == entity_key(tenant_id, entity_id), text)

    def in_time(self, tenant_id: str, since_ns: int | None, until_ns: int | None) -> Where:
        """By the column, which is rounded to µs; rows at the very edge are asked for their exact text."""
        column = self.events.c.timestamp
        since_ns, until_ns = (None if ns is None else max(0, min(ns, LAST_NS)) for ns in (since_ns, until_ns))
        exact = literal_column("convert_from(record, 'UTF8')::jsonb ->> 'timestamp' COLLATE \"C\"")
        where: Where = []
        if since_ns is not None:
            low, high = _edges(since_ns)
            where += [column >= low, or_(column > high, exact >= from_ns(since_ns))]
        if until_ns is not None:
            low, high = _edges(until_ns)
            where += [column <= high, or_(column < low, exact < from_ns(until_ns))]
        return where

    def severe(self, tenant_id: str, minimum: int) -> Where:
        where: Where = [self.events.c.severity_number >= minimum]
        if minimum >= 17:  # spelled as the partial index spells it, so that it is used
            where.append(literal_column("severity_number >= 17"))
        return where


def _edges(ns: int) -> tuple[datetime, datetime]:
    floor = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ns // 1_000)
    return floor, floor + timedelta(microseconds=1 if ns % 1_000 else 0)


# jsonb_to_record reads the record once a row; the record is sent once and its columns cannot differ from it.
INSERT_EVENTS = """
INSERT INTO audit_events (tenant_id, sequence_number, record, leaf_hash, audit_event_id, timestamp,
    observed_timestamp, trace_id, span_id, parent_span_id, trace_flags, severity_number, severity_text, body,
    resource, attributes, event_hash, previous_hash, sender_key, recipient_key)
SELECT $1, u.seq, u.record, u.leaf, r.audit_event_id, r.timestamp, r.observed_timestamp, r.trace_id, r.span_id,
    r.parent_span_id, r.trace_flags, r.severity_number, r.severity_text, r.body, r.resource, r.attributes,
    r.hash_chain ->> 'event_hash', r.hash_chain ->> 'previous_hash', u.sender, u.recipient
FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[])
    AS u (seq, record, leaf, sender, recipient),
    jsonb_to_record(convert_from(u.record, 'UTF8')::jsonb) AS r (audit_event_id text, timestamp timestamptz,
        observed_timestamp timestamptz, trace_id text, span_id text, parent_span_id text, trace_flags smallint,
        severity_number smallint, severity_text text, body jsonb, resource jsonb, attributes jsonb, hash_chain jsonb)"""
INSERT_MESSAGES = """
INSERT INTO messages (tenant_id, sequence_number, message_id, step_id, session_no, message_type, state, parents,
    parent_inferred, warnings, dedupe, digest)
SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[],
    $9::smallint[], $10::text[], $11::bigint[], $12::bytea[])"""
INSERT_PAYLOADS = """
INSERT INTO payloads (tenant_id, sequence_number, raw) SELECT $1, * FROM unnest($2::bigint[], $3::bytea[])"""
SAVE_AGENTS = f"""
INSERT INTO agents (tenant_id, {", ".join(AGENT_COLUMNS)})
SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[])
ON CONFLICT (tenant_id, entity_id) DO UPDATE SET
    {", ".join(f"{column} = excluded.{column}" for column in AGENT_COLUMNS[2:])}"""
SAVE_SESSIONS = f"""
INSERT INTO sessions (tenant_id, {", ".join(SESSION_COLUMNS)})
SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[])
ON CONFLICT (tenant_id, session_id) DO UPDATE SET
    {", ".join(f"{column} = excluded.{column}" for column in ("last_seq", "last_ns", "messages"))}"""
SAVE_MEMBERS = """
INSERT INTO members (tenant_id, session_no, agent_no, last_step, last_seq, messages, tokens, cost)
SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::double precision[])
ON CONFLICT (tenant_id, session_no, agent_no) DO UPDATE SET last_step = excluded.last_step,
    last_seq = excluded.last_seq, messages = excluded.messages, tokens = excluded.tokens, cost = excluded.cost"""
SAVE_HEAD = """
WITH head AS (
    UPDATE chain_heads SET sequence_number = $2, event_hash = $3, sessions = $4, agents = $5, access_version = $6,
        rulebook_version = $7 WHERE tenant_id = $1 RETURNING tenant_id, sequence_number)
SELECT pg_notify('observatory', tenant_id || ':' || sequence_number) FROM head"""
LOCK_HEAD = """
SELECT tenant_no, sequence_number, event_hash, sessions, agents, access_version, rulebook_version
FROM chain_heads WHERE tenant_id = $1 FOR NO KEY UPDATE"""
LIVE_KEYS = """
SELECT k.key_id FROM api_keys k LEFT JOIN users u ON u.tenant_id = k.tenant_id AND u.user_id = k.user_id
WHERE k.revoked_ns IS NULL AND u.disabled_ns IS NULL AND k.tenant_id = $1 AND k.key_id = ANY($2::text[])"""
KNOWN_STEPS = """
SELECT m.sequence_number, m.digest, s.session_id, m.step_id, m.message_id, m.state, m.warnings
FROM messages m JOIN sessions s ON s.tenant_id = m.tenant_id AND s.session_no = m.session_no
WHERE m.tenant_id = $1 AND m.dedupe = ANY($2::bigint[])"""
KNOWN_SESSIONS = f"""
SELECT {", ".join(SESSION_COLUMNS)} FROM sessions WHERE tenant_id = $1 AND session_id = ANY($2::text[])"""
KNOWN_AGENTS = f"""
SELECT {", ".join(AGENT_COLUMNS)} FROM agents WHERE tenant_id = $1 AND entity_id = ANY($2::text[])"""
KNOWN_MEMBERS = """
SELECT session_no, agent_no, last_step, last_seq, messages, tokens, cost FROM members
WHERE tenant_id = $1 AND session_no = ANY($2::bigint[])"""
MEMBER_COLUMNS = "session_no agent_no last_step last_seq messages tokens cost".split()


class PostgresTransaction:
    """Used synchronously by the unit; each call runs the lane's own loop until the answer is there."""

    def __init__(self, lane: _Lane, connection: asyncpg.Connection) -> None:
        self._wait, self._connection = lane.wait, connection

    def _ask(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        return self._wait(self._connection.fetch(sql, *values))

    def load(self, tenant_id: str, wants: Wants, known: Rulebook) -> Memory:
        self._ask(NAME_TENANT, tenant_id, "")
        heads = self._ask(LOCK_HEAD, tenant_id) or self._heads_under_lock(tenant_id)
        if not heads:
            number = self._next_number(tenant_id)
            return Memory(Tenant(tenant_id=tenant_id, tenant_no=number), Head.genesis(), Rulebook())
        row = heads[0]
        tenant = Tenant(
            tenant_id=tenant_id,
            tenant_no=row[0],
            sessions=row[3],
            agents=row[4],
            access_version=row[5],
            rulebook_version=row[6],
        )
        memory = Memory(tenant=tenant, head=Head(row[1], row[2]), rulebook=known)
        # Read after the lock was given, not with it: a row beside the locked one may be older than the wait.
        disabled = self._ask("SELECT disabled_ns FROM tenants WHERE tenant_id = $1", tenant_id)
        tenant.disabled = bool(disabled) and disabled[0][0] is not None
        if known.version != row[6]:
            entries = self._ask(
                "SELECT agent_type, version, status, fields FROM versions WHERE tenant_id = $1", tenant_id
            )
            memory.rulebook = rulebook_of(row[6], entries)
        self._load_gone_keys(memory, wants.keys)
        self._load_steps(memory, wants.steps)
        sessions = wants.sessions | {step.session_id for step in memory.steps.values()}
        if sessions:
            found = self._ask(KNOWN_SESSIONS, tenant_id, list(sessions))
            memory.sessions = {row["session_id"]: session_of(row) for row in found}
        if wants.agents:
            found = self._ask(KNOWN_AGENTS, tenant_id, list(wants.agents))
            memory.agents = {row["entity_id"]: agent_of(row) for row in found}
        self._load_members(memory)
        return memory

    def _heads_under_lock(self, tenant_id: str) -> list[asyncpg.Record]:
        """Tenants are made one at a time, so that no two are given one number."""
        self._ask("SELECT pg_advisory_xact_lock($1)", TENANT_LOCK)
        return self._ask(LOCK_HEAD, tenant_id)

    def _next_number(self, tenant_id: str) -> int:
        """For a tenant not there yet; stored only if the batch creates it."""
        self._ask(NAME_TENANT, HOME_TENANT, "")
        last: int = self._ask("SELECT coalesce(max(tenant_no), 0) FROM chain_heads")[0][0]
        self._ask(NAME_TENANT, tenant_id, "")
        return last + 1

    def _load_gone_keys(self, memory: Memory, keys: dict[str, int]) -> None:
        """Keys checked before the last change of access are looked at again, under the lock."""
        doubtful = [key for key, version in keys.items() if version != memory.tenant.access_version]
        if doubtful:
            live = self._ask(LIVE_KEYS, memory.tenant.tenant_id, doubtful)
            memory.gone_keys = set(doubtful) - {row[0] for row in live}

    def _load_steps(self, memory: Memory, names: set[str]) -> None:
        if not names:
            return
        tenant_id = memory.tenant.tenant_id
        for row in self._ask(KNOWN_STEPS, tenant_id, [dedupe_key(tenant_id, name) for name in names]):
            number, digest, session_id, step_id, message_id, state, warnings = row
            name = step_name(session_id, step_id)
            if name in names:
                notes = tuple(msgspec.json.decode(warnings)) if warnings else ()
                memory.steps[name] = Step(name, number, digest, session_id, step_id, message_id, state, notes)

    def _load_members(self, memory: Memory) -> None:
        agents = {agent.agent_no for agent in memory.agents.values()}
        if memory.sessions and agents:
            sessions = [session.session_no for session in memory.sessions.values()]
            for row in self._ask(KNOWN_MEMBERS, memory.tenant.tenant_id, sessions):
                if row[1] in agents:
                    memory.members[row[0], row[1]] = Member(**dict(zip(MEMBER_COLUMNS, row, strict=True)))

    def save(self, memory: Memory, changes: Changes) -> None:
        tenant, audit, messages = memory.tenant, changes.audit, changes.messages
        for write in changes.writes:
            sql, values = write_sql(write, lambda number: f"${number}")
            self._ask(sql, *values)
        self._many(
            INSERT_EVENTS,
            tenant,
            [
                (
                    row.sequence_number,
                    row.record,
                    row.leaf_hash,
                    None if row.sender_id is None else entity_key(tenant.tenant_id, row.sender_id),
                    None if row.recipient_id is None else entity_key(tenant.tenant_id, row.recipient_id),
                )
                for row in audit
            ],
        )
        self._many(
            INSERT_MESSAGES,
            tenant,
            [
                (
                    row.sequence_number,
                    row.message_id,
                    row.step_id,
                    row.session_no,
                    row.message_type,
                    row.state,
                    row.parents,
                    int(row.parent_inferred),
                    row.warnings,
                    dedupe_key(tenant.tenant_id, row.name),
                    row.digest,
                )
                for row in messages
            ],
        )
        self._many(INSERT_PAYLOADS, tenant, [(row.sequence_number, row.raw) for row in messages])
        self._save_fleet(memory)
        head = memory.head
        values = [head.sequence_number, head.event_hash, tenant.sessions, tenant.agents]
        values += [tenant.access_version, tenant.rulebook_version]
        if not self._ask(SAVE_HEAD, tenant.tenant_id, *values):
            raise StatementFailed("there is no such tenant")

    def _save_fleet(self, memory: Memory) -> None:
        tenant, name = memory.tenant, memory.tenant.tenant_id
        agents = [agent_row(name, agent)[1:] for agent in memory.agents.values() if agent.dirty]
        sessions = [session_row(name, session)[1:] for session in memory.sessions.values() if session.dirty]
        members = [
            tuple(getattr(member, column) for column in MEMBER_COLUMNS)
            for member in memory.members.values()
            if member.dirty
        ]
        self._many(SAVE_AGENTS, tenant, agents)
        self._many(SAVE_SESSIONS, tenant, sessions)
        self._many(SAVE_MEMBERS, tenant, members)

    def _many(self, sql: str, tenant: Tenant, rows: list[tuple[Any, ...]]) -> None:
        """All rows of a table in one statement, a column an array."""
        if rows:
            self._ask(sql, tenant.tenant_id, *map(list, zip(*rows, strict=True)))


class _Lane:
    """One thread's loop and connection; made and used in that thread only."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: asyncpg.Connection | None = None

    def wait(self, awaitable: Awaitable[T]) -> T:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(awaitable)

    def run(self, unit: Callable[[PostgresTransaction], T]) -> T:
        try:
            if self._connection is None or self._connection.is_closed():
                self._connection = self.wait(connect(self._url, LANE_SESSION))
            connection = self._connection
            self.wait(connection.execute("BEGIN"))
            value = unit(PostgresTransaction(self, connection))
            self.wait(connection.execute("COMMIT"))
        except (*DRIVER_ERRORS, UnicodeEncodeError, OverflowError) as error:
            fault = translated(error)
            self._undo(lost=isinstance(fault, NotDurable))
            raise fault from error
        except BaseException:
            self._undo(lost=False)
            raise
        return value

    def _undo(self, lost: bool) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            if not lost and not connection.is_closed():
                self.wait(connection.execute("ROLLBACK"))
                return
        except DRIVER_ERRORS:
            pass
        # The state of this connection is not known any more: the server rolls back what it had open.
        connection.terminate()
        self._connection = None

    def close(self) -> None:
        if self._loop is None:
            return
        if self._connection is not None and not self._connection.is_closed():
            try:
                self.wait(self._connection.close(timeout=5))
            except DRIVER_ERRORS:
                self._connection.terminate()
        self._loop.close()
        self._loop = self._connection = None


class _Row(asyncpg.Record):  # type: ignore[misc]
    """A row as `Reads` knows it: by place, and as a mapping."""

    @property
    def _mapping(self) -> _Row:
        return self


class PostgresStore(Reads):
    """Several lanes: tenants of different lanes commit at the same time, one tenant never does."""

    dialect = "postgresql"

    def __init__(self, url: str, lanes: int = 4, readers: int = 4) -> None:
        super().__init__(PostgresShape())
        self._url, self._readers = url, readers
        self._lanes = [_Lane(url) for _ in range(lanes)]
        self._pool: asyncpg.Pool | None = None

    @property
    def lanes(self) -> int:
        return len(self._lanes)

    def lane(self, tenant_id: str) -> int:
        return zlib.crc32(tenant_id.encode()) % len(self._lanes)

    def transact(self, lane: int, unit: Callable[[PostgresTransaction], T]) -> T:
        return self._lanes[lane].run(unit)

    def close_lane(self, lane: int) -> None:
        self._lanes[lane].close()

    async def fetch(self, tenant_id: str, statement: Executable, presented: str = "") -> list[Any]:
        compiled = statement.compile(dialect=DIALECT)  # type: ignore[attr-defined]
        values = [compiled.params[name] for name in compiled.positiontup or ()]
        async with self._reader() as connection, connection.transaction(readonly=True):
            await connection.execute(NAME_TENANT, tenant_id, presented)
            return list(await connection.fetch(str(compiled), *values, record_class=_Row))

    @asynccontextmanager
    async def _reader(self) -> AsyncIterator[asyncpg.Connection]:
        if self._pool is None:
            raise NotDurable("the store has not started")
        try:
            async with self._pool.acquire(timeout=COMMAND_TIMEOUT_S) as connection:
                yield connection
        except DRIVER_ERRORS as error:
            raise NotDurable(f"the database cannot be read now: {type(error).__name__}") from error

    async def start(self) -> None:
        """Open the readers and refuse a server that would not keep what we promise."""
        try:
            self._pool = await asyncpg.create_pool(
                dsn(self._url),
                min_size=1,
                max_size=self._readers,
                command_timeout=COMMAND_TIMEOUT_S,
                server_settings=SESSION,
                init=prepare,
                reset=_nothing,  # every setting of ours is local to its transaction
            )
            async with self._pool.acquire() as connection:
                await _refuse_unsafe(connection)
        except NotDurable as error:
            raise StartupError(str(error)) from error
        except DRIVER_ERRORS as error:
            await self.stop()
            raise StartupError(f"PostgreSQL cannot be used: {type(error).__name__}: {error}") from error

    async def stop(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.close()

    async def ping(self) -> None:
        async with self._reader() as connection:
            row = await connection.fetchrow("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')")
        if row is None or row[0] or row[1] != "off":
            raise NotDurable("this PostgreSQL server is read-only now")

    async def listen(self, callback: Callable[[Notice], None]) -> None:
        """Tell of every commit on this database, of any gateway, until cancelled; run by the runner.

        What is missed while the connection is away is found by whoever polls: notices are levels.
        """

        def heard(_connection: object, _pid: int, _channel: str, payload: object) -> None:
            tenant_id, _, number = str(payload).rpartition(":")
            callback(Notice(tenant_id, int(number)))

        while True:
            ended = asyncio.Event()
            try:
                connection = await connect(self._url, SESSION)
                connection.add_termination_listener(lambda _: ended.set())
                await connection.add_listener(CHANNEL, heard)
                try:
                    await ended.wait()
                finally:
                    connection.terminate()
            except (*DRIVER_ERRORS, NotDurable):
                pass
            await asyncio.sleep(1)


async def _nothing(_connection: asyncpg.Connection) -> None:
    return None


async def _refuse_unsafe(connection: asyncpg.Connection) -> None:
    version = await connection.fetchval("SELECT current_setting('server_version_num')::int")
    if version < OLDEST:
        raise StartupError(f"PostgreSQL {version // 10_000} is too old; Observatory needs 14 or newer")
    if await connection.fetchval("SELECT current_setting('fsync')") != "on":
        raise StartupError("PostgreSQL runs with fsync=off: a power cut would destroy the record; set it to on")
    owned = [*tables.OWNED, *tables.BIG]
    found = await connection.fetch(
        "SELECT relname, row_security_active(oid) FROM pg_class WHERE relname = ANY($1::text[]) "
        "AND relnamespace = current_schema()::regnamespace",
        owned,
    )
    missing = set(owned) - {row[0] for row in found}
    if missing:
        raise StartupError(f"the table {min(missing)} is missing; run `observatory migrate` first")
    bare = sorted(row[0] for row in found if not row[1])
    if bare:
        raise StartupError(
            f"row level security is not active on {', '.join(bare)} for the role {ROLE}; "
            "it must not be superuser, owner or BYPASSRLS, and the tables need FORCE ROW LEVEL SECURITY"
        )
