"""Many schedulers over one database, all of it in memory and in virtual time: real leaders, real acts.

Every call a scheduler makes to the world outside is one step; between any two steps of one, others go on, it
may be paused, killed or have its clock moved. What the database promises is kept here in its few words: an
act is one transaction, a key is unique, a lease changes hands only when it is over by the database's clock.
"""

from __future__ import annotations

import random
from collections.abc import Coroutine, Generator, Sequence
from typing import Any, cast

import msgspec

from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule.commands import JobSpec, next_firing, row_of
from observatory.features.schedule.worker import Scheduler
from observatory.ledger.chain import ChainHead
from observatory.pipeline.ports import Lease
from observatory.pipeline.rows import RowWrite, TenantRow
from observatory.pipeline.state import (
    HOME_TENANT,
    BatchState,
    Command,
    EventDraft,
    IncomingMessage,
    Principal,
    Submission,
    SubmissionResult,
    TenantConfig,
    TransactionChanges,
    UnitOfWork,
)
from observatory.protocol.responses import Accepted, Refused
from observatory.runtime.leader import Leader
from observatory.runtime.wall_clock import WallClock
from observatory.settings import Settings
from tests.job_samples import SPEC

SECOND = 10**9
MINUTE, HOUR = 60 * SECOND, 3_600 * SECOND
START = 1_900_000_000 * SECOND // HOUR * HOUR
KEYS = {"jobs": ("job_id",), "job_runs": ("job_id", "scheduled_for"), "dead_letters": ("letter_id",)}
NAMES = {"jobs": "job_id", "job_runs": "run_id", "dead_letters": "letter_id"}
Row = dict[str, Any]


class Breath:
    """Awaited, it lets others go on."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Database:
    """Tables, one lease, the messages that came; and a clock of its own."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now_ns = START
        self.tables: dict[str, dict[tuple[Any, ...], Row]] = {name: {} for name in KEYS}
        self.lease: tuple[str, int, int] | None = None  # holder, epoch, expires
        self.head = 1
        self.sent: dict[str, tuple[bytes, SubmissionResult]] = {}
        self.stale = self.fenced = 0

    def hold(self, holder: str, lease_s: float) -> int | None:
        ends = self.now_ns + int(lease_s * SECOND)
        if self.lease is None:
            self.lease = holder, 1, ends
        elif self.lease[0] == holder:
            self.lease = holder, self.lease[1], ends
        elif self.lease[2] <= self.now_ns:
            self.lease = holder, self.lease[1] + 1, ends
        else:
            return None
        return self.lease[1]

    def decide(self, act: Command, now_ns: int) -> SubmissionResult:
        rows = {
            table: {
                row[NAMES[table]]: dict(row)
                for row in known.values()
                if row[NAMES[table]] in act.read_set.rows[table]
            }
            for table, known in self.tables.items()
            if table in act.read_set.rows
        }
        epoch = 0 if self.lease is None else self.lease[1]
        tenant = TenantRow(tenant_id=HOME_TENANT, tenant_no=1)
        memory = BatchState(
            tenant=tenant, head=ChainHead.genesis(), tenant_config=TenantConfig(), rows=cast(Any, rows)
        )
        memory.leases = dict.fromkeys(act.read_set.leases, epoch)
        verdict = act.decide(cast(UnitOfWork, Table(memory, now_ns)))
        if act.read_set.leases:
            self.fenced += 1
        if verdict.answer is firing.STALE:
            self.stale += 1
            assert not verdict.writes and not verdict.events
        for write in verdict.writes:
            self.write(write)
        self.head += len(verdict.events)
        return verdict

    def write(self, write: RowWrite) -> None:
        table = self.tables[write.table]
        if write.where is not None:
            mine = [
                row
                for row in table.values()
                if all(row[name] == value for name, value in write.where.items())
            ]
            assert mine, f"an update of {write.table} found no row"
            for row in mine:
                row |= write.values
            return
        for values in (write.values, *write.more):
            key = tuple(values[name] for name in KEYS[write.table])
            assert key not in table, f"{write.table} has {key} already"
            table[key] = dict(values)

    def take(self, item: IncomingMessage, refusing: float) -> SubmissionResult:
        """A message: once by its id; the same id with other bytes would be a lie."""
        message_id = str(item.message.message_id)
        known = self.sent.get(message_id)
        if known is not None:
            assert known[0] == item.message.digest, "a repeat must be the same, byte for byte"
            return known[1]
        if self.rng.random() < refusing:
            verdict = SubmissionResult(403, Refused(reason="policy_denied"))
        else:
            self.head += 1
            received = Accepted(
                message_id=message_id,
                session_id="s",
                step_id="x",
                sequence_number=self.head,
                state="forwarded",
            )
            verdict = SubmissionResult(202, received)
        self.sent[message_id] = item.message.digest, verdict
        return verdict


class Table:
    """A desk over memory alone."""

    def __init__(self, memory: BatchState, now_ns: int) -> None:
        self.memory, self.now_ns, self.changes = memory, now_ns, TransactionChanges()

    def append(self, draft: EventDraft) -> int:
        raise AssertionError("acts of the clock tell by their verdict")


