"""The webhook worker: a durable cursor over the record per endpoint, and a delivery lane per receiver.

Invariants: only committed events are sent, and deliveries are committed before they are sent: a crash between
two steps costs a repeat under the same id, never a loss. Each endpoint has its own lane with its own rate,
parallel attempts and pauses: one that hangs or fails delays only itself. An attempt that could not be
recorded is not repeated at once: the lane waits for the store. An idle deployment costs one read of the log
heads per poll.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from observatory.errors import NotDurable, ObservatoryError
from observatory.features.webhooks import commands_sending as acts
from observatory.features.webhooks.event_reader import PAGE, EndpointEventReader
from observatory.features.webhooks.receiver_queue import DeliveryLane
from observatory.features.webhooks.retry import BREAK_AT, S, give_up_after_s
from observatory.features.webhooks.types_rows import PendingDeliveries, WebhookRows
from observatory.pipeline.state import Command
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Measure
from observatory.runtime.wait_for_wakeup import wait_for_wakeup
from observatory.runtime.worker_context import TenantWatch

LOOK_S, SHORT_S = 0.5, 0.02
ALL_AT_ONCE = 128
AHEAD = 64  # deliveries of an endpoint read ahead
PAGES = 20  # of the record per poll
LAZY = 5_000  # a cursor that passed only unmatched events is stored this often
FIGURES_S = 5.0
AGED_S, AGED = 5.0, 200
OVER_S = 300.0  # how often expired secrets are searched
HURT_S = 5.0
Row = dict[str, Any]
log = logging.getLogger("observatory.webhooks")


class DeliveryOutcome(NamedTuple):
    """The result of one attempt. `detail` is a plain sentence without secrets or payload."""

    ok: bool
    code: int | None = None
    detail: str = ""
    retry_after_s: int | None = None
    gone: bool = False  # the receiver reports that it is gone: the endpoint is disabled
    excerpt: str = ""  # the start of the response


class Transport(Protocol):
    """Sends one delivery of one kind of endpoint. Never raises for what a receiver does."""

    async def send(
        self, endpoint: Row, delivery_id: str, event: Mapping[str, Any], body: bytes, now_ns: int
    ) -> DeliveryOutcome:
        """`event` is the archived one; `body` its bytes in Standard Webhooks' form."""


class WebhookLease(Protocol):
    async def lead(self) -> int | None: ...
    async def resign(self) -> None: ...


