"""An exporter's filters and headers, and their validation.

An empty filter matches everything. An unknown event type is refused: a misspelt filter would be a silent gap.
A header's value is a secret: no message repeats one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Protocol

import msgspec

from observatory.protocol.events import SEVERITY
from observatory.protocol.identity import agent_entity_id

ExportProtocol = Literal["http", "grpc"]
MAX_HEADERS: Final = 16
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_TEXT: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,4094}[\x21-\x7e])?")
# Set by the transport itself; all other headers are up to the exporter's owner.
_RESERVED: Final = frozenset(
    ("accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type",
     "expect", "host", "keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding",
     "upgrade", "user-agent")
)  # fmt: skip
_PARTIES: Final = ("av.sender.entity_id", "av.sender.agent_id", "av.recipient.entity_id")
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class Filterable(Protocol):
    """The members of an event that filters test."""

    @property
    def event_type(self) -> str: ...
    @property
    def severity_number(self) -> int: ...
    @property
    def attributes(self) -> dict[str, Any]: ...


class Filters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All given filters must match. `agents` are names or entity ids; one must be the sender or recipient."""

    event_types: Annotated[list[Word], msgspec.Meta(max_length=200)] = []
    severity_min: Annotated[int, msgspec.Meta(ge=1, le=24)] = 1
    agents: Annotated[list[Word], msgspec.Meta(max_length=200)] = []


class EventFilterMatcher:
    """Filters of one tenant, compiled for many events."""

    def __init__(self, filters: Filters, tenant_id: str) -> None:
        self._types, self._least = frozenset(filters.event_types), filters.severity_min
        ids = {agent_entity_id(tenant_id, agent) for agent in filters.agents}
        self._agents = ids | set(filters.agents)

    def takes(self, event: Filterable) -> bool:
        if event.severity_number < self._least or (self._types and event.event_type not in self._types):
            return False
        return not self._agents or any(event.attributes.get(name) in self._agents for name in _PARTIES)


def problem_of_filters(filters: Filters) -> str | None:
    unknown = sorted(set(filters.event_types) - SEVERITY.keys())
    if unknown:
        return "filters.event_types: unknown event type; docs/guides/events.md lists them all"
    return None


def problem_of_headers(headers: Mapping[str, str], wire: ExportProtocol) -> str | None:
    """Why these headers are invalid, without their values; None when they are valid."""
    if len(headers) > MAX_HEADERS:
        return f"headers: at most {MAX_HEADERS}"
    for name, text in headers.items():
        if not _NAME.fullmatch(name) or name in _RESERVED or name.startswith(("grpc-", "x-forwarded-")):
            return "headers: a name has lower-case letters, digits, - _ and ., and must not be reserved"
        if wire == "grpc" and name.endswith("-bin"):
            return "headers: with gRPC a name must not end in -bin"
        if not _TEXT.fullmatch(text):
            return "headers: a value has 1 to 4096 printable ASCII characters without surrounding spaces"
    return None
