"""Time on the wire is text: UTC, nine fraction digits, `Z`.

Law: a stored time is never rounded (a float or a `datetime` would round nanoseconds), so times stay
text and compare as text; the integer form is Unix nanoseconds. Accepted are RFC 3339 times with a
zone. A time without a zone, an impossible date, more than nine digits, or a time outside 1970-2261
(what 64 bits of Unix nanoseconds, and so OTLP and both databases, can hold) is a `ValueError`.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

EXPECTED: Final = (
    "an RFC 3339 time with a zone and at most nine fraction digits, between 1970 and 2261,"
    " such as 2026-02-16T14:32:00.123456789Z"
)
PATTERN: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})$(?!\n)"
)

_SECOND: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
_ANY: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND: Final = int((datetime(2262, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) - 1
LAST_NS: Final = (_LAST_SECOND + 1) * 1_000_000_000 - 1


@lru_cache(maxsize=8192)
def _unix_second(text: str) -> int:
    """Unix second of `YYYY-MM-DDTHH:MM:SS` in UTC; cached, as many messages share a second."""
    if _SECOND.fullmatch(text) is None:
        raise ValueError("not a time")
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    second = (moment - _EPOCH) // timedelta(seconds=1)
    if not 0 <= second <= _LAST_SECOND:
        raise ValueError("a time outside 1970-2261")
    return second


@lru_cache(maxsize=8192)
def _second_text(second: int) -> str:
    if not 0 <= second <= _LAST_SECOND:
        raise ValueError("a time outside 1970-2261")
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")


def parse(text: str) -> tuple[str, int]:
    """The canonical text and the Unix nanoseconds of a time, in one step."""
    # The common form first: the second is cached, only the fraction is parsed.
    if text[-1:] == "Z" and text[10:11] == "T":
        fraction = text[20:-1]
        if text[19:20] == "." and len(fraction) <= 9 and fraction.isdigit() and fraction.isascii():
            padded = fraction.ljust(9, "0")
            return f"{text[:19]}.{padded}Z", _unix_second(text[:19]) * 1_000_000_000 + int(padded)
        if len(text) == 20:
            return f"{text[:19]}.000000000Z", _unix_second(text[:19]) * 1_000_000_000
    return _parse_any(text)


def _parse_any(text: str) -> tuple[str, int]:
    match = _ANY.fullmatch(text)
    if match is None:
        raise ValueError("not a time")
    day, clock, fraction, sign, hours, minutes = match.groups()
    moment = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)
    second = (moment - _EPOCH) // timedelta(seconds=1)
    if sign is not None:
        if int(hours) > 23 or int(minutes) > 59:
            raise ValueError("not a zone")
        offset = int(hours) * 3600 + int(minutes) * 60
        second += -offset if sign == "+" else offset
    padded = f"{fraction or '':0<9}"
    return f"{_second_text(second)}.{padded}Z", second * 1_000_000_000 + int(padded)


def normalise(text: str) -> str:
    """The canonical spelling of a time: `2026-02-16T14:32:00.000000000Z`."""
    return parse(text)[0]


def to_ns(text: str) -> int:
    """Unix nanoseconds of a time, exact."""
    # The canonical spelling first: reading a whole session parses two of these per step.
    if len(text) == 30 and text[10] == "T" and text[19] == "." and text[29] == "Z":
        fraction = text[20:29]
        if fraction.isdigit() and fraction.isascii():
            return _unix_second(text[:19]) * 1_000_000_000 + int(fraction)
    return parse(text)[1]


def from_ns(ns: int) -> str:
    """The canonical text of Unix nanoseconds."""
    second, fraction = divmod(ns, 1_000_000_000)
    return f"{_second_text(second)}.{fraction:09d}Z"
