"""What a capability registers with the gateway. Each `features/*/feature.py` holds one `FEATURE`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from observatory.runtime.feed_channel import TopicSource

if TYPE_CHECKING:
    from observatory.http.app_state import AppState
    from observatory.http.ingest import Ingest, Receive, Scope, Send
    from observatory.http.sockets import Socket
    from observatory.runtime.publisher import CommittedRow


@dataclass(frozen=True, kw_only=True)
class HttpEndpoint:
    """Answered as raw ASGI: the framework's routing would cost more than the request."""

    path: str
    call: Callable[[Scope, Receive, Send], Awaitable[None]]
    method: str | None = None  # None: every method


@dataclass(frozen=True, kw_only=True)
class SocketEndpoint:
    """`match` returns what `call` needs of the path, None for another endpoint's path."""

    template: str
    match: Callable[[str], Any]
    call: Callable[[Socket, Any], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """`listeners` are open while the gateway serves: on addresses other than the HTTP port's."""

    http: Sequence[HttpEndpoint] = ()
    sockets: Sequence[SocketEndpoint] = ()
    listeners: Sequence[AbstractAsyncContextManager[Any]] = ()


@dataclass(frozen=True, kw_only=True)
class FoldedTopic:
    """A topic of records on the live channel. A name that ends with a colon is followed by a session id."""

    name: str
    source: Callable[[AppState, str, str], TopicSource]  # app state, tenant, what follows the name


@dataclass(frozen=True, kw_only=True)
class EventTopic:
    """A topic of committed rows on the live channel, shaped by its feature."""

    name: str
    items: Callable[[AppState, str, list[CommittedRow]], Awaitable[list[object]]]


@dataclass(frozen=True, kw_only=True)
class Feature:
    routes: Sequence[Any] = ()
    # By operation id: what it answers, and its content types other than JSON.
    answers: Mapping[str, Any] = field(default_factory=dict)
    content_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Whole OpenAPI operations of raw endpoints, by path; all are POST.
    operations: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    # Operations without a key: called by external systems, by witnesses, or with a signed note as the body.
    hook_operations: Sequence[str] = ()
    witness_operations: Sequence[str] = ()
    note_operations: Sequence[str] = ()
    endpoints: Callable[[AppState, Any, Ingest], Endpoints] | None = None
    folded_topics: Sequence[FoldedTopic] = ()
    event_topics: Sequence[EventTopic] = ()
    # Builds services and workers of the running gateway; called in the order of `FEATURES`.
    start: Callable[[AppState], Awaitable[None]] | None = None
