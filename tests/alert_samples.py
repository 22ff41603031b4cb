"""An alert rule for tests: what is not said is as a person would leave it."""

from __future__ import annotations

from typing import Any

from observatory.features.alerting.types_rules import KINDS, AlertRule, Condition

SECOND = 1_000_000_000


def alert_rule(condition: Condition = "violations", **more: Any) -> AlertRule:
    kind = KINDS[condition]
    fields: dict[str, Any] = {
        "rule_id": f"alr_{condition}",
        "purpose": "alert",
        "name": f"watch {condition}",
        "condition": condition,
        "scope": kind.scopes[0],
        "target": None,
        "compare": "above",
        "threshold": 1.0,
        "window_s": 60,
        "for_s": 0,
        "cooldown_s": 0,
        "severity": "error",
        "direction": None,
        "amount": None,
        "endpoint_ids": ("whe_one",),
        "enabled": True,
        "muted_until_ns": 0,
        "since_seq": 0,
    }
    return AlertRule(**fields | more)
