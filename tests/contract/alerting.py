"""The evaluator over the contract's house: the real one, looking when told to, by the house's own clock."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from observatory.features.alerting import commands as alerting
from observatory.features.alerting.levels import AlertLevels
from observatory.features.alerting.types_rules import Condition
from observatory.features.alerting.worker import AlertWorker, AlertWorkerContext
from observatory.features.fleet.types_traffic import SpendingReads
from observatory.features.transparency.types_log import LogRefusal
from observatory.pipeline.state import HOME_TENANT, RejectedBody, SubmissionResult
from observatory.runtime.leader import Leader
from observatory.runtime.worker_context import TenantWatch
from tests.alert_samples import SECOND, alert_rule
from tests.contract.conftest import Harness
from tests.contract.sealing import Keeper

Row = dict[str, Any]
TOLD = ("alert_raised", "alert_resolved", "scaling_triggered")


class Watchman(Keeper):
    """A gateway's evaluator; `again` is the process killed and started anew."""

    url = "http://here"

    def __init__(self, harness: Harness, costs: SpendingReads | None = None, started_ns: int = 0) -> None:
        super().__init__(harness)
        self.harness, self.clock = harness, harness.now
        self.refused: dict[str, LogRefusal] = {}
        self._costs, self._started_ns = costs, started_ns
        self._passed_s = 0.0
        self.alerts = self.again()

    def again(self, lease_s: float = 15.0) -> AlertWorker:
        levels = AlertLevels(
            self.harness.store, cast(SpendingReads, self._costs), self.refused, self._started_ns
        )
        self.levels = levels
        leader = Leader(self.harness.store, "alerts", lease_s, "gtw_one")
        watch = TenantWatch(self.harness.store, lambda: self._passed_s)
        self.alerts = AlertWorker(cast(AlertWorkerContext, self), levels, leader, watch)
        return self.alerts

    def look(self, after_s: float = 0.0) -> list[tuple[str, str]]:
        """One look so much later; what was told since the last one, as (event, subject)."""
        before = len(received(self.harness))
        self._passed_s += after_s
        now_ns = self.harness.wait(int(after_s * SECOND))
        self.harness.read(self.alerts.look(now_ns))
        return [(body["event_type"], body["subject"]) for body in received(self.harness)[before:]]


def received(harness: Harness, *names: str, tenant_id: str = HOME_TENANT) -> list[Row]:
    bodies = [json.loads(event.record)["body"] for event in harness.trail_of(tenant_id)]
    return [body for body in bodies if body["event_type"] in (names or TOLD)]


def add(harness: Harness, condition: Condition = "violations", **more: Any) -> Row:
    rule_id = f"alr_{condition}{more.pop('number', '')}"
    rule = alert_rule(condition, rule_id=rule_id, **{"name": rule_id} | more)
    (verdict,) = harness.submit(alerting.add(harness.admin(), rule, harness.now()))
    assert verdict.code == 201, verdict.answer
    return dict(verdict.answer)


def change(harness: Harness, row: Row, **more: Any) -> SubmissionResult:
    rule = msgspec.structs.replace(alerting.rule_from_row(row), **more)
    return harness.submit(alerting.change(harness.admin(), rule, harness.now()))[0]


def violate(harness: Harness, count: int = 1, agent: str = "writer") -> None:
    for _ in range(count):
        harness.submit(
            RejectedBody(harness.admin(), harness.now(), agent, None, "swordfish", "sha256:" + "0" * 64, None)
        )
