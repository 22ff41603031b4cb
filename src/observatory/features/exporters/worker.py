"""The exporter: every audit event of a tenant, in order, to every OTLP backend it has, at least once.

Laws: it reads the record after a durable cursor and writes how far it came, so whatever dies goes on from
there; what was on its way is sent again. A backend that is away holds up nobody else and loses nothing: it
is tried again, ever more seldom, and how far it is behind can be seen. What it refuses for good is passed
over only when it is proven (`culprits.py`), counted and on record. Events travel, payloads never. Of several
gateways one is at work; were it two, one's progress would count and the other's sends be repeats.
"""

from __future__ import annotations

import asyncio
import logging
import random
import struct
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from observatory.errors import ObservatoryError
from observatory.features.exporters import commands as exporting
from observatory.features.exporters import otlp
from observatory.features.exporters.commands import Failure, Progress, Refusal, Row
from observatory.features.exporters.otlp import Coded
from observatory.features.exporters.rejected_records import Culprit, Delivered, Part, deliver
from observatory.features.exporters.transports import Answer, Way, way
from observatory.features.exporters.types_settings import Filters, Sieve
from observatory.pipeline.ports import Bus, EventFilter, StoredEvent
from observatory.pipeline.state import Act
from observatory.protocol.clock import to_ns
from observatory.runtime import worker_context as home
from observatory.runtime.leader import Leader
from observatory.runtime.metrics import Measure
from observatory.runtime.outbound_http import Outward
from observatory.runtime.wait_for_wakeup import woken
from observatory.runtime.worker_context import Watch

MOST_RECORDS: Final = 512
MOST_BYTES: Final = 4 << 20  # of one request, before it is packed: what collectors take over gRPC
AT_ONCE: Final = 4  # batches on their way to one backend
PACE_S: Final = 0.2  # between two looks while somebody has something to send
LOOK_S: Final = 1.0
IDLE_S: Final = 5.0  # nobody has; and so long a tenant without exporters is not asked for them again
FIRST_S, LONGEST_S = 1.0, 60.0
UNREADABLE: Final = (msgspec.MsgspecError, struct.error, ValueError, KeyError)
Key = tuple[str, str]  # tenant, exporter
log = logging.getLogger("observatory.exporter")


