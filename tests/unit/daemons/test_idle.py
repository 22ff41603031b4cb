"""What a fold was not asked for during a whole period is over at its end."""

from __future__ import annotations

from observatory.runtime.fold_memory import IDLE_S, IdleKeys


def test_what_was_not_wanted_for_a_whole_period_is_over_s1201() -> None:
    now = 0.0
    idle = IdleKeys[str](lambda: now)
    kept = {"a": 1, "b": 2, "c": 3}
    idle.want("a", "b")
    now = IDLE_S - 0.1
    assert idle.over(kept) == []
    now = IDLE_S
    assert idle.over(kept) == ["c"]
    idle.want("b")
    now = 2 * IDLE_S - 0.1
    assert idle.over(kept) == []
    now = 2 * IDLE_S
    assert idle.over(kept) == ["a", "c"]
    now = 3 * IDLE_S
    assert idle.over(kept) == ["a", "b", "c"]
    assert not idle._used, "the set of used keys is cleared too"
