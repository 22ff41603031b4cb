"""Request and response types of the exporter routes. Header values are accepted but never returned."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from observatory.features.exporters.types_settings import ExportProtocol, Filters
from observatory.http.answers import MAX_SEQUENCE, Was
from observatory.protocol.rules import Title

Url = Annotated[str, msgspec.Meta(min_length=8, max_length=1_024)]
Sequence = Annotated[int, msgspec.Meta(ge=1, le=MAX_SEQUENCE)]
Status = Literal["caught_up", "behind", "failing", "paused"]


class NewExporterBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`from` is the first event to send: `now`, `start`, or its number.

    A URL over `http` without a path means `/v1/logs` there; a `grpc` URL has none. `headers` are sent with
    every request, an API key for instance; they are never returned.
    """

    name: Title
    url: Url
    protocol: ExportProtocol = "http"
    headers: dict[str, str] = {}
    filters: Filters = msgspec.field(default_factory=Filters)
    from_: Literal["now", "start"] | Sequence = msgspec.field(name="from", default="now")


class ExporterChangeBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Omitted members stay. `headers` replace all previous ones; another host gets none of the previous
    ones."""

    name: Title | None = None
    url: Url | None = None
    protocol: ExportProtocol | None = None
    headers: dict[str, str] | None = None
    filters: Filters | None = None
    was: Was | None = None


class RewindBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The number of the next event to send; one past the head means only new events."""

    to: Sequence


class ExporterItem(msgspec.Struct, kw_only=True):
    """`headers` are only the names. `lag_s` is the age of the oldest event not settled yet."""

    exporter_id: str
    name: str
    protocol: ExportProtocol
    url: str
    headers: list[str]
    filters: Filters
    status: Status
    cursor: int
    lag_events: int
    lag_s: float | None
    sent: int
    filtered: int
    refused: int
    last_sent_at: str | None
    failures: int
    problem: str | None
    problem_at: str | None
    next_try_at: str | None
    created_at: str
    created_by: str
    updated_at: str


class ExportersAnswer(msgspec.Struct, kw_only=True):
    items: list[ExporterItem]
    next_cursor: str | None


class ExporterTested(msgspec.Struct, kw_only=True):
    """`taken`: accepted; `later`: not accepted now, retry; `refused`: the test record was rejected."""

    exporter_id: str
    outcome: Literal["taken", "later", "refused"]
    detail: str
    rejected: int


class ExporterRemoved(msgspec.Struct, kw_only=True):
    exporter_id: str
    removed: bool


EXPORTER_ANSWERS: dict[str, Any] = {
    "create_exporter": ExporterItem,
    "list_exporters": ExportersAnswer,
    "get_exporter": ExporterItem,
    "change_exporter": ExporterItem,
    "pause_exporter": ExporterItem,
    "resume_exporter": ExporterItem,
    "rewind_exporter": ExporterItem,
    "test_exporter": ExporterTested,
    "remove_exporter": ExporterRemoved,
}
