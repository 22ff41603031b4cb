"""The worker that evaluates alert rules and scaling triggers: reads the trail and levels, submits findings.

Invariants: every finding is checked again by a command under the lock; the lease only saves work. The trail
is read by a durable cursor, each event once, including those written while no worker ran; levels are read
every few seconds, and only those some rule uses. On any failure the in-memory state is dropped and read again
from the record. A tenant without rules, or with nothing firing and nothing new, is skipped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from observatory.errors import ObservatoryError, StoreError
from observatory.features.alerting.commands import rule_from_row
from observatory.features.alerting.commands_findings import CURSOR, AlertFinding, record_findings
from observatory.features.alerting.evaluation import RuleEvaluator
from observatory.features.alerting.levels import AlertLevels
from observatory.features.alerting.types_readings import LevelReadings
from observatory.features.alerting.types_rows import AlertingRows
from observatory.features.alerting.types_rules import KINDS, LONGEST_S, AlertRule
from observatory.pipeline.ports import EventFilter, StoredEvent
from observatory.runtime import worker_context as home
from observatory.runtime.leader import Leader
from observatory.runtime.metrics import Measure
from observatory.runtime.worker_context import TenantWatch

LOOK_S = 1.0
LEVEL_S = 2.0  # how often levels are read while anything happens, else with every poll of `Watch`
KEEP_S = 30.0  # how often a cursor that moved without findings is written
PAGE = 500
PAGES = 20  # of one tenant per poll
BACK = 200_000  # how many of the newest events are read to refill the windows after a restart
MAX_STATES = 20_000
AT_ONCE = 100  # findings of one command
SECOND = 1_000_000_000
Row = dict[str, Any]
log = logging.getLogger("observatory.alerts")


class AlertWorkerContext(home.WorkerContext, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...
    @property
    def url(self) -> str: ...


class _Known:
    """The in-memory state of one tenant."""

    def __init__(self, judge: RuleEvaluator, cursor: int) -> None:
        self.judge = judge
        self.kept, self.kept_at = cursor, time.monotonic()
        self.read_at = -1  # the head at which its rules were read
        self.levels_at = 0.0
        self.marks: tuple[bytes, ...] = ()


class AlertWorker:
    def __init__(
        self,
        app: AlertWorkerContext,
        levels: AlertLevels,
        leader: Leader,
        watch: TenantWatch | None = None,
        believed: Callable[[int], int] = lambda now_ns: now_ns,
    ) -> None:
        """`believed` corrects the time: a clock jump makes no agent silent and no gate overdue (S1303)."""
        assert isinstance(app.store, AlertingRows)
        self._app, self._levels, self._leader, self._believed = app, levels, leader, believed
        self._rows: AlertingRows = app.store
        self._watch = watch or TenantWatch(app.store)
        self._known: dict[str, _Known] = {}
        self._bare: set[str] = set()  # tenants without rules and without anything firing for former ones
        self._judged = self._recorded = self._failed = 0
        self._lag = 0

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                try:
                    await self.look(self._believed(self._app.clock()))
                except ObservatoryError as error:  # the database is unavailable: retried at the next poll
                    self._failed += 1
                    log.warning("alert evaluation paused: %s", error)
        finally:
            await self._leader.resign()

    async def level(self, tenant_id: str, rule: AlertRule, now_ns: int) -> LevelReadings:
        """The current level of that rule, by subject, for any caller."""
        return await self._levels.read(tenant_id, rule.condition, rule.scope, rule.threshold, now_ns)

    async def look(self, now_ns: int) -> int:
        """How many findings were recorded; raises what the directory raises."""
        if await self._leader.lead() is None:
            self._known.clear()
            self._bare.clear()  # another gateway leads now: what it leaves open is read again
            return 0
        recorded, lag = 0, 0
        for tenant_id, head in await self._watch.awake():
            try:
                recorded += await self._look_at(tenant_id, head, now_ns)
            except ObservatoryError as error:  # this tenant is read again; the others are not affected
                self._known.pop(tenant_id, None)
                self._failed += 1
                log.warning("alert evaluation of tenant %s paused: %s", tenant_id, error)
            known = self._known.get(tenant_id)
            lag = max(lag, 0 if known is None else head - known.judge.cursor)
        self._lag = lag
        return recorded

    async def _look_at(self, tenant_id: str, head: int, now_ns: int) -> int:
        known = await self._obeying(tenant_id, head, now_ns)
        if known is None:
            self._watch.rest(tenant_id, head)
            return 0
        recorded = await self._read_on(tenant_id, known, head, now_ns)
        is_due = time.monotonic() >= known.levels_at
        if is_due:
            await self._read_levels(tenant_id, known, now_ns)
        calm = await self._calm(tenant_id, known.judge) if is_due else frozenset[str]()
        known.judge.tick(now_ns, calm)
        recorded += await self._hand_in(tenant_id, known, now_ns)
        if is_due:
            known.judge.prune(now_ns)
        if is_due and known.judge.cursor >= head and known.judge.is_calm:
            self._watch.rest(tenant_id, head)
            if not known.judge.rules:
                self._known.pop(tenant_id, None)
        return recorded

    async def _obeying(self, tenant_id: str, head: int, now_ns: int) -> _Known | None:
        """The tenant with its current rules; None when it has none and nothing is firing."""
        known = self._known.get(tenant_id)
        if known is not None and known.read_at == head:
            return known
        rules = [
            rule_from_row(row) for row in await self._rows.rows(tenant_id, "alert_rules", removed_ns=None)
        ]
        if known is None:
            # Alerts of removed rules must be resolved: checked once for a tenant without rules.
            if not rules and (tenant_id in self._bare or not await self._is_open(tenant_id)):
                self._bare.add(tenant_id)
                return None
            self._bare.discard(tenant_id)
            known = await self._restored(tenant_id, rules, head, now_ns)
        elif {rule.rule_id: rule for rule in rules if rule.enabled} != known.judge.rules:
            known.judge.obey(rules, {}, now_ns)
            known.levels_at = 0.0
        known.read_at = head
        known.marks = tuple(f'"event_type":"{name}"'.encode() for name in known.judge.events)
        return known

    async def _is_open(self, tenant_id: str) -> bool:
        return bool(await self._rows.alerts_open(tenant_id, None, 1))

    async def _restored(self, tenant_id: str, rules: list[AlertRule], head: int, now_ns: int) -> _Known:
        """Rebuild the in-memory state: cursor, rule states, and the contents of the windows."""
        rows = await self._rows.alert_standings(tenant_id, now_ns - LONGEST_S * SECOND, MAX_STATES)
        stored_cursor = await self._rows.rows(tenant_id, "knobs", name=CURSOR)
        cursor = int(stored_cursor[0]["value"]) if stored_cursor else 0
        # Nothing before the oldest rule counts.
        numbers = [rule.since_seq for rule in rules if not KINDS[rule.condition].is_level]
        cursor = max(cursor, min(numbers, default=head))
        known = _Known(RuleEvaluator(self._app.url, cursor), cursor)
        names = {row["rule_id"] for row in rows if row["state"] == "firing"} - {one.rule_id for one in rules}
        gone = await self._rows.rows(tenant_id, "alert_rules", rule_id=sorted(names)) if names else []
        known.judge.restore(rows)
        known.judge.obey(rules, {row["rule_id"]: rule_from_row(row) for row in gone}, now_ns)
        marks = tuple(f'"event_type":"{name}"'.encode() for name in known.judge.events)
        after, since_ns = max(0, cursor - BACK), now_ns - known.judge.longest_s * SECOND
        while marks:
            where = EventFilter(
                after=after, before=cursor + 1, since_ns=since_ns, severity_min=known.judge.severity_min
            )
            page = await self._app.store.events(tenant_id, where, PAGE, newest_first=False)
            for event in _marked(page, marks):
                known.judge.hear(event.sequence_number, msgspec.json.decode(event.record), is_new=False)
            if len(page) < PAGE:
                break
            after = page[-1].sequence_number
        self._known[tenant_id] = known
        return known

    async def _read_on(self, tenant_id: str, known: _Known, head: int, now_ns: int) -> int:
        """Read new events, a page at a time; findings of each page are recorded before the next is read."""
        recorded = 0
        for _ in range(PAGES if known.marks else 0):
            where = EventFilter(
                after=known.judge.cursor, before=head + 1, severity_min=known.judge.severity_min
            )
            page = await self._app.store.events(tenant_id, where, PAGE, newest_first=False)
            for event in _marked(page, known.marks):
                known.judge.hear(event.sequence_number, msgspec.json.decode(event.record))
                self._judged += 1
            known.judge.cursor = page[-1].sequence_number if len(page) == PAGE else head
            recorded += await self._hand_in(tenant_id, known, now_ns)
            if len(page) < PAGE:
                return recorded
        if not known.marks:
            known.judge.cursor = max(head, known.judge.cursor)
        return recorded

    async def _read_levels(self, tenant_id: str, known: _Known, now_ns: int) -> None:
        known.levels_at = time.monotonic() + LEVEL_S
        asked: dict[tuple[Any, Any], list[AlertRule]] = {}
        for rule in known.judge.rules.values():
            if KINDS[rule.condition].is_level:
                asked.setdefault((rule.condition, rule.scope), []).append(rule)
        for (condition, scope), rules in asked.items():
            least = min(rule.threshold for rule in rules)
            try:
                readings = await self._levels.read(tenant_id, condition, scope, least, now_ns)
            except StoreError as error:  # the level is unknown: every state stays as it was
                self._failed += 1
                log.warning("cannot read the level of %s: %s", condition, error)
                continue
            for rule in rules:
                if self._levels.knows(rule, now_ns):
                    known.judge.level(rule, readings, now_ns)

    async def _calm(self, tenant_id: str, judge: RuleEvaluator) -> frozenset[str]:
        """Firing sessions that have recovered."""
        rules = [one for one in judge.rules.values() if (one.condition, one.scope) == ("entropy", "session")]
        names = {subject.partition(":")[2] for rule in rules for subject in judge.troubled(rule)}
        calm = await self._levels.calm(tenant_id, sorted(names)) if names else set[str]()
        return frozenset(f"session:{name}" for name in calm)

    async def _hand_in(self, tenant_id: str, known: _Known, now_ns: int) -> int:
        """Record the findings together with the cursor. If another gateway recorded them, the state is
        rebuilt."""
        found, cursor = known.judge.taken(), known.judge.cursor
        is_late = bool(known.marks) and cursor > known.kept and time.monotonic() >= known.kept_at + KEEP_S
        if not found and not is_late:
            return 0
        who = self._app.gateway_principal(tenant_id)
        parts: list[list[AlertFinding]] = [found[i : i + AT_ONCE] for i in range(0, len(found), AT_ONCE)] or [
            []
        ]
        acts = [
            record_findings(
                who, part, cursor if part is parts[-1] else 0, now_ns
            )  # the last one moves the cursor
            for part in parts
        ]
        verdicts = await self._app.committer.submit(tenant_id, acts)
        if any(verdict.code != 200 for verdict in verdicts):
            raise StoreError("alert findings could not be stored")
        known.kept, known.kept_at = cursor, time.monotonic()
        recorded = sum(len(verdict.answer) for verdict in verdicts)
        self._recorded += recorded
        if recorded < len(found):
            self._known.pop(tenant_id, None)
        return recorded

    def measures(self) -> list[Measure]:
        judges = [known.judge for known in self._known.values()]
        rules = sum(len(one.rules) for one in judges)
        return [
            Measure("observatory_alert_rules", "gauge", "Alert rules and scaling triggers in force", rules),
            Measure("observatory_alerts_firing", "gauge", "Alerts open", sum(one.firing for one in judges)),
            Measure(
                "observatory_alert_events_total", "counter", "Events judged by alert rules", self._judged
            ),
            Measure(
                "observatory_alert_transitions_total",
                "counter",
                "Alerts raised and resolved, and triggers",
                self._recorded,
            ),
            Measure("observatory_alert_failures_total", "counter", "Failed evaluations", self._failed),
            Measure("observatory_alert_lag_events", "gauge", "Events the evaluator is behind", self._lag),
        ]


def _marked(page: list[StoredEvent], marks: tuple[bytes, ...]) -> list[StoredEvent]:
    """Those worth decoding: a quoted name can occur in a record only as a member's value."""
    return [event for event in page if any(mark in event.record for mark in marks)]
