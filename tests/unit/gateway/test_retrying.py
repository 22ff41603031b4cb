"""When a receiver is asked again: the ruled schedule, its jitter, what it asks for, and its pauses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.features.webhooks.retry import (
    BREAK_AT,
    JITTER,
    LONGEST_PAUSE_S,
    MAX_RETRY_AFTER_S,
    SCHEDULE_S,
    ReceiverHealth,
    S,
    after_failure,
    give_up_after_s,
    jitter_of,
    retry_after_s,
    wait_s,
)

NOW = 1_790_000_000 * S


def test_the_schedule_is_the_ruled_one_s494() -> None:
    """S494: after the first try 30 s, 2 min, 10 min, 1 h and 6 h; then there is none."""
    assert [wait_s(SCHEDULE_S, tries, 0.0) for tries in range(1, 7)] == [30, 120, 600, 3_600, 21_600, None]
    assert wait_s([], 1, 0.5) is None


@given(st.text(max_size=20), st.integers(1, 5), st.integers(0, 10**6) | st.none())
def test_a_wait_is_never_shorter_and_little_longer_s494(name: str, tries: int, asked: int | None) -> None:
    """S494, S495: by chance that is the same each time; what is asked for is granted up to its bound."""
    luck = jitter_of(name, tries)
    assert 0 <= luck < 1 and luck == jitter_of(name, tries)
    wait = wait_s(SCHEDULE_S, tries, luck, asked)
    assert wait is not None
    floor = max(SCHEDULE_S[tries - 1], min(asked or 0, MAX_RETRY_AFTER_S))
    assert floor <= wait <= max(SCHEDULE_S[tries - 1] * (1 + JITTER), floor)


def test_chances_differ_s494() -> None:
    """S494: or all would come back together."""
    assert len({jitter_of(f"whd_{number}", 1) for number in range(100)}) > 90


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("0", 0),
        ("9" * 40, 999_999_999),
        ("Mon, 21 Sep 2026 14:13:50 GMT", 30),
        ("Mon, 21 Sep 2020 14:13:50 GMT", 0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("٣", None),
        ("Mon, 21 Sep 99999999999999999999 14:13:50 GMT", None),
        ("Mon, 21 Sep 2026 14:13:50 +99999999999999999999", None),
    ],
)
def test_what_a_receiver_asks_for_is_seconds_or_a_date_s495(header: str | None, seconds: int | None) -> None:
    """S495: what is neither is not heard."""
    assert retry_after_s(header, NOW) == seconds


def test_a_receiver_is_left_alone_for_ever_longer_up_to_a_bound_s499() -> None:
    """S499: nothing at first; from the fifth failure in a row on twice as long each time."""
    health, pauses = ReceiverHealth(), []
    for _ in range(12):
        health = after_failure(health._replace(paused_until_ns=None), SCHEDULE_S, 500, None, NOW)
        pauses.append(0 if health.paused_until_ns is None else (health.paused_until_ns - NOW) // S)
    assert pauses[: BREAK_AT - 1] == [0] * (BREAK_AT - 1)
    assert pauses[BREAK_AT - 1 :] == [
        30,
        60,
        120,
        240,
        480,
        LONGEST_PAUSE_S,
        LONGEST_PAUSE_S,
        LONGEST_PAUSE_S,
    ]


@pytest.mark.parametrize(
    ("code", "asked", "pause"),
    [(429, None, 30), (502, None, 30), (504, 90, 90), (429, 10**9, MAX_RETRY_AFTER_S), (503, 90, 90),
     (503, None, 0), (500, 90, 0), (None, None, 0)],
)  # fmt: skip
def test_codes_that_throttle_pause_the_whole_lane_s495(
    code: int | None, asked: int | None, pause: int
) -> None:
    """S495: 429, 502 and 504; and 503 with a Retry-After. A pause is never made shorter."""
    after = after_failure(ReceiverHealth(), SCHEDULE_S, code, asked, NOW)
    assert after.paused_until_ns == (NOW + pause * S if pause else None)
    long = ReceiverHealth(1, NOW + 10**6 * S)
    assert after_failure(long, SCHEDULE_S, code, asked, NOW).paused_until_ns == long.paused_until_ns


def test_patience_outlasts_every_try_s506() -> None:
    """S506: a delivery that can be tried is never given up before its last try."""
    assert give_up_after_s(SCHEDULE_S) > sum(SCHEDULE_S) * (1 + JITTER)
