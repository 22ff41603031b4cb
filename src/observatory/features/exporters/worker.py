"""The export worker: sends every audit event of a tenant, in order, to each OTLP backend, at least once.

Invariants: it reads the record after a durable cursor and stores its progress, so a restart continues there
and only sends in-flight batches again. A backend that is down delays no other and loses nothing: it is
retried with backoff, and its lag is visible. A record is skipped only when its rejection is proven
(`rejected_records.py`), counted and on record. Payloads are never sent. Only one of several gateways exports;
if two did, one's progress would count and the other's sends would be repeats.
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
from observatory.features.exporters.commands import ExportFailure, ExportProgress, ExportRefusal, Row
from observatory.features.exporters.otlp import EncodedRecord
from observatory.features.exporters.rejected_records import (
    Delivered,
    PartialRejection,
    RejectedRecord,
    deliver,
)
from observatory.features.exporters.transports import ExportResult, ExportTransport, open_transport
from observatory.features.exporters.types_settings import EventFilterMatcher, Filters
from observatory.pipeline.ports import Bus, EventFilter, StoredEvent
from observatory.pipeline.state import Command
from observatory.protocol.clock import to_ns
from observatory.runtime import worker_context as home
from observatory.runtime.leader import Leader
from observatory.runtime.metrics import Measure
from observatory.runtime.outbound_http import OutboundHttp
from observatory.runtime.wait_for_wakeup import wait_for_wakeup
from observatory.runtime.worker_context import TenantWatch

MAX_RECORDS: Final = 512
MAX_BYTES: Final = 4 << 20  # of one request before compression: what collectors accept over gRPC
AT_ONCE: Final = 4  # batches in flight to one backend
PACE_S: Final = 0.2  # between two polls while there is something to send
LOOK_S: Final = 1.0
IDLE_S: Final = 5.0  # between polls when idle, and how long a tenant without exporters is not checked again
FIRST_S, LONGEST_S = 1.0, 60.0
UNREADABLE: Final = (msgspec.MsgspecError, struct.error, ValueError, KeyError)
Key = tuple[str, str]  # tenant, exporter
log = logging.getLogger("observatory.exporter")


class ExportWorkerContext(home.WorkerContext, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


class ReadStretch(NamedTuple):
    """One read of the record: batches to send, and the number up to which they cover it."""

    batches: list[list[EncodedRecord]]
    until: int
    oldest_ns: int


class ExporterState(msgspec.Struct):
    """An exporter's state for the metrics."""

    behind: int = 0
    oldest_ns: int | None = None
    failing: bool = False


def backoff_s(failures: int, chance: float) -> float:
    """One second, doubled each time, at most a minute; `chance` spreads it over its upper half."""
    return min(LONGEST_S, FIRST_S * 2.0 ** min(failures, 16)) * (0.5 + chance / 2)


def cut(events: Sequence[StoredEvent], sieve: EventFilterMatcher) -> ReadStretch:
    """Decode, filter, encode: runs in a thread, so that requests are not delayed."""
    batches: list[list[EncodedRecord]] = [[]]
    size, oldest_ns = 0, 0
    for stored in events:
        event = otlp.read(stored.record)
        oldest_ns = oldest_ns or to_ns(event.observed_timestamp)
        if not sieve.takes(event):
            continue
        one = otlp.encode_event(event)
        if len(batches[-1]) >= MAX_RECORDS or (batches[-1] and size + len(one.record) > MAX_BYTES):
            batches.append([])
            size = 0
        batches[-1].append(one)
        size += len(one.record) + len(one.resource)
    found = [batch for batch in batches if batch]
    return ReadStretch(found, events[-1].sequence_number, oldest_ns)