class Gateway:
    """A process: its scheduler, its clocks, and what it is in the middle of."""

    number = 0

    def __init__(self, database: Database, lease_s: float, refusing: float) -> None:
        Gateway.number += 1
        self.database, self.refusing = database, refusing
        self.settings, self.store, self.committer = Settings(), self, self
        self.shift_ns = 0  # of its wall clock against the database's
        self.leader = Leader(
            self, firing.LEASE, lease_s, f"g{Gateway.number}", clock=lambda: database.now_ns / SECOND
        )
        self.scheduler = Scheduler(
            cast(Any, self), cast(Any, self), self.leader, WallClock(self.clock, self.clock)
        )
        self.at: Coroutine[Any, Any, bool] | None = None
        self.wakes_ns = 0  # paused until then

    def clock(self) -> int:
        return self.database.now_ns + self.shift_ns

    def step(self) -> None:
        """Up to the next call to the outside."""
        if self.at is None:
            self.at = self.scheduler.look(self.clock())
        try:
            self.at.send(None)
        except StopIteration:
            self.at = None

    def gateway_principal(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        await Breath()  # it is on its way
        verdicts = [
            self.database.decide(item, self.clock())
            if isinstance(item, Command)
            else self.database.take(cast(IncomingMessage, item), self.refusing)
            for item in items
        ]
        await Breath()  # the answer is on its way: who is killed here never hears it
        return verdicts

    async def heads(self) -> dict[str, int]:
        await Breath()
        return {HOME_TENANT: self.database.head}

    async def hold_lease(self, name: str, holder: str, lease_s: float) -> int | None:
        await Breath()
        epoch = self.database.hold(holder, lease_s)
        await Breath()
        return epoch

    async def end_lease(self, name: str, holder: str) -> None:
        raise AssertionError("nobody resigns here")

    async def lease(self, name: str) -> None:
        raise AssertionError("nobody asks")

    async def leases(self, beginning: str) -> list[Lease]:
        raise AssertionError("nobody asks")

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[Row]:
        await Breath()
        return [dict(row) for row in self.database.tables[table].values() if row["job_id"] in where["job_id"]]

    async def earliest(self, tenant_id: str) -> int | None:
        await Breath()
        tables = self.database.tables
        times = [row["next_ns"] for row in tables["jobs"].values()]
        times += [row["next_try_ns"] for row in tables["job_runs"].values()]
        return min((at for at in times if at is not None), default=None)

    async def acknowledged(self, tenant_id: str, numbers: Sequence[int]) -> dict[int, int | None]:
        raise AssertionError("only who minds an overlap asks")

    async def jobs_due(self, tenant_id: str, now_ns: int, limit: int) -> list[Row]:
        await Breath()
        rows = self.database.tables["jobs"].values()
        return [dict(row) for row in rows if row["next_ns"] is not None and row["next_ns"] <= now_ns][:limit]

    async def runs_due(self, tenant_id: str, now_ns: int, limit: int) -> list[Row]:
        await Breath()
        rows = self.database.tables["job_runs"].values()
        return [dict(row) for row in rows if row["next_try_ns"] is not None and row["next_try_ns"] <= now_ns][
            :limit
        ]


class Fleet:
    """Gateways on one database, disturbed by chance; `rng` alone says what happens."""

    def __init__(
        self, seed: int, specs: Sequence[JobSpec], *, refusing: float = 0.0, lease_s: float = 15.0
    ) -> None:
        self.rng = random.Random(seed)
        self.database = Database(self.rng)
        self.lease_s, self.refusing = lease_s, refusing
        for number, spec in enumerate(specs):
            row = row_of("usr_x", HOME_TENANT, f"job_{number}", spec, START)
            row |= next_firing(row, START)
            self.database.tables["jobs"][(row["job_id"],)] = row
        self.gateways = [self._born() for _ in range(3)]
        self.kills = self.pauses = self.moves = 0

    def _born(self) -> Gateway:
        return Gateway(self.database, self.lease_s, self.refusing)

    def disturb(self, steps: int, until_ns: int) -> None:
        """So many steps of chance, spread over the time up to then."""
        rng, database = self.rng, self.database
        pace = max(1, (until_ns - database.now_ns) // steps)
        for _ in range(steps):
            database.now_ns += rng.randrange(2 * pace)
            number = rng.randrange(3)
            one, chance = self.gateways[number], rng.random()
            if one.wakes_ns > database.now_ns:
                continue
            if chance < 0.02:
                if one.at is not None:
                    one.at.close()
                self.gateways[number] = self._born()
                self.kills += 1
            elif chance < 0.06:
                one.wakes_ns = database.now_ns + rng.randrange(3 * int(self.lease_s * SECOND))
                self.pauses += 1
            elif chance < 0.08:
                one.shift_ns = rng.choice((-HOUR, 0, HOUR))
                self.moves += 1
            else:
                one.step()

    def settle(self, until_ns: int) -> None:
        """Calm: clocks are right, nobody is paused, everything that is due is done."""
        self.database.now_ns = max(self.database.now_ns, until_ns)
        for one in self.gateways:
            one.shift_ns = one.wakes_ns = 0
        for _ in range(2_000):
            for one in self.gateways:
                one.step()
            self.database.now_ns += SECOND // 10
            waiting = [run for run in self.runs() if run["next_try_ns"] is not None]
            jobs = self.database.tables["jobs"].values()
            late = [row for row in jobs if row["next_ns"] is not None and row["next_ns"] <= until_ns]
            if not waiting and not late:
                return
        raise AssertionError("something due was never done")

    def runs(self) -> list[Row]:
        return list(self.database.tables["job_runs"].values())


def spec(**given: Any) -> JobSpec:
    often = {"cron": "*/5 * * * *", "intent": "sweep", "payload": "{}", "misfire": "run_all"}
    return msgspec.structs.replace(SPEC, **often | given)
