"""What the doors of webhooks out hear and answer. A secret is answered once, when it is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from observatory.features.webhooks.commands import MOST_OVERLAP_S
from observatory.features.webhooks.retry import LONGEST_S, MOST_TRIES, SCHEDULE_S, SHORTEST_S
from observatory.features.webhooks.signature import Kind
from observatory.http.answers import Was
from observatory.protocol.rules import Title

Value = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
State = Literal["waiting", "delivered", "dead"]


class WebhookBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`events` are names of events, or `task_completed`; without any, only alerts that name it reach it.

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
        msgspec.Meta(max_length=MOST_TRIES, description="Waits after the first try, in seconds."),
    ] = msgspec.field(default_factory=lambda: list(SCHEDULE_S))
    was: Was | None = None


class RotateBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    overlap_s: Annotated[
        int, msgspec.Meta(ge=0, le=MOST_OVERLAP_S, description="So long the old one signs as well.")
    ] = 86_400


class ReplayBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One delivery, or the events after one number and before another, or of a time."""

    delivery_id: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    before: Annotated[int, msgspec.Meta(ge=1)] | None = None
    since: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    until: Annotated[str, msgspec.Meta(max_length=64)] | None = None


class WebhookItem(msgspec.Struct, kw_only=True):
    """`url` is whole for admins only, and never for Slack: whoever has it may send there."""

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
    """`secret` is shown here and never again; null for what is not signed."""

    secret: str | None


class WebhookList(msgspec.Struct, kw_only=True):
    """`event_types`: what an endpoint can be told of."""

    items: list[WebhookItem]
    next_cursor: str | None
    event_types: list[str]


class WebhookRemoved(msgspec.Struct, kw_only=True):
    endpoint_id: str
    removed: bool


class WebhookSecret(msgspec.Struct, kw_only=True):
    """Shown here and never again. Until `old_ends_at` both sign."""

    endpoint_id: str
    secret: str
    old_ends_at: str


class DeliveryItem(msgspec.Struct, kw_only=True):
    """`delivery_id` is what the receiver gets as `webhook-id`, the same at each try."""

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
    """Whose it is, as the endpoint is called now, or was when it was removed."""

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
    """The numbers of the secrets that signed it, two while one follows another; none for Slack and mail."""


class DeliveryWhole(DeliveryItem, kw_only=True):
    """With what is sent, byte for byte, and every try."""

    payload: str | None
    tries: list[AttemptItem]


class DeliveryList(msgspec.Struct, kw_only=True):
    items: list[DeliveryItem]
    next_cursor: str | None


class Replayed(msgspec.Struct, kw_only=True):
    """`next_after` is where to go on, if the range was longer than what one request does."""

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
    "test_webhook": DeliveryWhole,
    "replay_webhook": Replayed,
    "list_deliveries": LoggedDeliveryList,
    "list_webhook_deliveries": DeliveryList,
    "get_webhook_delivery": DeliveryWhole,
}
