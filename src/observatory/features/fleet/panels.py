"""Figures of the map's panels: traffic second by second, and delivery latency by region (S303, S306).

Pure, over counts by second and over durations. Percentiles are nearest rank over what was sampled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from observatory.features.fleet.regions import Region
from observatory.features.fleet.types_traffic import SecondCount
from observatory.protocol.clock import from_ns

SECOND: Final = 1_000_000_000
POINTS: Final = 60
RATE_S: Final = 10  # the current rate is the mean of this many whole seconds
# Upper ends of the histogram's buckets; one more bucket holds everything slower.
EDGES_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
UNPLACED: Final = "unplaced"
Row = dict[str, Any]


class Flow(NamedTuple):
    """Traffic by second; seconds that are missing had none."""

    counts: Mapping[int, SecondCount]

    def points(self, now_ns: int, bucket_s: int) -> list[Row]:
        """`POINTS` buckets up to the running one, oldest first, without gaps."""
        last = now_ns // SECOND // bucket_s
        made = {
            bucket: {"at": from_ns(bucket * bucket_s * SECOND), "messages": 0, "failures": 0, "violations": 0}
            for bucket in range(last - POINTS + 1, last + 1)
        }
        for count in self.counts.values():
            point = made.get(count.second // bucket_s)
            if point is not None:
                for name in ("messages", "failures", "violations"):
                    point[name] += getattr(count, name)
        return list(made.values())

    def rate(self, now_ns: int) -> float:
        """Messages a second now: the mean of the last whole seconds."""
        now_s = now_ns // SECOND
        passed = sum(one.messages for one in self.counts.values() if now_s - RATE_S <= one.second < now_s)
        return round(passed / RATE_S, 2)

    def sums(self, now_ns: int, window_s: int) -> Row:
        first = now_ns // SECOND - window_s + 1
        mine = [one for one in self.counts.values() if one.second >= first]
        return {
            "messages": sum(one.messages for one in mine),
            "failures": sum(one.failures for one in mine),
            "violations": sum(one.violations for one in mine),
            "cost": round(sum(one.cost for one in mine), 9),
        }


def flow(folded: Iterable[SecondCount], unfolded: Mapping[int, tuple[int, int]]) -> Flow:
    """Adds what is not folded yet: messages and violations, but not failures."""
    counts = {one.second: one for one in folded}
    for second, (messages, violations) in unfolded.items():
        known = counts.get(second, SecondCount(second, 0, 0, 0, 0.0))
        counts[second] = known._replace(
            messages=known.messages + messages, violations=known.violations + violations
        )
    return Flow(counts)


def latencies(taken: Iterable[tuple[int, Region | None]]) -> Row:
    """From (nanoseconds, region of the receiver): each region's and all together, the busiest first."""
    by: dict[Region | None, list[int]] = {}
    for spent_ns, region in taken:
        by.setdefault(region, []).append(max(0, spent_ns))
    regions = [
        _place(region) | _spread(sorted(spent))
        for region, spent in sorted(by.items(), key=lambda one: (-len(one[1]), _place(one[0])["region"]))
    ]
    return {
        "edges_ms": list(EDGES_MS),
        "regions": regions,
        "all": _spread(sorted(one for spent in by.values() for one in spent)),
    }


def _place(region: Region | None) -> Row:
    if region is None:
        return {"region": UNPLACED, "name": "no known region", "lat": None, "lon": None}
    return region._asdict()


def _spread(ordered: Sequence[int]) -> Row:
    histogram = [0] * (len(EDGES_MS) + 1)
    for spent_ns in ordered:
        histogram[bisect_left(EDGES_MS, spent_ns / 1_000_000)] += 1
    return {
        "count": len(ordered),
        **{f"p{share}_ms": _rank(ordered, share) for share in (50, 95, 99)},
        "max_ms": _rank(ordered, 100),
        "histogram": histogram,
    }


def _rank(ordered: Sequence[int], share: int) -> float | None:
    if not ordered:
        return None
    return round(ordered[-(-len(ordered) * share // 100) - 1] / 1_000_000, 3)
