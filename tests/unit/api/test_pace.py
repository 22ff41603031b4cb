"""How often a door without a key may be knocked at."""

from __future__ import annotations

from observatory.http import rate_limit as pace
from observatory.http.rate_limit import RateLimiter


def test_so_many_at_once_then_so_many_a_second_s428() -> None:
    """S428: each for themselves."""
    now = 0.0
    door = RateLimiter(3, 2, lambda: now)
    assert [door.allows("a") for _ in range(4)] == [True, True, True, False]
    assert door.allows("b")
    now = 0.5
    assert [door.allows("a") for _ in range(2)] == [True, False]
    now = 100.0
    assert [door.allows("a") for _ in range(4)] == [True, True, True, False]


def test_no_more_are_remembered_than_fit_s428() -> None:
    """S428: a million strangers cost no memory."""
    door = RateLimiter(1, 0, lambda: 0.0)
    for number in range(pace.MAX_CALLERS + 10):
        assert door.allows(number)
    assert len(door._left) == pace.MAX_CALLERS
    assert not door.allows(pace.MAX_CALLERS + 9)