class ExportWorker:
    def __init__(self, app: ExportWorkerContext, outward: OutboundHttp, leader: Leader, bus: Bus) -> None:
        self._app, self.outward, self._leader, self._bus = app, outward, leader, bus
        self._watch = TenantWatch(app.store)
        self._moved = asyncio.Event()
        self._at_work: dict[Key, asyncio.Task[None]] = {}
        self._ways: dict[Key, tuple[tuple[str, str, str], ExportTransport]] = {}
        self._standing: dict[Key, ExporterState] = {}
        self._without: dict[str, float] = {}
        self._unkept: dict[Key, tuple[int, float]] = {}  # failed writes in a row, and when to retry
        self._sent = self._refused = self._failures = 0

    async def run(self) -> None:
        """The worker loop: woken by commits and by the clock."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._listen())
                while True:
                    try:
                        await self.look(group)
                    except ObservatoryError as error:  # the database is unavailable: retried at the next poll
                        log.warning("export paused: %s", error)
                    is_busy = bool(self._standing)
                    await wait_for_wakeup(self._moved, LOOK_S if is_busy else IDLE_S)
                    await asyncio.sleep(PACE_S)
                    self._moved.clear()
        finally:
            self._at_work.clear()
            for key in list(self._ways):
                await self._forget(key)
            await self._leader.resign()

    def wake(self, tenant_id: str) -> None:
        """The tenant has an exporter now; other gateways notice a little later."""
        self._without.pop(tenant_id, None)
        self._moved.set()

    async def _listen(self) -> None:
        async for _ in self._bus.subscribe():
            self._moved.set()

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Start a task for each exporter that is behind and has none yet."""
        if await self._leader.lead() is None:
            self._standing.clear()
            return
        now_ns = self._app.clock()
        for tenant_id, head in await self._watch.awake():
            if self._without.get(tenant_id, 0.0) > time.monotonic():
                continue
            behind = set[Key]()
            rows = await self._app.store.rows(tenant_id, "exporters", removed_ns=None)
            if not rows:
                self._without[tenant_id] = time.monotonic() + IDLE_S
            for row in rows:
                if row["state"] != "active" or row["cursor"] >= head:
                    continue
                behind.add(key := _key(row))
                state = self._standing.setdefault(key, ExporterState())
                state.behind, state.failing = head - row["cursor"], row["failures"] > 0
                waits = self._unkept.get(key, (0, 0.0))[1] > time.monotonic()
                if key not in self._at_work and not waits and _is_due(row, now_ns):
                    self._at_work[key] = group.create_task(self._work(row))
            for key in [one for one in self._standing if one[0] == tenant_id and one not in behind]:
                del self._standing[key]  # caught up, paused or removed
            active = {_key(row) for row in rows if row["state"] == "active"} | self._at_work.keys()
            for key in [one for one in self._ways if one[0] == tenant_id and one not in active]:
                await self._forget(key)  # close connections of paused or removed exporters
            if not behind:
                self._watch.rest(tenant_id, head)

    async def _work(self, row: Row) -> None:
        """Send until the exporter has caught up, was stopped, or fails."""
        key, name = _key(row), {"exporter_id": row["exporter_id"], "removed_ns": None}
        try:
            # Read again: the previous task may have advanced since.
            rows = await self._app.store.rows(row["tenant_id"], "exporters", **name)
            current: Row | None = rows[0] if rows else None
            while current and current["state"] == "active" and await self._leader.lead() is not None:
                current = await self._step(current)
        except ObservatoryError as error:
            # The database is down or full: progress is not stored and will be sent again, with backoff.
            count = self._unkept.get(key, (0, 0.0))[0]
            self._unkept[key] = count + 1, time.monotonic() + backoff_s(count, random.random())
            log.warning("exporter paused: %s", error)
        finally:
            self._at_work.pop(key, None)

    async def _step(self, row: Row) -> Row | None:
        """Send one stretch of the record; returns the row afterwards, None when the task ends here."""
        tenant_id, state = row["tenant_id"], self._standing.setdefault(_key(row), ExporterState())
        most = MAX_RECORDS * (1 if row["failures"] else AT_ONCE)
        span = EventFilter(after=row["cursor"])
        events = await self._app.store.events(tenant_id, span, most, newest_first=False)
        if not events:
            return None
        sieve = EventFilterMatcher(msgspec.json.decode(row["filters"], type=Filters), tenant_id)
        try:
            stretch = await asyncio.to_thread(cut, events, sieve)
        except UNREADABLE:  # the record was tampered with; other exporters are not affected
            await self._fail(
                row,
                ExportResult(
                    "later", "the record cannot be read; run `observatory verify` to locate the problem"
                ),
            )
            return None
        state.oldest_ns = stretch.oldest_ns
        progress, stopped = settled(row, stretch, await self._hand_over(row, stretch))
        self._sent += progress.sent
        self._refused += sum(one.records for one in progress.refusals)
        after: Row | None = row
        if progress.until > row["cursor"]:
            after = await self._submit(exporting.progress, tenant_id, progress)
        if after is None:  # removed, or moved by an operator
            await self._forget(_key(row))
            return None
        if stopped is not None:
            await self._fail(after, stopped)
            return None
        state.failing, state.behind = False, max(0, state.behind - len(events))
        # At the head it waits for more: a few large batches per second cost less than many small ones.
        return after if len(events) >= MAX_RECORDS else None

    async def _hand_over(self, row: Row, stretch: ReadStretch) -> list[Delivered]:
        transport = await self._way(row)

        async def send(records: Sequence[EncodedRecord]) -> ExportResult:
            return await transport.send(otlp.export_request(records))

        async def try_one() -> ExportResult:
            return await transport.send(otlp.test_request(self._resource(row), self._app.clock()))

        return await asyncio.gather(*(deliver(batch, send, try_one) for batch in stretch.batches))

    async def _fail(self, row: Row, stopped: ExportResult) -> None:
        self._failures += 1
        self._standing.setdefault(_key(row), ExporterState()).failing = True
        wait_s = max(backoff_s(row["failures"], random.random()), stopped.after_s or 0.0)
        failure = ExportFailure(
            row["exporter_id"],
            row["rounds"],
            stopped.detail,
            row["failures"] + 1,
            self._app.clock() + int(wait_s * 1e9),
        )
        after = await self._submit(exporting.fail, row["tenant_id"], failure)
        if after is None or after["state"] != "active":
            self._standing.pop(_key(row), None)  # paused, moved or removed meanwhile: not failing
        await self._forget(_key(row))

    async def _submit(
        self, act: Callable[..., Command], tenant_id: str, what: ExportProgress | ExportFailure
    ) -> Row | None:
        command = act(self._app.gateway_principal(tenant_id), what, self._app.clock())
        (verdict,) = await self._app.committer.submit(tenant_id, [command])
        self._unkept.pop((tenant_id, what.exporter_id), None)
        answer: Row | None = verdict.answer
        return answer

    async def _way(self, row: Row) -> ExportTransport:
        key, config = _key(row), (row["protocol"], row["url"], row["headers"])
        known = self._ways.get(key)
        if known is not None and known[0] == config:
            return known[1]
        await self._forget(key)
        headers = msgspec.json.decode(row["headers"], type=dict[str, str])
        found = open_transport(self.outward, row["protocol"], row["url"], headers)
        self._ways[key] = (config, found)
        return found

    async def _forget(self, key: Key) -> None:
        known = self._ways.pop(key, None)
        if known is not None:
            await known[1].close()

    async def test(self, row: Row) -> ExportResult:
        """Send one test record now; returns the response."""
        headers = msgspec.json.decode(row["headers"], type=dict[str, str])
        transport = open_transport(self.outward, row["protocol"], row["url"], headers)
        try:
            return await transport.send(otlp.test_request(self._resource(row), self._app.clock()))
        finally:
            await transport.close()

    def _resource(self, row: Row) -> dict[str, str]:
        settings = self._app.settings
        return {
            "service.name": settings.service_name,
            "service.version": settings.service_version,
            "av.tenant.id": row["tenant_id"],
            "av.environment": settings.environment,
        }

    def measures(self) -> list[Measure]:
        all_ = self._standing.values()
        now_ns = self._app.clock()
        ages = [now_ns - one.oldest_ns for one in all_ if one.oldest_ns is not None and one.behind]
        return [
            Measure("observatory_export_sent_total", "counter", "Events accepted by backends", self._sent),
            Measure(
                "observatory_export_refused_total",
                "counter",
                "Events permanently rejected by backends",
                self._refused,
            ),
            Measure(
                "observatory_export_failures_total", "counter", "Failed sends to backends", self._failures
            ),
            Measure(
                "observatory_export_lag_events",
                "gauge",
                "Events not exported yet, of the exporter with the largest lag",
                max((one.behind for one in all_), default=0),
            ),
            Measure(
                "observatory_export_lag_seconds",
                "gauge",
                "Age of the oldest event not exported yet",
                max(0.0, max(ages, default=0) / 1e9),
            ),
            Measure(
                "observatory_exporters_failing",
                "gauge",
                "Exporters whose last send failed",
                sum(one.failing for one in all_),
            ),
        ]


