"""Times are text, UTC, nine digits; nothing is rounded and nothing is guessed."""

import contextlib
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.protocol import clock

FIRST = datetime.fromisoformat("1970-01-02")
LAST = datetime.fromisoformat("2261-12-30")
LAST_NS = clock.to_ns("2261-12-31T23:59:59.999999999Z")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("2026-02-16T14:32:00Z", "2026-02-16T14:32:00.000000000Z"),
        ("2026-02-16T14:32:00.1Z", "2026-02-16T14:32:00.100000000Z"),
        ("2026-02-16T14:32:00.123456789Z", "2026-02-16T14:32:00.123456789Z"),
        ("2026-02-16t14:32:00z", "2026-02-16T14:32:00.000000000Z"),
        ("2026-02-16 14:32:00Z", "2026-02-16T14:32:00.000000000Z"),
        ("2026-02-16T14:32:00+01:00", "2026-02-16T13:32:00.000000000Z"),
        ("2026-02-16T14:32:00.5-05:30", "2026-02-16T20:02:00.500000000Z"),
        ("2026-03-01T00:10:00+00:30", "2026-02-28T23:40:00.000000000Z"),
        ("2026-02-16T14:32:00-00:00", "2026-02-16T14:32:00.000000000Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000000Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000000Z"),
    ],
)
def test_a_time_with_a_zone_has_one_spelling(text: str, normal: str) -> None:
    assert clock.normalise(text) == normal
    assert clock.normalise(normal) == normal


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Z",
        "now",
        "2026-02-16",
        "2026-02-16T14:32:00",
        "2026-02-16T14:32Z",
        "2026-02-30T14:32:00Z",
        "2023-02-29T14:32:00Z",
        "2026-13-01T14:32:00Z",
        "2026-02-16T24:00:00Z",
        "2026-02-16T23:60:00Z",
        "2026-02-16T23:59:60Z",
        "2026-02-16T14:32:00.1234567890Z",
        "2026-02-16T14:32:00.Z",
        "2026-02-16T14:32:00.١Z",
        "2026-02-16T14:32:00.²Z",
        "٢٠٢٦-02-16T14:32:00Z",
        "2026-02-16T14:32:00+24:00",
        "2026-02-16T14:32:00+01:60",
        "2026-02-16T14:32:00+0100",
        "2026-02-16T14:32:00Z\n",
        " 2026-02-16T14:32:00Z",
        "20260216T143200Z",
        "2026-W08-1T14:32:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "1969-12-31T23:59:59Z",
        "9999-12-31T23:59:59-23:59",
        "2262-01-01T00:00:00Z",
        "1771252320",
    ],
)
def test_what_is_no_time_or_has_no_zone_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        clock.normalise(text)
    with pytest.raises(ValueError):
        clock.to_ns(text)


@given(st.integers(min_value=0, max_value=LAST_NS))
def test_nanoseconds_and_text_round_trip(ns: int) -> None:
    text = clock.from_ns(ns)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", text)
    assert clock.parse(text) == (text, ns)


@given(st.integers(min_value=0, max_value=LAST_NS), st.integers(min_value=0, max_value=LAST_NS))
def test_text_sorts_as_time(a: int, b: int) -> None:
    assert (clock.from_ns(a) < clock.from_ns(b)) == (a < b)


@given(st.datetimes(FIRST, LAST, timezones=st.timezones()))
def test_any_zone_agrees_with_datetime(moment: datetime) -> None:
    text = moment.isoformat()
    if not re.search(r"[+-]\d\d:\d\d$", text):
        return  # a historical offset with seconds is no RFC 3339
    expected = moment.astimezone(UTC).replace(tzinfo=None)
    assert clock.normalise(text)[:-4] == expected.isoformat(timespec="microseconds")


@given(st.text())
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        clock.parse(text)


@pytest.mark.parametrize("ns", [-1, LAST_NS + 1])
def test_what_64_bits_cannot_hold_is_refused(ns: int) -> None:
    with pytest.raises(ValueError):
        clock.from_ns(ns)
