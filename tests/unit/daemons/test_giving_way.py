"""When the analyst rests, told by a simulation: a rate comes in, pages are folded, rests are kept."""

import pytest

from observatory.runtime.backpressure import FAR, MAX_REST_S, AnalystBackpressure

PAGE, FOLDS = 2_000, 2_000.0  # messages a round, and a second


def play(
    rates: list[tuple[float, float]], backlog: int = 0, slow: dict[int, float] | None = None
) -> tuple[float, float, int]:
    """Rates and how long each lasts. Seconds worked, seconds rested, how far behind at the end.

    The record is looked at before a round, not after it. `slow` rounds take so many times as long.
    """
    way, now, head, cursor, worked, rested = AnalystBackpressure(), 0.0, float(backlog), 0.0, 0.0, 0.0
    rounds = 0
    for rate, lasts_s in rates:
        until = now + lasts_s
        while now < until:
            at, seen, page = now, head, min(PAGE, head - cursor)
            took = max(page / FOLDS, 0.075) * (slow or {}).get(rounds, 1.0)  # it looks for more no sooner
            now, head, cursor, worked = now + took, head + rate * took, cursor + page, worked + took
            rest = way.rest_s(at, took, int(seen), int(cursor))
            now, head, rested, rounds = now + rest, head + rate * rest, rested + rest, rounds + 1
    return worked, rested, int(head - cursor)


@pytest.mark.parametrize("rate", [100, 1_000, 1_900, 2_500, 3_500])
def test_what_can_nearly_be_kept_up_with_is_chased_without_rest(rate: float) -> None:
    assert play([(rate, 60)])[1] == 0


@pytest.mark.parametrize("rate", [5_000, 10_000, 50_000])
def test_far_more_than_can_be_folded_leaves_most_of_the_time_to_whoever_commits_s197(rate: float) -> None:
    worked, rested, behind = play([(rate, 60)])
    assert rested > 2 * worked and behind > FAR
    assert worked > 5, "and it goes on all the same"


def test_when_less_comes_it_catches_up_at_once() -> None:
    _, rested, behind = play([(10_000, 10), (500, 90)])
    assert behind <= FAR / 10
    assert rested < 10 + MAX_REST_S


def test_a_backlog_alone_is_no_reason_to_rest() -> None:
    assert play([(0, 100)], backlog=100_000)[1] == 0
    assert play([(1_000, 100)], backlog=100_000)[1] == 0


@pytest.mark.parametrize("slow", [{3: 3.0}, {0: 2.5, 1: 2.5, 2: 2.5}, {5: 6.0, 6: 0.5}])
def test_some_slow_pages_are_no_lost_chase(slow: dict[int, float]) -> None:
    """As when a large file was not read for long: to rest then would put off what is put off already."""
    assert play([(1_900, 60)], slow=slow)[1] == 0


def test_no_rest_is_long() -> None:
    way = AnalystBackpressure()
    way.rest_s(0.0, 1.0, 10_000, 0)
    assert way.rest_s(60.0, 60.0, 10_000_000, 500) == MAX_REST_S