def settled(
    row: Row, stretch: ReadStretch, found: Sequence[Delivered]
) -> tuple[ExportProgress, ExportResult | None]:
    """The progress to store: up to the first gap in the settled batches."""
    cursor: int = row["cursor"]
    until, sent, count, refusals, stopped = stretch.until, 0, 0, list[ExportRefusal](), None
    for batch, one in zip(stretch.batches, found, strict=True):
        sent += one.sent
        count += one.settled
        refusals += [_alone(culprit) for culprit in one.culprits] + [_among(part) for part in one.parts]
        if one.settled < len(batch):
            until, stopped = batch[one.settled].seq - 1, one.stopped
            break
    progress = ExportProgress(
        row["exporter_id"], row["rounds"], cursor, until, sent, until - cursor - count, tuple(refusals)
    )
    return progress, stopped


def _alone(one: RejectedRecord) -> ExportRefusal:
    return ExportRefusal(one.record.seq, one.record.seq, 1, one.reason, _is_echo([one.record]))


def _among(one: PartialRejection) -> ExportRefusal:
    return ExportRefusal(
        one.records[0].seq, one.records[-1].seq, one.rejected, one.reason, _is_echo(one.records)
    )


def _is_echo(records: Sequence[EncodedRecord]) -> bool:
    return all(one.event_type == "export_refused" for one in records)


def _is_due(row: Row, now_ns: int) -> bool:
    """A failure recorded in the future was before the clock was set back: no reason to wait."""
    return (row["next_ns"] or 0) <= now_ns or (row["problem_ns"] or 0) > now_ns


def _key(row: Row) -> Key:
    return row["tenant_id"], row["exporter_id"]