class Home(home.Home, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


class Stretch(NamedTuple):
    """What was read at once: batches to send, and the number up to which that is all there is to send."""

    batches: list[list[Coded]]
    until: int
    oldest_ns: int


class Standing(msgspec.Struct):
    """What is told of an exporter in figures."""

    behind: int = 0
    oldest_ns: int | None = None
    failing: bool = False


def backoff_s(failures: int, chance: float) -> float:
    """A second, then twice as long each time, at most a minute; `chance` spreads it over its upper half."""
    return min(LONGEST_S, FIRST_S * 2.0 ** min(failures, 16)) * (0.5 + chance / 2)


def cut(events: Sequence[StoredEvent], sieve: Sieve) -> Stretch:
    """Decode, filter, encode: the work of a thread, so that no door waits for it."""
    batches: list[list[Coded]] = [[]]
    size, oldest_ns = 0, 0
    for stored in events:
        event = otlp.read(stored.record)
        oldest_ns = oldest_ns or to_ns(event.observed_timestamp)
        if not sieve.takes(event):
            continue
        one = otlp.coded(event)
        if len(batches[-1]) >= MOST_RECORDS or (batches[-1] and size + len(one.record) > MOST_BYTES):
            batches.append([])
            size = 0
        batches[-1].append(one)
        size += len(one.record) + len(one.resource)
    found = [batch for batch in batches if batch]
    return Stretch(found, events[-1].sequence_number, oldest_ns)


class Exporter:
    def __init__(self, house: Home, outward: Outward, leader: Leader, bus: Bus) -> None:
        self._house, self.outward, self._leader, self._bus = house, outward, leader, bus
        self._watch = Watch(house.store)
        self._moved = asyncio.Event()
        self._at_work: dict[Key, asyncio.Task[None]] = {}
        self._ways: dict[Key, tuple[tuple[str, str, str], Way]] = {}
        self._standing: dict[Key, Standing] = {}
        self._without: dict[str, float] = {}
        self._unkept: dict[Key, tuple[int, float]] = {}  # how often in a row, and until when it waits
        self._sent = self._refused = self._failures = 0

    async def run(self) -> None:
        """The daemon: woken by commits, and by the clock."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._listen())
                while True:
                    try:
                        await self.look(group)
                    except ObservatoryError as error:  # the database is away: found again next time
                        log.warning("nothing is exported now: %s", error)
                    is_busy = bool(self._standing)
                    await woken(self._moved, LOOK_S if is_busy else IDLE_S)
                    await asyncio.sleep(PACE_S)
                    self._moved.clear()
        finally:
            self._at_work.clear()
            for key in list(self._ways):
                await self._forget(key)
            await self._leader.resign()

    def wake(self, tenant_id: str) -> None:
        """It has one now; elsewhere that is found out a little later."""
        self._without.pop(tenant_id, None)
        self._moved.set()

    async def _listen(self) -> None:
        async for _ in self._bus.subscribe():
            self._moved.set()

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Set to work whoever has something to send and is not at it yet."""
        if await self._leader.lead() is None:
            self._standing.clear()
            return
        now_ns = self._house.clock()
        for tenant_id, head in await self._watch.awake():
            if self._without.get(tenant_id, 0.0) > time.monotonic():
                continue
            behind = set[Key]()
            rows = await self._house.store.rows(tenant_id, "exporters", removed_ns=None)
            if not rows:
                self._without[tenant_id] = time.monotonic() + IDLE_S
            for row in rows:
                if row["state"] != "active" or row["cursor"] >= head:
                    continue
                behind.add(key := _key(row))
                standing = self._standing.setdefault(key, Standing())
                standing.behind, standing.failing = head - row["cursor"], row["failures"] > 0
                waits = self._unkept.get(key, (0, 0.0))[1] > time.monotonic()
                if key not in self._at_work and not waits and _is_due(row, now_ns):
                    self._at_work[key] = group.create_task(self._work(row))
            for key in [one for one in self._standing if one[0] == tenant_id and one not in behind]:
                del self._standing[key]  # at the end of the record, paused or removed
            active = {_key(row) for row in rows if row["state"] == "active"} | self._at_work.keys()
            for key in [one for one in self._ways if one[0] == tenant_id and one not in active]:
                await self._forget(key)  # no connection is kept for one that was paused or removed
            if not behind:
                self._watch.rest(tenant_id, head)

    async def _work(self, row: Row) -> None:
        """Until it has come to the end of the record, was stopped, or has nobody to send to."""
        key, name = _key(row), {"exporter_id": row["exporter_id"], "removed_ns": None}
        try:
            # Read anew: while it was read who was at work before may have come further.
            rows = await self._house.store.rows(row["tenant_id"], "exporters", **name)
            going: Row | None = rows[0] if rows else None
            while going and going["state"] == "active" and await self._leader.lead() is not None:
                going = await self._step(going)
        except ObservatoryError as error:
            # The database is away or full. What was sent could not be written down and is sent again: seldom.
            count = self._unkept.get(key, (0, 0.0))[0]
            self._unkept[key] = count + 1, time.monotonic() + backoff_s(count, random.random())
            log.warning("an exporter waits: %s", error)
        finally:
            self._at_work.pop(key, None)

    async def _step(self, row: Row) -> Row | None:
        """One stretch of the record; the row as it is afterwards, None when it ends here."""
        tenant_id, standing = row["tenant_id"], self._standing.setdefault(_key(row), Standing())
        most = MOST_RECORDS * (1 if row["failures"] else AT_ONCE)
        span = EventFilter(after=row["cursor"])
        events = await self._house.store.events(tenant_id, span, most, newest_first=False)
        if not events:
            return None
        sieve = Sieve(msgspec.json.decode(row["filters"], type=Filters), tenant_id)
        try:
            stretch = await asyncio.to_thread(cut, events, sieve)
        except UNREADABLE:  # somebody went round the triggers; no other exporter stands still for it
            await self._fail(
                row, Answer("later", "the record cannot be read; `observatory verify` tells where")
            )
            return None
        standing.oldest_ns = stretch.oldest_ns
        progress, stopped = settled(row, stretch, await self._hand_over(row, stretch))
        self._sent += progress.sent
        self._refused += sum(one.records for one in progress.refusals)
        after: Row | None = row
        if progress.until > row["cursor"]:
            after = await self._submit(exporting.progress, tenant_id, progress)
        if after is None:  # removed, or moved by a person
            await self._forget(_key(row))
            return None
        if stopped is not None:
            await self._fail(after, stopped)
            return None
        standing.failing, standing.behind = False, max(0, standing.behind - len(events))
        # At the end of the record it waits for more: a few large batches a second cost less than many small.
        return after if len(events) >= MOST_RECORDS else None

    async def _hand_over(self, row: Row, stretch: Stretch) -> list[Delivered]:
        line = await self._way(row)

        async def send(records: Sequence[Coded]) -> Answer:
            return await line.send(otlp.request(records))

        async def try_one() -> Answer:
            return await line.send(otlp.trial(self._resource(row), self._house.clock()))

        return await asyncio.gather(*(deliver(batch, send, try_one) for batch in stretch.batches))

    async def _fail(self, row: Row, stopped: Answer) -> None:
        self._failures += 1
        self._standing.setdefault(_key(row), Standing()).failing = True
        wait_s = max(backoff_s(row["failures"], random.random()), stopped.after_s or 0.0)
        failure = Failure(
            row["exporter_id"],
            row["rounds"],
            stopped.detail,
            row["failures"] + 1,
            self._house.clock() + int(wait_s * 1e9),
        )
        after = await self._submit(exporting.fail, row["tenant_id"], failure)
        if after is None or after["state"] != "active":
            self._standing.pop(_key(row), None)  # paused, moved or removed meanwhile: nobody is failing
        await self._forget(_key(row))

    async def _submit(self, act: Callable[..., Act], tenant_id: str, what: Progress | Failure) -> Row | None:
        made = act(self._house.principal_of_house(tenant_id), what, self._house.clock())
        (verdict,) = await self._house.committer.submit(tenant_id, [made])
        self._unkept.pop((tenant_id, what.exporter_id), None)
        answer: Row | None = verdict.answer
        return answer

    async def _way(self, row: Row) -> Way:
        key, means = _key(row), (row["protocol"], row["url"], row["headers"])
        known = self._ways.get(key)
        if known is not None and known[0] == means:
            return known[1]
        await self._forget(key)
        headers = msgspec.json.decode(row["headers"], type=dict[str, str])
        found = way(self.outward, row["protocol"], row["url"], headers)
        self._ways[key] = (means, found)
        return found

    async def _forget(self, key: Key) -> None:
        known = self._ways.pop(key, None)
        if known is not None:
            await known[1].close()

    async def test(self, row: Row) -> Answer:
        """One record that is nobody's event, sent now; how it was answered."""
        headers = msgspec.json.decode(row["headers"], type=dict[str, str])
        line = way(self.outward, row["protocol"], row["url"], headers)
        try:
            return await line.send(otlp.trial(self._resource(row), self._house.clock()))
        finally:
            await line.close()

    def _resource(self, row: Row) -> dict[str, str]:
        settings = self._house.settings
        return {
            "service.name": settings.service_name,
            "service.version": settings.service_version,
            "av.tenant.id": row["tenant_id"],
            "av.environment": settings.environment,
        }

    def measures(self) -> list[Measure]:
        all_ = self._standing.values()
        now_ns = self._house.clock()
        ages = [now_ns - one.oldest_ns for one in all_ if one.oldest_ns is not None and one.behind]
        return [
            Measure("observatory_export_sent_total", "counter", "Events taken by backends", self._sent),
            Measure(
                "observatory_export_refused_total",
                "counter",
                "Events backends refused for good",
                self._refused,
            ),
            Measure(
                "observatory_export_failures_total", "counter", "Times a backend took nothing", self._failures
            ),
            Measure(
                "observatory_export_lag_events",
                "gauge",
                "Events not exported yet, of the exporter furthest behind",
                max((one.behind for one in all_), default=0),
            ),
            Measure(
                "observatory_export_lag_seconds",
                "gauge",
                "Age of the oldest event that is not exported yet",
                max(0.0, max(ages, default=0) / 1e9),
            ),
            Measure(
                "observatory_exporters_failing",
                "gauge",
                "Exporters whose backend took nothing last time",
                sum(one.failing for one in all_),
            ),
        ]


def settled(row: Row, stretch: Stretch, found: Sequence[Delivered]) -> tuple[Progress, Answer | None]:
    """What can be written down: as far as batch after batch was settled without a gap."""
    cursor: int = row["cursor"]
    until, sent, count, refusals, stopped = stretch.until, 0, 0, list[Refusal](), None
    for batch, one in zip(stretch.batches, found, strict=True):
        sent += one.sent
        count += one.settled
        refusals += [_alone(culprit) for culprit in one.culprits] + [_among(part) for part in one.parts]
        if one.settled < len(batch):
            until, stopped = batch[one.settled].seq - 1, one.stopped
            break
    progress = Progress(
        row["exporter_id"], row["rounds"], cursor, until, sent, until - cursor - count, tuple(refusals)
    )
    return progress, stopped


def _alone(one: Culprit) -> Refusal:
    return Refusal(one.record.seq, one.record.seq, 1, one.reason, _is_echo([one.record]))


def _among(one: Part) -> Refusal:
    return Refusal(one.records[0].seq, one.records[-1].seq, one.rejected, one.reason, _is_echo(one.records))


def _is_echo(records: Sequence[Coded]) -> bool:
    return all(one.event_type == "export_refused" for one in records)


def _is_due(row: Row, now_ns: int) -> bool:
    """A failure that lies in the future was before the clock was set back: nobody waits for that."""
    return (row["next_ns"] or 0) <= now_ns or (row["problem_ns"] or 0) > now_ns


def _key(row: Row) -> Key:
    return row["tenant_id"], row["exporter_id"]
