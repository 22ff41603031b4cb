"""Request and response types of the outbound webhook routes. A secret is returned once, when it is
created."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from observatory.features.webhooks.commands import MAX_OVERLAP_S
from observatory.features.webhooks.retry import LONGEST_S, MAX_TRIES, SCHEDULE_S, SHORTEST_S
from observatory.features.webhooks.types_signature import Kind
from observatory.http.answers import Was
from observatory.protocol.rules import Title

Value = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
State = Literal["waiting", "delivered", "dead"]


class WebhookBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`events` are event types, or `task_completed`; without any, it only receives alerts that name it.

    `filters`: agent, session, cluster, tool, severity (INFO, WARN, …), message_type; each a list of values.
    """

    name: Title
    url: Annotated[str, msgspec.Meta(min_length=8, max_length=1_024)]
    kind: Kind = "webhook"
    events: Annotated[list[Value], msgspec.Meta(max_length=200)] = []
    filters: dict[str, Annotated[list[Value], msgspec.Meta(max_length=100)]] = {}
    rate_per_min: Annotated[int, msgspec.Meta(ge=1, le=60_000)] = 600
    schedule_s: Annotated[
        list[Annotated[float, msgspec.Meta(ge=SHORTEST_S, le=LONGEST_S)]],
        msgspec.Meta(max_length=MAX_TRIES, description="Waits after the first attempt, in seconds."),
    ] = msgspec.field(default_factory=lambda: list(SCHEDULE_S))
    was: Was | None = None


class RotateBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    overlap_s: Annotated[
        int, msgspec.Meta(ge=0, le=MAX_OVERLAP_S, description="How long the old secret also signs.")
    ] = 86_400


class ReplayBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One delivery, or events in a range of numbers or times."""

    delivery_id: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    before: Annotated[int, msgspec.Meta(ge=1)] | None = None
    since: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    until: Annotated[str, msgspec.Meta(max_length=64)] | None = None


class WebhookItem(msgspec.Struct, kw_only=True):
    """`url` is complete for admins only, and never for Slack, where it is a secret."""

    endpoint_id: str
    name: str
    kind: Kind
    url: str
    events: list[str]
    filters: dict[str, list[str]]
    rate_per_min: int
    schedule_s: list[float]
    state: Literal["active", "disabled"]
    disabled_reason: str | None
    failures: int
    paused_until: str | None
    last_ok_at: str | None
    last_failed_at: str | None
    waiting: int
    waiting_since: str | None
    looked_at: int
    created_at: str
    created_by: str
    changed_at: str


class NewWebhook(WebhookItem, kw_only=True):
    """`secret` is returned only here; null for unsigned kinds."""

    secret: str | None


class WebhookList(msgspec.Struct, kw_only=True):
    """`event_types`: the available event types."""

    items: list[WebhookItem]
    next_cursor: str | None
    event_types: list[str]


class WebhookRemoved(msgspec.Struct, kw_only=True):
    endpoint_id: str
    removed: bool


class WebhookSecret(msgspec.Struct, kw_only=True):
    """Returned only here. Until `old_ends_at` both secrets sign."""

    endpoint_id: str
    secret: str
    old_ends_at: str


class DeliveryItem(msgspec.Struct, kw_only=True):
    """`delivery_id` is the receiver's `webhook-id`, the same for each attempt."""

    delivery_id: str
    endpoint_id: str
    event_type: str
    sequence_number: int
    state: State
    attempts: int
    next_try_at: str | None
    last_code: int | None
    last_detail: str | None
    created_at: str
    ended_at: str | None


class LoggedDelivery(DeliveryItem, kw_only=True):
    """With its endpoint's name, current or when it was removed."""

    endpoint_name: str
    endpoint_kind: Kind
    endpoint_removed: bool


class LoggedDeliveryList(msgspec.Struct, kw_only=True):
    items: list[LoggedDelivery]
    next_cursor: str | None


class AttemptItem(msgspec.Struct, kw_only=True):
    attempt: int
    at: str
    took_ms: int
    ok: bool
    code: int | None
    detail: str
    excerpt: str
    signed_with: list[int]
    """Numbers of the secrets that signed it, two during a rotation; none for Slack and e-mail."""


class DeliveryDetail(DeliveryItem, kw_only=True):
    """With the exact payload and every attempt."""

    payload: str | None
    tries: list[AttemptItem]


class DeliveryList(msgspec.Struct, kw_only=True):
    items: list[DeliveryItem]
    next_cursor: str | None


class Replayed(msgspec.Struct, kw_only=True):
    """`next_after`: where to continue, if the range was too long for one request."""

    replayed: int
    next_after: int | None


WEBHOOK_ANSWERS: dict[str, Any] = {
    "create_webhook": NewWebhook,
    "list_webhooks": WebhookList,
    "get_webhook": WebhookItem,
    "change_webhook": WebhookItem,
    "remove_webhook": WebhookRemoved,
    "rotate_webhook_secret": WebhookSecret,
    "enable_webhook": WebhookItem,
    "disable_webhook": WebhookItem,
    "test_webhook": DeliveryDetail,
    "replay_webhook": Replayed,
    "list_deliveries": LoggedDeliveryList,
    "list_webhook_deliveries": DeliveryList,
    "get_webhook_delivery": DeliveryDetail,
}
