"""Groups schema violations by agent, version and reason, with counts over time. Pure (S706)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from observatory.protocol.clock import to_ns

BUCKETS = 60
Row = dict[str, Any]


class ViolationRecord(NamedTuple):
    sequence_number: int
    audit_event_id: str
    at: str
    agent_id: str | None
    capability_version: str | None
    reason: str
    raw_payload_hash: str
    times: int = 1  # how many, if they are only counted; the hash is then the root over them

    def as_row(self) -> Row:
        row = self._asdict()
        return row | {"count": row.pop("times")}


class ViolationSummary(NamedTuple):
    groups: list[Row]
    counts: list[int]


def summarize_violations(found: Iterable[ViolationRecord], start_ns: int, end_ns: int) -> ViolationSummary:
    """`found` is newest first; a time outside the range counts in its nearest part."""
    width = max(1, (end_ns - start_ns) / BUCKETS)
    groups: dict[tuple[str | None, str | None, str], Row] = {}
    counts = [0] * BUCKETS
    for one in found:
        part = min(BUCKETS - 1, max(0, int((to_ns(one.at) - start_ns) / width)))
        key = (one.agent_id, one.capability_version, one.reason)
        group = groups.get(key)
        if group is None:
            group = groups[key] = {
                "agent_id": one.agent_id,
                "capability_version": one.capability_version,
                "reason": one.reason,
                "count": 0,
                "first_at": one.at,
                "last_at": one.at,
                "counts": [0] * BUCKETS,
            }
        group["count"] += one.times
        group["first_at"] = min(group["first_at"], one.at)
        group["last_at"] = max(group["last_at"], one.at)
        group["counts"][part] += one.times
        counts[part] += one.times
    made = sorted(groups.values(), key=lambda row: row["last_at"], reverse=True)
    made.sort(key=lambda row: -row["count"])
    return ViolationSummary(made, counts)
