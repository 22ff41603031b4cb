"""Ten frames a second, and a late one costs the next nothing."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from observatory.runtime.feed_pace import FRAMES, GAP_S, SLACK_S, FramePacer

moments = st.lists(st.floats(0, 0.3, allow_nan=False), min_size=1, max_size=60)


@given(moments, st.floats(0, 0.2))
def test_in_no_second_are_there_more_than_ten_s286(waits: list[float], sending: float) -> None:
    pace, now, times = FramePacer(), 100.0, []
    for wait in waits:
        now = max(now + wait, pace.due)
        pace.hand(now)
        times.append(now)
        now += sending
        pace.arrive(now)
    assert all(late - early >= 1 - 1e-9 for early, late in zip(times, times[FRAMES:], strict=False))
    assert all(late - early >= GAP_S - SLACK_S - 1e-9 for early, late in itertools.pairwise(times))


def test_one_late_frame_does_not_put_off_all_that_follow_s286() -> None:
    """Looks come every 100 ms, one of them 40 ms late: the one after it is told when it is there."""
    pace, received = FramePacer(), []
    for ready in (0.0, 0.1, 0.24, 0.3, 0.4, 0.5):
        now = max(ready, pace.due)
        pace.hand(now)
        pace.arrive(now)
        received.append(round(now - ready, 3))
    assert received == [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_what_took_long_to_send_counts_from_its_end_s286() -> None:
    pace = FramePacer()
    pace.hand(1.0)
    pace.arrive(3.0)
    assert 3.0 < pace.due < 3.1
    pace.arrive(9.0)  # only once
    assert pace.due < 3.1
