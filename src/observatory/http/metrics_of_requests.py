"""What passes the doors, in figures: answers by code, how long they took, and which sockets are open.

A door is named by its route's template, never by what somebody asked for: whatever strangers send, there are
no more names than routes. What matches none is `other`.
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
    Measure, "observatory_http_seconds", "histogram", "How long HTTP answers took, by door, in seconds"
)
_answers = partial(Measure, "observatory_http_answers_total", "counter", "HTTP answers by door and code")
Event = MutableMapping[str, Any]


class Visit:
    """One request on its way out: the code of its answer, seen as it passes."""

    __slots__ = ("_more", "_send", "code")

    def __init__(self, send: Callable[[Event], Awaitable[None]], *more: tuple[bytes, bytes]) -> None:
        """`more`: headers of every answer on this connection."""
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


class _Door:
    __slots__ = ("buckets", "codes", "seconds")

    def __init__(self) -> None:
        self.codes: Counter[int] = Counter()
        self.buckets = [0] * len(EDGES)
        self.seconds = 0.0


class Doors:
    def __init__(self) -> None:
        self.answers: Counter[int] = Counter()  # to messages, each line of a batch by itself
        self._doors: dict[tuple[str, str], _Door] = {}
        self._sockets: Counter[str] = Counter()
        self._inside = 0

    def count(self, code: int, times: int = 1) -> None:
        self.answers[code] += times

    def enter(self) -> None:
        self._inside += 1

    def leave(self, method: str, door: str, code: int, seconds: float) -> None:
        """A request is over; code 0: its caller went away unanswered."""
        self._inside -= 1
        key = (method if method in METHODS else OTHER, door)
        found = self._doors.get(key)
        if found is None:
            found = self._doors[key] = _Door()
        found.codes[code] += 1
        found.buckets[bisect_left(BUCKETS, seconds)] += 1
        found.seconds += seconds

    @contextmanager
    def socket(self, door: str) -> Iterator[None]:
        self._sockets[door] += 1
        try:
            yield
        finally:
            self._sockets[door] -= 1

    def measures(self) -> list[Measure]:
        told = [
            Measure(
                "observatory_answers_total", "counter", "Answers to messages by code", n, {"code": str(c)}
            )
            for c, n in sorted(self.answers.items())
        ]
        told.append(Measure("observatory_http_in_flight", "gauge", "Requests being answered", self._inside))
        told += [
            Measure("observatory_sockets", "gauge", "Open WebSockets by door", count, {"door": door})
            for door, count in sorted(self._sockets.items())
        ]
        for (method, door), found in sorted(self._doors.items()):
            labels = {"door": door, "method": method}
            told += [
                _answers(times, labels | {"code": str(code) if code else "none"})
                for code, times in sorted(found.codes.items())
            ]
            told += _histogram(labels, found)
        return told


def _histogram(labels: dict[str, str], door: _Door) -> Iterator[Measure]:
    total = 0
    for edge, count in zip(EDGES, door.buckets, strict=True):
        total += count
        yield _seconds(total, labels | {"le": edge}, "_bucket")
    yield _seconds(door.seconds, labels, "_sum")
    yield _seconds(total, labels, "_count")
