"""Request and response types of the routes of alert rules and scaling triggers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from observatory.features.alerting.types_rules import (
    LONGEST_S,
    MAX_AMOUNT,
    MAX_ENDPOINTS,
    AlertSeverity,
    Compare,
    Condition,
    Direction,
    Purpose,
    Scope,
)
from observatory.http.answers import Was
from observatory.protocol.rules import Name, Title

Seconds = Annotated[int, msgspec.Meta(ge=0, le=LONGEST_S)]
Endpoints = Annotated[
    list[Annotated[str, msgspec.Meta(max_length=64)]], msgspec.Meta(max_length=MAX_ENDPOINTS)
]


class WatchRuleBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Omitted fields take the condition's defaults; see `conditions` in the list."""

    name: Title
    condition: Condition
    scope: Scope | None = None
    target: Name | None = None
    compare: Compare = "above"
    threshold: float | None = None
    for_s: Seconds = 0
    cooldown_s: Seconds = 300
    severity: AlertSeverity | None = None
    endpoint_ids: Endpoints = []
    enabled: bool = True
    was: Was | None = None


class AlertRuleBody(WatchRuleBody, kw_only=True, forbid_unknown_fields=True):
    """`window_s` is for conditions that count events, `for_s` for levels that must last."""

    window_s: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_S)] | None = None


class ScalingTriggerBody(WatchRuleBody, kw_only=True, forbid_unknown_fields=True):
    """Direction and number of agents; raised again after each cooldown while the condition holds."""

    direction: Direction
    amount: Annotated[int, msgspec.Meta(ge=1, le=MAX_AMOUNT)] = 1


class MuteBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """0 ends a mute."""

    minutes: Annotated[int, msgspec.Meta(ge=0, le=10_080)]


class DefaultsBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    endpoint_ids: Endpoints = []


class RuleItem(msgspec.Struct, kw_only=True):
    """`open`: how many subjects are firing."""

    rule_id: str
    purpose: Purpose
    name: str
    condition: Condition
    scope: Scope
    target: str | None
    compare: Compare
    threshold: float
    window_s: int | None
    for_s: int
    cooldown_s: int
    severity: AlertSeverity
    direction: Direction | None
    amount: int | None
    endpoint_ids: list[str]
    enabled: bool
    muted_until: str | None
    open: int
    created_at: str
    created_by: str
    updated_at: str
    updated_by: str


class ConditionItem(msgspec.Struct, kw_only=True):
    condition: Condition
    text: str
    unit: str
    counts_events: bool
    scopes: list[Scope]
    threshold: float
    window_s: int | None
    scalable: bool


class RuleList(msgspec.Struct, kw_only=True):
    """`mail_is_set`: whether this gateway can send e-mail."""

    items: list[RuleItem]
    next_cursor: str | None
    conditions: list[ConditionItem]
    mail_is_set: bool


class LevelItem(msgspec.Struct, kw_only=True):
    """The current level of one subject; `breaches`: it is past the threshold."""

    subject: str
    value: float
    breaches: bool


class TriggerLevel(msgspec.Struct, kw_only=True):
    """The subjects nearest to the threshold, nearest first; `of` is how many there are."""

    rule_id: str
    subjects: list[LevelItem]
    of: int


class TriggerLevels(msgspec.Struct, kw_only=True):
    items: list[TriggerLevel]
    next_cursor: None
    at: str


class RuleRemoved(msgspec.Struct, kw_only=True):
    rule_id: str
    removed: bool


class RulesMade(msgspec.Struct, kw_only=True):
    items: list[RuleItem]


class TestOutcome(msgspec.Struct, kw_only=True):
    endpoint_id: str
    name: str | None
    kind: str | None
    ok: bool
    code: int | None
    detail: str


class TestAnswer(msgspec.Struct, kw_only=True):
    """`sequence_number` is that of the test's own event. Without endpoints nothing was sent."""

    rule_id: str
    sequence_number: int
    outcomes: list[TestOutcome]


class OpenAlert(msgspec.Struct, kw_only=True):
    """A firing alert. `muted`: no notification was sent."""

    rule_id: str
    purpose: Purpose
    name: str
    condition: Condition
    severity: AlertSeverity
    subject: str
    value: str
    threshold: str
    unit: str
    since: str
    raised_at: str
    sequence_number: int
    times: int
    muted: bool
    link: str


class OpenAlerts(msgspec.Struct, kw_only=True):
    items: list[OpenAlert]
    next_cursor: str | None


ALERT_RULE_ANSWERS: dict[str, Any] = {
    "list_alert_rules": RuleList,
    "create_alert_rule": RuleItem,
    "get_alert_rule": RuleItem,
    "change_alert_rule": RuleItem,
    "remove_alert_rule": RuleRemoved,
    "mute_alert_rule": RuleItem,
    "test_alert_rule": TestAnswer,
    "create_default_alert_rules": RulesMade,
    "open_alerts": OpenAlerts,
    "list_scaling_triggers": RuleList,
    "scaling_levels": TriggerLevels,
    "create_scaling_trigger": RuleItem,
    "get_scaling_trigger": RuleItem,
    "change_scaling_trigger": RuleItem,
    "remove_scaling_trigger": RuleRemoved,
    "mute_scaling_trigger": RuleItem,
    "test_scaling_trigger": TestAnswer,
}
