"""The evaluator over the contract's house: the real one, looking when told to, by the house's own clock."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from observatory.features.alerting import commands as alerting
from observatory.features.alerting.levels import Levels
from observatory.features.alerting.types_rules import Condition
from observatory.features.alerting.worker import Alerts, Home
from observatory.features.fleet.types_traffic import Costs
from observatory.features.transparency.log_opening import Refusal
from observatory.pipeline.state import HOME_TENANT, Breach, Verdict
from observatory.runtime.leader import Leader
from observatory.runtime.worker_context import Watch
from tests.alert_samples import SECOND, alert_rule
from tests.contract.conftest import House
from tests.contract.sealing import Keeper

Row = dict[str, Any]
TOLD = ("alert_raised", "alert_resolved", "scaling_triggered")


class Watchman(Keeper):
    """A gateway's evaluator; `again` is the process killed and started anew."""

    url = "http://here"

    def __init__(self, house: House, costs: Costs | None = None, started_ns: int = 0) -> None:
        super().__init__(house)
        self.house, self.clock = house, house.now
        self.refused: dict[str, Refusal] = {}
        self._costs, self._started_ns = costs, started_ns
        self._passed_s = 0.0
        self.alerts = self.again()

    def again(self, lease_s: float = 15.0) -> Alerts:
        levels = Levels(self.house.store, cast(Costs, self._costs), self.refused, self._started_ns)
        self.levels = levels
        leader = Leader(self.house.store, "alerts", lease_s, "gtw_one")
        watch = Watch(self.house.store, lambda: self._passed_s)
        self.alerts = Alerts(cast(Home, self), levels, leader, watch)
        return self.alerts

    def look(self, after_s: float = 0.0) -> list[tuple[str, str]]:
        """One look so much later; what was told since the last one, as (event, subject)."""
        before = len(told(self.house))
        self._passed_s += after_s
        now_ns = self.house.wait(int(after_s * SECOND))
        self.house.read(self.alerts.look(now_ns))
        return [(body["event_type"], body["subject"]) for body in told(self.house)[before:]]


def told(house: House, *names: str, tenant_id: str = HOME_TENANT) -> list[Row]:
    bodies = [json.loads(event.record)["body"] for event in house.trail_of(tenant_id)]
    return [body for body in bodies if body["event_type"] in (names or TOLD)]


def add(house: House, condition: Condition = "violations", **more: Any) -> Row:
    rule_id = f"alr_{condition}{more.pop('number', '')}"
    rule = alert_rule(condition, rule_id=rule_id, **{"name": rule_id} | more)
    (verdict,) = house.submit(alerting.add(house.admin(), rule, house.now()))
    assert verdict.code == 201, verdict.answer
    return dict(verdict.answer)


def change(house: House, row: Row, **more: Any) -> Verdict:
    rule = msgspec.structs.replace(alerting.rule_of(row), **more)
    return house.submit(alerting.change(house.admin(), rule, house.now()))[0]


def violate(house: House, count: int = 1, agent: str = "writer") -> None:
    for _ in range(count):
        house.submit(Breach(house.admin(), house.now(), agent, None, "swordfish", "sha256:" + "0" * 64, None))
