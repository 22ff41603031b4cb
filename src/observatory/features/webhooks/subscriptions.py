"""Matches events against an endpoint's subscription: plain sets of values. Pure.

An event matches when its type is among the endpoint's and each filter contains one of its values; or,
regardless of the subscription, when an alert or a scaling trigger names the endpoint. `task_completed` is no
event of the record: it is a forwarded step with `is_terminal`, delivered instead of its `message_delivered`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from observatory.features.webhooks.commands import MatchedEvent
from observatory.features.webhooks.commands_sending import ECHO
from observatory.features.webhooks.types_signature import TASK_COMPLETED, TESTED
from observatory.protocol.otel import trace_id_of_session

# Events delivered to the endpoints they name.
ADDRESSED: Final = frozenset({"alert_raised", "alert_resolved", "scaling_triggered"})
_TYPES: Final = re.compile(rb'"event_type":"([a-z_0-9]+)"')
_MESSAGES: Final = "message_delivered"
Row = dict[str, Any]
Event = Mapping[str, Any]


class _Action(msgspec.Struct):
    status: str | None = None
    tool_call: str | None = None


class _Delta(msgspec.Struct):
    cumulative_session_cost: float | None = None
    tokens_consumed: int | None = None


class _Control(msgspec.Struct):
    is_terminal: bool | None = None


class StepContent(msgspec.Struct):
    """The members of an archived step that a subscription may test."""

    action: _Action | None = None
    state_delta: _Delta | None = None
    control: _Control | None = None

    @property
    def tool(self) -> str | None:
        return None if self.action is None else self.action.tool_call

    @property
    def is_terminal(self) -> bool:
        return self.control is not None and bool(self.control.is_terminal)


def step_content(raw: bytes | None) -> StepContent:
    """Empty when the bytes are gone or are no step."""
    try:
        return StepContent() if raw is None else msgspec.json.decode(raw, type=StepContent)
    except msgspec.MsgspecError:
        return StepContent()


class Subscription:
    def __init__(self, endpoint: Row) -> None:
        self.endpoint_id: str = endpoint["endpoint_id"]
        self._events = frozenset(msgspec.json.decode(endpoint["events"]))
        filters: dict[str, list[str]] = msgspec.json.decode(endpoint["filters"])
        self._filters = {name: frozenset(values) for name, values in filters.items() if values}
        sessions = self._filters.pop("session", None)
        self._traces = None if sessions is None else frozenset(map(trace_id_of_session, sessions))
        self.asks_messages = TASK_COMPLETED in self._events or (
            "tool" in self._filters and _MESSAGES in self._events
        )
        self.asks_clusters = "cluster" in self._filters

    @property
    def types(self) -> frozenset[str]:
        """Event types that can match; others need not be decoded."""
        source = {_MESSAGES} if TASK_COMPLETED in self._events else set()
        return (self._events | ADDRESSED | source) - {TASK_COMPLETED, TESTED}

    def match(
        self, number: int, event: Event, words: StepContent, clusters: Mapping[str, str]
    ) -> MatchedEvent | None:
        """The caller fills `extra`. `clusters`: agent or entity id -> its cluster."""
        body = event["body"]
        kind = body["event_type"]
        if kind == TESTED or (kind in ECHO and self._is_mine(body)):
            return None
        if kind in ADDRESSED and self.endpoint_id in _addressed(event):
            return MatchedEvent(number, kind)
        if kind == _MESSAGES and words.is_terminal and TASK_COMPLETED in self._events:
            kind = TASK_COMPLETED
        if kind not in self._events or not self._is_chosen(event, words, clusters):
            return None
        return MatchedEvent(number, kind)

    def _is_mine(self, body: Mapping[str, Any]) -> bool:
        """Events about this endpoint's own failure are not sent to it."""
        return self.endpoint_id in (body.get("endpoint_id"), body.get("source_id"))

    def _is_chosen(self, event: Event, words: StepContent, clusters: Mapping[str, str]) -> bool:
        if self._traces is not None and event["trace_id"] not in self._traces:
            return False
        for name, values in self._filters.items():
            if values.isdisjoint(_values(name, event, words, clusters)):
                return False
        return True


def _addressed(event: Event) -> Iterable[str]:
    named = event["body"].get("endpoint_ids") or event["attributes"].get("endpoint_ids")
    return named if isinstance(named, list) else ()


def _values(name: str, event: Event, words: StepContent, clusters: Mapping[str, str]) -> set[str]:
    body, attributes = event["body"], event["attributes"]
    found: list[Any] = []
    if name in ("agent", "cluster"):
        found = [attributes.get("av.sender.agent_id"), attributes.get("av.sender.entity_id")]
        found += [body.get("agent_id"), body.get("entity_id")]
        if name == "cluster":
            found = [clusters.get(one) for one in found if one] + [body.get("cluster_id")]
    elif name == "tool":
        found = [words.tool, body.get("tool")]
    elif name == "severity":
        found = [event["severity_text"]]
    elif name == "message_type":
        found = [body.get("message_type")]
    return {one for one in found if isinstance(one, str)}


def may_match(record: bytes, types: frozenset[str]) -> bool:
    """Whether the record is worth decoding: it contains a subscribed event type."""
    return any(name.decode() in types for name in _TYPES.findall(record))
