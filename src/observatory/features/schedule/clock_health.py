"""Whether the gateway's clock can be believed: against one that nobody sets, against the record, and by what
was planned by it (S1164, S1165)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from observatory.features.schedule.commands_from_now import AT_ONCE, JOBS_NS, RUNS_NS
from observatory.features.schedule.cron import SECOND
from observatory.features.transparency.health import HealthPart
from observatory.http.app_state import House
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns, to_ns

MEND: Final = "Put the clock right, then say so: `observatory jobs from-now`."
# As far as clocks of gateways on one database may differ.
RECORD_NS: Final = 60 * SECOND
LOOKED_AT: Final = 100  # events
SAID_RIGHT: Final = b'"event_type":"schedule_resumed"'


class ClockHealth(HealthPart, kw_only=True):
    """`parted_s`: how far the clock was set since it was last believed. `behind_record_s`: how far it is
    behind the newest event. `jobs_ahead`: schedules that a clock which ran ahead has put off."""

    shows: str
    parted_s: float
    is_firing: bool
    newest_event_at: str | None
    behind_record_s: float
    jobs_ahead: int
    runs_ahead: int
    farthest_next_at: str | None


class _Observed(msgspec.Struct):
    observed_timestamp: str


_read: Final = msgspec.json.Decoder(_Observed).decode


async def clock_health(house: House, tenant_id: str) -> dict[str, Any]:
    """Of one tenant: its record and its schedules. Raises StoreError when they cannot be read."""
    now_ns, parted_ns = house.clock(), house.wall.parted_ns
    newest_ns = await _newest(house, tenant_id)
    behind_ns = 0 if newest_ns is None else newest_ns - now_ns
    jobs = await house.schedule.jobs_ahead(tenant_id, now_ns + JOBS_NS, AT_ONCE)
    runs = await house.schedule.runs_ahead(tenant_id, now_ns + RUNS_NS, AT_ONCE)
    text = _text(parted_ns if house.wall.is_parted else 0, behind_ns, jobs, runs, now_ns)
    return {
        "status": "degraded" if text else "ok",
        "text": text or "It agrees with the steady clock, the record and the schedules.",
        "shows": from_ns(now_ns),
        "parted_s": round(parted_ns / SECOND, 3),
        "is_firing": not house.wall.is_parted,
        "newest_event_at": None if newest_ns is None else from_ns(newest_ns),
        "behind_record_s": round(max(0, behind_ns) / SECOND, 3),
        "jobs_ahead": len(jobs),
        "runs_ahead": len(runs),
        "farthest_next_at": from_ns(jobs[0]["next_ns"]) if jobs else None,
    }


async def _newest(house: House, tenant_id: str) -> int | None:
    """The latest time among the newest events, back to where a person last said that the clock is right."""
    times = []
    for event in await house.store.events(tenant_id, EventFilter(), LOOKED_AT, newest_first=True):
        times.append(to_ns(_read(event.record).observed_timestamp))
        if SAID_RIGHT in event.record:
            break
    return max(times, default=None)


def _text(parted_ns: int, behind_ns: int, jobs: list[Any], runs: list[Any], now_ns: int) -> str:
    """What is wrong, the worst first; empty when nothing is."""
    told = []
    if parted_ns:
        way = "ahead" if parted_ns > 0 else "back"
        told.append(f"It was set {_span(abs(parted_ns))} {way} while the gateway ran; no schedule fires.")
    if behind_ns > RECORD_NS:
        told.append(f"It is {_span(behind_ns)} behind the newest event of the record.")
    if jobs or runs:
        last_ns = jobs[0]["next_ns"] if jobs else runs[0]["next_try_ns"]
        many = f"{len(jobs)} schedule{'' if len(jobs) == 1 else 's'}" if jobs else f"{len(runs)} runs"
        told.append(f"A clock that ran ahead has put off {many}, the farthest by {_span(last_ns - now_ns)}.")
    return " ".join([*told, MEND] if told else [])


def _span(ns: int) -> str:
    seconds = ns // SECOND
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} seconds"
