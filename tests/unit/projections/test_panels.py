"""Points of the throughput panel, and how latencies are put into regions and buckets."""

from __future__ import annotations

from observatory.features.fleet.panels import EDGES_MS, SECOND, UNPLACED, flow, latencies
from observatory.features.fleet.regions import Region
from observatory.features.fleet.types_traffic import SecondCount

NOW = 1_000_000 * SECOND + 5
HERE = Region("aws:eu-central-1", "Frankfurt", 50.1, 8.7)
MS = 1_000_000


def count(
    ago_s: int, messages: int, failures: int = 0, violations: int = 0, cost: float = 0.0
) -> SecondCount:
    return SecondCount(NOW // SECOND - ago_s, messages, failures, violations, cost)


def test_every_second_of_the_window_has_a_point_and_no_other_s303() -> None:
    found = flow([count(0, 3), count(59, 2, 1), count(60, 9)], {}).points(NOW, 1)
    assert len(found) == 60 and [found[0]["messages"], found[-1]["messages"]] == [2, 3]
    assert sum(one["messages"] for one in found) == 5 and sum(one["failures"] for one in found) == 1


def test_minutes_are_whole_ones_of_the_clock() -> None:
    found = flow([count(second, 1) for second in range(0, 200)], {}).points(NOW, 60)
    running = NOW // SECOND % 60 + 1
    assert [one["messages"] for one in found[-3:]] == [60, 60, running]
    assert sum(one["messages"] for one in found) == 200 and len(found) == 60


def test_what_is_not_folded_adds_to_what_is() -> None:
    made = flow([count(1, 2, 1, 0, 0.5)], {NOW // SECOND - 1: (3, 1), NOW // SECOND: (4, 0)})
    sums = made.sums(NOW, 60)
    assert sums == {"messages": 9, "failures": 1, "violations": 1, "cost": 0.5}


def test_the_rate_is_of_whole_seconds_only() -> None:
    """The running second is not over: with it the rate would always be too low."""
    assert flow([count(0, 1_000), count(1, 5), count(10, 5), count(11, 1_000)], {}).rate(NOW) == 1.0
    assert flow([], {}).rate(NOW) == 0.0


def test_percentiles_are_nearest_rank_and_every_delivery_is_in_one_bucket_s306() -> None:
    taken = [(number * MS, HERE) for number in range(1, 101)] + [(90_000 * MS, None), (-5, None)]
    found = latencies(taken)
    frankfurt, nowhere = found["regions"]
    assert (frankfurt["region"], nowhere["region"]) == (HERE.region, UNPLACED)
    assert [frankfurt[name] for name in ("count", "p50_ms", "p95_ms", "p99_ms", "max_ms")] == [
        100, 50.0, 95.0, 99.0, 100.0,
    ]  # fmt: skip
    assert sum(frankfurt["histogram"]) == 100 and frankfurt["histogram"][0] == 1
    assert nowhere["histogram"][0] == 1 and nowhere["histogram"][-1] == 1
    assert len(nowhere["histogram"]) == len(EDGES_MS) + 1 and found["all"]["count"] == 102


def test_without_deliveries_nothing_is_claimed() -> None:
    found = latencies([])
    assert found["regions"] == [] and found["all"]["p50_ms"] is None and found["all"]["count"] == 0
