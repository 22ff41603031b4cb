"""The circuit breaker of a capability: closed → open → half-open → closed (ruling 28).

Law: a capability has a breaker once somebody gave it a route or addressed it by `type:`, so that plain
ingest pays one look at an empty dict. Outcomes are the `action.status` of what agents of that capability
report; while it is open, work for it is parked. After a while one probe passes: its outcome closes or
opens again. Opened by a person it stays open until a person closes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Breaker
from observatory.pipeline.state import Act, Desk, Draft, Memory, Principal, Verdict

SECOND = 1_000_000_000


class Limits(msgspec.Struct):
    """When a circuit opens; set once at start from the settings, by `reaping.obey`."""

    window_ns: int = 60 * SECOND
    min_calls: int = 10
    failure_ratio: float = 0.5
    open_ns: int = 30 * SECOND


LIMITS = Limits()


def known(memory: Memory, capability: str, now_ns: int) -> Breaker:
    """Its row, made when there is none: the rulebook then names it, so that every gateway reads it."""
    row = memory.breakers.get(capability)
    if row is None:
        row = memory.breakers[capability] = Breaker(capability=capability, window_ns=now_ns)
        memory.touch(row)
        named = memory.rulebook.breakers | {capability}
        memory.rulebook = msgspec.structs.replace(memory.rulebook, breakers=named)
        memory.tenant.rulebook_version += 1
    return row


def would_admit(state: str, opened_ns: int | None, forced_by: str | None, now_ns: int) -> bool:
    """Whether work may pass now, if only as a probe. A probe nobody answers is followed by another."""
    if state == "closed":
        return True
    return forced_by is None and now_ns - (opened_ns or 0) >= LIMITS.open_ns


def admits(capability: str, desk: Desk, number: int) -> bool:
    """May this work pass? The first after the open time is the probe; the rest go on waiting."""
    memory, now_ns = desk.memory, desk.now_ns
    row = known(memory, capability, now_ns)
    if row.state == "closed":
        return True
    if not would_admit(row.state, row.opened_ns, row.forced_by, now_ns):
        return False
    was = row.state
    row.state, row.opened_ns, row.probe_seq = "half_open", now_ns, number
    memory.touch(row)
    if was == "open":
        desk.append(_told(memory, row, "breaker_half_opened", "lets one probe pass", now_ns))
    return True


def learn(capabilities: Iterable[str], status: str, desk: Desk) -> None:
    """An outcome was reported by an agent that can do these."""
    if status not in ("success", "failure"):
        return
    for capability in capabilities:
        row = desk.memory.breakers.get(capability)
        if row is not None:
            _count(row, status == "failure", desk)


def _count(row: Breaker, failed: bool, desk: Desk) -> None:
    memory, now_ns = desk.memory, desk.now_ns
    if row.state == "open":
        return
    if row.state == "half_open":
        if failed:
            _open(row, "the probe failed", desk)
        else:
            close(row, memory, now_ns)
            desk.append(_told(memory, row, "breaker_closed", "is closed: the probe succeeded", now_ns))
        return
    if now_ns - row.window_ns >= LIMITS.window_ns:
        row.window_ns, row.successes, row.failures = now_ns, 0, 0
    row.successes += not failed
    row.failures += failed
    memory.touch(row)
    calls = row.successes + row.failures
    if failed and calls >= LIMITS.min_calls and row.failures >= LIMITS.failure_ratio * calls:
        _open(row, f"{row.failures} of {calls} calls failed", desk)


def _open(row: Breaker, reason: str, desk: Desk) -> None:
    row.state, row.opened_ns, row.probe_seq, row.reason = "open", desk.now_ns, None, reason
    desk.memory.touch(row)
    desk.append(_told(desk.memory, row, "breaker_opened", f"is open: {reason}", desk.now_ns))


def close(row: Breaker, memory: Memory, now_ns: int) -> None:
    row.state, row.window_ns, row.successes, row.failures = "closed", now_ns, 0, 0
    row.opened_ns = row.probe_seq = row.reason = row.forced_by = None
    memory.touch(row)


def force(who: Principal, capability: str, state: Literal["open", "closed"], now_ns: int) -> Act:
    """By hand: open until closed by hand; closed, and counting anew."""

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        row = known(memory, capability, now_ns)
        if state == "closed":
            close(row, memory, now_ns)
            event = _told(memory, row, "breaker_closed", "was closed by hand", now_ns, who)
        else:
            row.state, row.opened_ns, row.probe_seq = "open", now_ns, None
            row.reason, row.forced_by = "opened by hand", who.entity_id
            memory.touch(row)
            event = _told(memory, row, "breaker_opened", "was opened by hand", now_ns, who)
        return Verdict(200, msgspec.structs.replace(row), [event])

    return Act(who, now_ns, decide)


def _told(
    memory: Memory, row: Breaker, event_type: str, did: str, now_ns: int, who: Principal | None = None
) -> Draft:
    detail: dict[str, Any] = {
        "capability": row.capability,
        "successes": row.successes,
        "failures": row.failures,
        "window_s": LIMITS.window_ns // SECOND,
        "reason": row.reason,
    }
    summary = f"the circuit of {row.capability} {did}"
    return notice(memory.tenant.tenant_id, event_type, summary, now_ns, who, detail)
