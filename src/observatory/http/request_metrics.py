"""Request metrics: responses by code, their duration, and open sockets, per endpoint.

An endpoint is named by its route template, never by the requested path: whatever clients send,
there are no more names than routes. What matches none is `other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from observatory.http.security_headers import missing
from observatory.runtime.metrics import Measure

BUCKETS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
EDGES = (*(f"{edge:g}" for edge in BUCKETS), "+Inf")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
# A larger answer is written in pieces, each once the one before was read: else all of it waits in memory.
PIECE = 65_536
_seconds = partial(
    Measure, "observatory_http_seconds", "histogram", "Duration of HTTP responses by endpoint, in seconds"
)
_responses = partial(
    Measure, "observatory_http_responses_total", "counter", "HTTP responses by endpoint and code"
)
Event = MutableMapping[str, Any]


class CountedSend:
    """The `send` of one request: adds the standard headers and keeps the status code."""

    __slots__ = ("_more", "_send", "code")

    def __init__(self, send: Callable[[Event], Awaitable[None]], *more: tuple[bytes, bytes]) -> None:
        """`more`: headers of every response on this connection."""
        self._send, self._more, self.code = send, more, 0

    def __call__(self, event: Event) -> Awaitable[None]:
        if event["type"] == "http.response.start":
            self.code = event["status"]
            event["headers"] = [*event["headers"], *missing(event["headers"]), *self._more]
        elif len(event.get("body", b"")) > PIECE:
            return self._in_pieces(event)
        return self._send(event)

    async def _in_pieces(self, event: Event) -> None:
        body, last = event["body"], event.get("more_body", False)
        for at in range(0, len(body), PIECE):
            more = last or at + PIECE < len(body)
            await self._send({"type": event["type"], "body": body[at : at + PIECE], "more_body": more})


class _Endpoint:
    __slots__ = ("buckets", "codes", "seconds")

    def __init__(self) -> None:
        self.codes: Counter[int] = Counter()
        self.buckets = [0] * len(EDGES)
        self.seconds = 0.0


class RequestMetrics:
    def __init__(self) -> None:
        self.answers: Counter[int] = Counter()  # to messages, each line of a batch counted by itself
        self._endpoints: dict[tuple[str, str], _Endpoint] = {}
        self._sockets: Counter[str] = Counter()
        self._inside = 0

    def count(self, code: int, times: int = 1) -> None:
        self.answers[code] += times

    def enter(self) -> None:
        self._inside += 1

    def leave(self, method: str, endpoint: str, code: int, seconds: float) -> None:
        """Count a finished request; code 0: the client disconnected before the response."""
        self._inside -= 1
        key = (method if method in METHODS else OTHER, endpoint)
        figures = self._endpoints.get(key)
        if figures is None:
            figures = self._endpoints[key] = _Endpoint()
        figures.codes[code] += 1
        figures.buckets[bisect_left(BUCKETS, seconds)] += 1
        figures.seconds += seconds

    @contextmanager
    def socket(self, endpoint: str) -> Iterator[None]:
        self._sockets[endpoint] += 1
        try:
            yield
        finally:
            self._sockets[endpoint] -= 1

    def measures(self) -> list[Measure]:
        measures = [
            Measure(
                "observatory_message_responses_total",
                "counter",
                "Answers to messages by code",
                n,
                {"code": str(c)},
            )
            for c, n in sorted(self.answers.items())
        ]
        measures.append(Measure("observatory_http_in_flight", "gauge", "Requests in progress", self._inside))
        measures += [
            Measure(
                "observatory_sockets", "gauge", "Open WebSockets by endpoint", count, {"endpoint": endpoint}
            )
            for endpoint, count in sorted(self._sockets.items())
        ]
        for (method, endpoint), figures in sorted(self._endpoints.items()):
            labels = {"endpoint": endpoint, "method": method}
            measures += [
                _responses(times, labels | {"code": str(code) if code else "none"})
                for code, times in sorted(figures.codes.items())
            ]
            measures += _histogram(labels, figures)
        return measures


def _histogram(labels: dict[str, str], endpoint: _Endpoint) -> Iterator[Measure]:
    total = 0
    for edge, count in zip(EDGES, endpoint.buckets, strict=True):
        total += count
        yield _seconds(total, labels | {"le": edge}, "_bucket")
    yield _seconds(endpoint.seconds, labels, "_sum")
    yield _seconds(total, labels, "_count")
