"""Health of the gateway's wall clock: compared with the monotonic clock, the record and the planned runs
(S1164, S1165)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from observatory.features.schedule.commands_from_now import AT_ONCE, JOBS_NS, RUNS_NS
from observatory.features.schedule.cron import SECOND
from observatory.features.schedule.types_rows import Schedule
from observatory.http.app_state import AppState
from observatory.http.health import HealthPart
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns, to_ns

MEND: Final = "Correct the clock, then confirm it: `observatory jobs from-now`."
# The clocks of gateways on one database may differ by this much.
RECORD_NS: Final = 60 * SECOND
MAX_EVENTS: Final = 100
CONFIRMED: Final = b'"event_type":"schedule_resumed"'


class ClockHealth(HealthPart, kw_only=True):
    """`parted_s`: how far the clock was set since it was last confirmed. `behind_record_s`: how far it is
    behind the newest event. `jobs_ahead`: schedules that a clock running ahead has postponed."""

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


async def clock_health(app: AppState, tenant_id: str) -> dict[str, Any]:
    """The clock's health for one tenant's record and schedules. Raises StoreError if they cannot be read."""
    now_ns, offset_ns = app.clock(), app.wall.offset_ns
    newest_ns = await _newest(app, tenant_id)
    behind_ns = 0 if newest_ns is None else newest_ns - now_ns
    jobs = await app.service(Schedule).jobs_ahead(tenant_id, now_ns + JOBS_NS, AT_ONCE)
    runs = await app.service(Schedule).runs_ahead(tenant_id, now_ns + RUNS_NS, AT_ONCE)
    text = _text(offset_ns if app.wall.is_clock_off else 0, behind_ns, jobs, runs, now_ns)
    return {
        "status": "degraded" if text else "ok",
        "text": text or "It agrees with the steady clock, the record and the schedules.",
        "shows": from_ns(now_ns),
        "parted_s": round(offset_ns / SECOND, 3),
        "is_firing": not app.wall.is_clock_off,
        "newest_event_at": None if newest_ns is None else from_ns(newest_ns),
        "behind_record_s": round(max(0, behind_ns) / SECOND, 3),
        "jobs_ahead": len(jobs),
        "runs_ahead": len(runs),
        "farthest_next_at": from_ns(jobs[0]["next_ns"]) if jobs else None,
    }


async def _newest(app: AppState, tenant_id: str) -> int | None:
    """The latest time among the newest events, back to the last confirmation that the clock is right."""
    times = []
    for event in await app.store.events(tenant_id, EventFilter(), MAX_EVENTS, newest_first=True):
        times.append(to_ns(_read(event.record).observed_timestamp))
        if CONFIRMED in event.record:
            break
    return max(times, default=None)


def _text(offset_ns: int, behind_ns: int, jobs: list[Any], runs: list[Any], now_ns: int) -> str:
    """The problems, the worst first; empty when there are none."""
    problems = []
    if offset_ns:
        direction = "ahead" if offset_ns > 0 else "back"
        problems.append(
            f"It was set {_span(abs(offset_ns))} {direction} while the gateway ran; no schedule fires."
        )
    if behind_ns > RECORD_NS:
        problems.append(f"It is {_span(behind_ns)} behind the newest event of the record.")
    if jobs or runs:
        last_ns = jobs[0]["next_ns"] if jobs else runs[0]["next_try_ns"]
        count, noun = (len(jobs), "schedule") if jobs else (len(runs), "run")
        many = f"{count} {noun}{'' if count == 1 else 's'}"
        problems.append(
            f"A clock that ran ahead has postponed {many}, the farthest by {_span(last_ns - now_ns)}."
        )
    return " ".join([*problems, MEND] if problems else [])


def _span(ns: int) -> str:
    seconds = ns // SECOND
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} seconds"
