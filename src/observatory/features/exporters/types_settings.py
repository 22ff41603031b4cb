"""What an exporter takes along, and what it may say at the door it sends to.

Law: an empty list means all. A type of event that does not exist is refused: a misspelt filter would be a
silent gap. A header's value is a secret: no sentence here repeats one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Protocol

import msgspec

from observatory.protocol.events import SEVERITY
from observatory.protocol.identity import agent_entity_id

Wire = Literal["http", "grpc"]
MOST_HEADERS: Final = 16
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_TEXT: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,4094}[\x21-\x7e])?")
# What the way itself is made of; the rest is between the exporter's owner and the backend.
_OURS: Final = frozenset(
    ("accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type",
     "expect", "host", "keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding",
     "upgrade", "user-agent")
)  # fmt: skip
_PARTIES: Final = ("av.sender.entity_id", "av.sender.agent_id", "av.recipient.entity_id")
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class Filterable(Protocol):
    """What of an event a filter looks at."""

    @property
    def event_type(self) -> str: ...
    @property
    def severity_number(self) -> int: ...
    @property
    def attributes(self) -> dict[str, Any]: ...


class Filters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is given must hold. `agents` are names or entity ids; sender or recipient is one of them."""

    event_types: Annotated[list[Word], msgspec.Meta(max_length=200)] = []
    severity_min: Annotated[int, msgspec.Meta(ge=1, le=24)] = 1
    agents: Annotated[list[Word], msgspec.Meta(max_length=200)] = []


class Sieve:
    """Filters of one tenant, ready for very many events."""

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
        return "filters.event_types names a type of event there is not; docs/guides/events.md lists them all"
    return None


def problem_of_headers(headers: Mapping[str, str], wire: Wire) -> str | None:
    """Why these cannot be sent along, in a sentence without their values; None when they can."""
    if len(headers) > MOST_HEADERS:
        return f"headers: at most {MOST_HEADERS}"
    for name, text in headers.items():
        if not _NAME.fullmatch(name) or name in _OURS or name.startswith(("grpc-", "x-forwarded-")):
            return "headers: a name is of small letters, digits, - _ and ., and none that the way itself uses"
        if wire == "grpc" and name.endswith("-bin"):
            return "headers: over gRPC a header whose name ends in -bin is not text"
        if not _TEXT.fullmatch(text):
            return "headers: a value is of 1 to 4096 printable ASCII characters without space at its ends"
    return None
