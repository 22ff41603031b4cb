"""Cuts OTLP's protobuf into its records before any of them is decoded: two bytes on the wire can become
hundreds in memory, so an oversized request is refused by its wire form alone.

Law: of one request at most `most` records are read, each of at most `LONGEST` bytes, with at most `VALUES`
values in all of them. Repeated parts of one message are joined, which is how protobuf merges them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

VALUES: Final = 2_000_000  # attributes of a request, with those nested in them
LONGEST: Final = 8 << 20  # bytes of a record: of the smallest values it makes a quarter of a gigabyte
_SHELLS: Final = 8  # fields around the records, for each possible record


class TooMuch(Exception):
    """More than a request may have, even if well-formed; the exception's text is the answer."""


class Malformed(Exception):
    """Not protobuf."""


class Allowance:
    """How many more values a request may have."""

    def __init__(self, left: int = VALUES) -> None:
        self._left = left

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TooMuch(f"a request may have at most {VALUES} values")


def too_many(most: int) -> TooMuch:
    return TooMuch(f"a request may have at most {most} {'record' if most == 1 else 'records'}")


class ScopeRecords(NamedTuple):
    scope: bytes
    records: list[bytes]


class ResourceBlock(NamedTuple):
    """One resource and its scopes, as received."""

    resource: bytes
    scopes: list[ScopeRecords]


def blocks(body: bytes, most: int) -> Iterator[ResourceBlock]:
    """resource_spans = 1; in it resource = 1, scope_spans = 2; in it scope = 1, spans = 2. Logs alike."""
    walk = _Walk(body, most)
    for outer, start, end in walk.parts(0, len(body)):
        if outer != 1:
            continue
        resource: list[bytes] = []
        scoped: list[tuple[int, int]] = []
        for number, at, until in walk.parts(start, end):
            if number == 1:
                resource.append(body[at:until])
            else:
                scoped.append((at, until))
        yield ResourceBlock(_joined(resource), [_scoped(walk, body, *one) for one in scoped])


def _scoped(walk: _Walk, body: bytes, start: int, end: int) -> ScopeRecords:
    scope: list[bytes] = []
    records: list[bytes] = []
    for number, at, until in walk.parts(start, end):
        if number == 1:
            scope.append(body[at:until])
        else:
            walk.record()
            records.append(_joined([body[at:until]]))
    return ScopeRecords(_joined(scope), records)


def _joined(parts: list[bytes]) -> bytes:
    if sum(map(len, parts)) > LONGEST:
        raise TooMuch(f"a record may have at most {LONGEST} bytes")
    return b"".join(parts)


class _Walk:
    """Walks the messages around the records; a group occurs in none of them."""

    def __init__(self, body: bytes, most: int) -> None:
        self._body, self._most = body, most
        self._fields, self._records = most * _SHELLS + 64, most

    def record(self) -> None:
        self._records -= 1
        if self._records < 0:
            raise too_many(self._most)

    def parts(self, at: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Number, start and end of the first two fields' messages; other fields are skipped."""
        while at < end:
            self._fields -= 1
            if self._fields < 0:
                raise too_many(self._most)
            tag, at = self._varint(at)
            number, kind = tag >> 3, tag & 7
            if kind == 0:
                _, at = self._varint(at)
            elif kind == 2:
                size, start = self._varint(at)
                at = start + size
                if at <= end and number in (1, 2):
                    yield number, start, at
            elif kind in (1, 5):
                at += 8 if kind == 1 else 4
            else:
                raise Malformed
        if at > end:
            raise Malformed

    def _varint(self, at: int) -> tuple[int, int]:
        found = 0
        for place in range(at, min(at + 10, len(self._body))):
            byte = self._body[place]
            found |= (byte & 0x7F) << (7 * (place - at))
            if byte < 0x80:
                return found, place + 1
        raise Malformed