class WebhookWorkerContext(home.WorkerContext, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


class WebhookWorker:
    def __init__(
        self,
        app: WebhookWorkerContext,
        rows: WebhookRows,
        transports: Mapping[str, Transport],
        leader: WebhookLease | None = None,
    ) -> None:
        self._app, self._rows, self._leader = app, rows, leader
        self.transports = dict(transports)
        self.reading = EndpointEventReader(app.store)
        self._watch = TenantWatch(app.store)
        self._lanes: dict[str, dict[str, DeliveryLane]] = {}
        self._places = asyncio.Semaphore(ALL_AT_ONCE)
        self._group: asyncio.TaskGroup | None = None
        self._wake = asyncio.Event()
        self._pending_counts: dict[str, dict[str, PendingDeliveries]] = {}
        self._counted_at: dict[str, float] = {}
        self._aged_at: dict[str, float] = {}
        self._secrets_checked: dict[str, float] = {}
        self._visited: dict[str, float] = {}
        self._behind: set[str] = set()  # tenants with unread events after a poll
        self._ending = asyncio.Event()
        self.counted = dict.fromkeys(("delivered", "failed", "dead"), 0)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                while True:
                    try:
                        await self.look(self._app.clock())
                    except ObservatoryError as error:  # the database is unavailable: retried at the next poll
                        log.warning("webhook delivery paused: %s", error)
                    await wait_for_wakeup(self._wake, self._rest_s())
                    self._wake.clear()
                    await asyncio.sleep(SHORT_S)
        finally:
            self._group = None

    def _rest_s(self) -> float:
        """Time until the next poll, or until something is due."""
        now_ns = self._app.clock()
        # A lane at its limit can start nothing: a finished attempt wakes the loop.
        due = [lane.next_ns for lane in self._all() if lane.next_ns and lane.is_due(lane.next_ns)]
        return min([LOOK_S, *(max(0.0, (at - now_ns) / S) for at in due)])

    async def drain(self) -> None:
        """Start nothing more, and wait for attempts in flight."""
        self._ending.set()
        while workers := [task for lane in self._all() for task in lane.workers]:
            await asyncio.wait(workers)
        if self._leader is not None:
            await self._leader.resign()

    async def look(self, now_ns: int) -> None:
        """Find new and due deliveries, and start the lanes."""
        if self._ending.is_set():
            return
        if self._leader is not None and await self._leader.lead() is None:
            for lane in self._all():  # another gateway sends now; attempts in flight finish
                lane.queue.clear()
            if self._lanes:  # and after regaining the lease everything is read again
                self._watch, self._lanes, self._pending_counts = TenantWatch(self._app.store), {}, {}
            return
        awake = dict(await self._watch.awake())
        for tenant_id in awake.keys() | self._behind:
            try:
                await self._visit(tenant_id, awake.get(tenant_id), now_ns)
            except NotDurable as error:  # the next tenant may succeed
                log.warning("webhook delivery of a tenant paused: %s", error)
        now_ns = self._app.clock()  # what was just queued is due
        for tenant_id, lanes in list(self._lanes.items()):
            if self._visited[tenant_id] + 2 * home.AGAIN_S < time.monotonic():
                self._forget(tenant_id)  # it is disabled: every active tenant is visited more often
                continue
            for lane in list(lanes.values()):
                if lane.is_due(now_ns):
                    await self._fill(tenant_id, lane, now_ns)
            await self._age(tenant_id, now_ns)
            await self._end_secrets(tenant_id, now_ns)
            await self._count(tenant_id)

    async def _visit(self, tenant_id: str, head: int | None, now_ns: int) -> None:
        endpoints = await self._rows.rows(tenant_id, "webhook_endpoints", removed_ns=None)
        self._visited[tenant_id] = time.monotonic()
        before = self._lanes.get(tenant_id, {})
        lanes: dict[str, DeliveryLane] = {}
        for endpoint in endpoints:
            lane = lanes[endpoint["endpoint_id"]] = before.get(endpoint["endpoint_id"]) or DeliveryLane(
                endpoint
            )
            lane.renew(endpoint)
            if head is not None:  # the head moved: something may be queued
                lane.next_ns = 0
        for gone in before.keys() - lanes.keys():
            before[gone].queue.clear()
        if lanes:
            self._lanes[tenant_id] = lanes
            await self._advance(tenant_id, list(lanes.values()), now_ns)
        else:
            self._forget(tenant_id)
        if head is not None and tenant_id not in self._behind:
            self._watch.rest(tenant_id, head)

    def _forget(self, tenant_id: str) -> None:
        self._behind.discard(tenant_id)
        for known in (
            self._lanes,
            self._pending_counts,
            self._counted_at,
            self._aged_at,
            self._secrets_checked,
            self._visited,
        ):
            known.pop(tenant_id, None)

    async def _advance(self, tenant_id: str, lanes: list[DeliveryLane], now_ns: int) -> None:
        """Read the record from each endpoint's cursor on."""
        lanes = [lane for lane in lanes if lane.endpoint["state"] == "active"]
        self._behind.discard(tenant_id)
        for _ in range(PAGES if lanes else 0):
            after = min(lane.seen for lane in lanes)
            events = await self.reading.page(tenant_id, after)
            if not events:
                return
            last = events[-1].sequence_number
            part = [lane for lane in lanes if lane.seen < last]
            found = await self.reading.matched(tenant_id, events, [lane.subscription for lane in part])
            for lane in part:
                new = [
                    one
                    for one in found[lane.endpoint["endpoint_id"]]
                    if one.sequence_number > lane.endpoint["cursor_seq"]
                ]
                await self._queue(tenant_id, lane, last, new, now_ns)
            if len(events) < PAGE:
                return
        self._behind |= {tenant_id} if lanes else set()
        self._wake.set()

    async def _queue(
        self, tenant_id: str, lane: DeliveryLane, last: int, new: list[Any], now_ns: int
    ) -> None:
        since: int = lane.endpoint["cursor_seq"]
        if new or last - since >= LAZY or lane.is_changed:
            who = self._app.gateway_principal(tenant_id)
            act = acts.queue(who, lane.endpoint["endpoint_id"], since, last, new, now_ns)
            if await self._submit(tenant_id, act) != 1:  # another gateway moved it: its row is read again
                self._lanes[tenant_id].pop(lane.endpoint["endpoint_id"], None)
                self._behind.add(tenant_id)
                return
            lane.endpoint["cursor_seq"] = last
            lane.next_ns, lane.is_changed = 0, False
        lane.seen = last

    async def _submit(self, tenant_id: str, act: Command) -> Any:
        """The command's result. A store that accepts nothing answers 503: treated as unavailable."""
        verdict = (await self._app.committer.submit(tenant_id, [act]))[0]
        if verdict.code != 200:
            raise NotDurable(f"the store returned {verdict.code}")
        return verdict.answer

    async def _fill(self, tenant_id: str, lane: DeliveryLane, now_ns: int) -> None:
        """Read due deliveries into the lane and start its workers."""
        queued = {row["delivery_id"] for row in lane.queue} | lane.busy
        lane.next_ns = None  # concurrent updates during this read set it again
        rows = await self._rows.deliveries_first(tenant_id, lane.endpoint["endpoint_id"], AHEAD + len(queued))
        fresh = [row for row in rows if row["delivery_id"] not in queued]
        due = [row for row in fresh if row["next_ns"] <= now_ns]
        lane.queue.extend(due)
        for row in fresh[len(due) : len(due) + 1]:
            lane.due_at(row["next_ns"])
        if len(due) >= AHEAD:
            lane.due_at(now_ns)  # there may be more
        while self._group is not None and len(lane.workers) < min(lane.places, len(lane.queue)):
            if self._ending.is_set():
                return
            task = self._group.create_task(self._work(tenant_id, lane))
            lane.workers.add(task)
            task.add_done_callback(lane.workers.discard)
            task.add_done_callback(lambda _: self._wake.set())

    async def _work(self, tenant_id: str, lane: DeliveryLane) -> None:
        while lane.queue and lane.may_send(self._app.clock()) and not self._ending.is_set():
            if len(lane.workers) > lane.places:
                return
            row = lane.queue.popleft()
            lane.busy.add(row["delivery_id"])
            try:
                await lane.turn(self._ending)
                if self._ending.is_set() or not lane.may_send(self._app.clock()):
                    lane.next_ns = 0  # still pending
                    break
                async with self._places:
                    await self.attempt(lane.endpoint, row, lane)
            except ObservatoryError as error:  # possibly attempted, but not recorded
                log.warning("a webhook attempt could not be recorded: %s", error)
                lane.hurt = time.monotonic() + HURT_S
                lane.next_ns = 0
            finally:
                lane.busy.discard(row["delivery_id"])
        if lane.queue:  # paused or stopping: what was read ahead is read again later
            lane.queue.clear()
            lane.next_ns = 0

    async def attempt(self, endpoint: Row, delivery: Row, lane: DeliveryLane | None = None) -> Row | None:
        """One attempt, recorded; returns the delivery afterwards, None if the attempt did not count."""
        tenant_id, now_ns = endpoint["tenant_id"], self._app.clock()
        began = time.monotonic()
        rendered = await self.reading.rendered(delivery)
        transport = self.transports.get(endpoint["kind"])
        if rendered is None or transport is None:
            outcome, preview = DeliveryOutcome(False, detail="the event is no longer available"), ""
        else:
            event, body = rendered
            preview = body[:2_048].decode("utf-8", "replace")
            try:
                outcome = await transport.send(endpoint, delivery["delivery_id"], event, body, now_ns)
            except Exception as error:  # a bug in the transport fails only this attempt
                log.exception("webhook transport failed")
                outcome = DeliveryOutcome(False, detail=f"sending failed: {type(error).__name__}")
        took_ms = int((time.monotonic() - began) * 1_000)
        attempt = acts.DeliveryAttempt(
            delivery["attempts"] + 1,
            now_ns,
            took_ms,
            outcome.ok,
            outcome.code,
            outcome.detail,
            outcome.excerpt,
            outcome.retry_after_s,
            outcome.gone,
            preview,
        )
        who = self._app.gateway_principal(tenant_id)
        ids = endpoint["endpoint_id"], delivery["delivery_id"]
        act = acts.settle(who, *ids, attempt, self._app.clock())
        answer = await self._submit(tenant_id, act)
        if answer is None:
            return None
        after, endpoint_after = answer
        self.counted["delivered" if attempt.ok else "failed"] += 1
        self.counted["dead"] += after["state"] == "dead"
        if lane is not None:
            health = ("failures", "paused_until_ns", "last_ok_ns", "last_failed_ns", "state")
            lane.endpoint |= {name: endpoint_after[name] for name in health}
            if after["next_ns"] is not None:
                lane.due_at(after["next_ns"])
        return dict(after)

    async def _age(self, tenant_id: str, now_ns: int) -> None:
        """Give up deliveries that could not be attempted within their whole schedule."""
        if self._aged_at.get(tenant_id, 0.0) > time.monotonic():
            return
        self._aged_at[tenant_id] = time.monotonic() + AGED_S
        for lane in self._lanes[tenant_id].values():
            endpoint = lane.endpoint
            if endpoint["state"] == "active" and endpoint["failures"] < BREAK_AT:
                continue  # due deliveries are attempted
            schedule = msgspec.json.decode(endpoint["schedule_s"])
            before_ns = now_ns - int(give_up_after_s(schedule) * S)
            old = await self._rows.deliveries_old(tenant_id, endpoint["endpoint_id"], before_ns, AGED)
            previews = {
                row["delivery_id"]: f"{row['event_type']} {row['event_seq']}"
                for row in old
                if row["delivery_id"] not in lane.busy
            }
            if not previews:
                continue
            is_off = endpoint["state"] == "disabled"
            reason = (
                "the endpoint was disabled"
                if is_off
                else "timed out: the receiver failed for the whole schedule"
            )
            who = self._app.gateway_principal(tenant_id)
            act = acts.give_up(who, endpoint["endpoint_id"], previews, before_ns, reason, now_ns)
            self.counted["dead"] += await self._submit(tenant_id, act)

    async def _end_secrets(self, tenant_id: str, now_ns: int) -> None:
        if self._secrets_checked.get(tenant_id, 0.0) > time.monotonic():
            return
        self._secrets_checked[tenant_id] = time.monotonic() + OVER_S
        rows = await self._rows.rows(tenant_id, "webhook_secrets")
        replaced = [row for row in rows if row["secret"] and row["ends_ns"] is not None]
        for endpoint_id in {row["endpoint_id"] for row in replaced if row["ends_ns"] <= now_ns}:
            who = self._app.gateway_principal(tenant_id)
            await self._submit(tenant_id, acts.end_secrets(who, endpoint_id, now_ns))

    async def _count(self, tenant_id: str) -> None:
        if self._counted_at.get(tenant_id, 0.0) <= time.monotonic():
            found = await self._rows.deliveries_waiting(tenant_id)
            live = self._lanes.get(tenant_id, {})
            self._pending_counts[tenant_id] = {name: one for name, one in found.items() if name in live}
            self._counted_at[tenant_id] = time.monotonic() + FIGURES_S

    def _all(self) -> list[DeliveryLane]:
        return [lane for lanes in self._lanes.values() for lane in lanes.values()]

    def measures(self) -> list[Measure]:
        waiting = [one for found in self._pending_counts.values() for one in found.values()]
        since_ns = min((one.since_ns for one in waiting), default=None)
        oldest_s = 0.0 if since_ns is None else max(0.0, (self._app.clock() - since_ns) / S)
        now_ns = self._app.clock()
        stopped = sum(not lane.may_send(now_ns) for lane in self._all())
        name = "observatory_webhooks"
        measures: list[Measure] = [
            Measure(f"{name}_endpoints", "gauge", "Outbound webhook endpoints", len(self._all())),
            Measure(f"{name}_stopped", "gauge", "Endpoints disabled or paused", stopped),
            Measure(f"{name}_waiting", "gauge", "Pending deliveries", sum(one.many for one in waiting)),
            Measure(
                f"{name}_oldest_waiting_seconds", "gauge", "Age of the oldest pending delivery", oldest_s
            ),
            Measure(
                f"{name}_in_flight", "gauge", "Attempts in flight", sum(len(o.busy) for o in self._all())
            ),
        ]
        return measures + [
            Measure(f"{name}_{how}_total", "counter", f"Attempts {how} since start", count)
            for how, count in self.counted.items()
        ]
