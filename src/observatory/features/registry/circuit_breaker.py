"""The circuit breaker of a capability: closed → open → half-open → closed (ruling 28).

Law: a capability has a breaker once it has a route or was addressed by `type:`, so that plain ingest costs
one lookup in an empty dict. Outcomes are the `action.status` that agents of that capability report; while
the breaker is open, its work is parked. After `open_ns` one probe passes, and its outcome closes or reopens
the breaker. A breaker that a person opened stays open until a person closes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from observatory.pipeline.agents import types_of
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import BreakerRow
from observatory.pipeline.state import (
    BatchState,
    Command,
    EventDraft,
    Principal,
    SubmissionResult,
    UnitOfWork,
)

SECOND = 1_000_000_000


class BreakerLimits(msgspec.Struct):
    """When a circuit opens; set once at start from the settings, by `commands_eviction`."""

    window_ns: int = 60 * SECOND
    min_calls: int = 10
    failure_ratio: float = 0.5
    open_ns: int = 30 * SECOND


LIMITS = BreakerLimits()


def breaker_of(memory: BatchState, capability: str, now_ns: int) -> BreakerRow:
    """Its row, created when missing; the tenant's configuration then names it, so every gateway reads it."""
    row = memory.breakers.get(capability)
    if row is None:
        row = memory.breakers[capability] = BreakerRow(capability=capability, window_ns=now_ns)
        memory.touch(row)
        named = memory.tenant_config.breakers | {capability}
        memory.tenant_config = msgspec.structs.replace(memory.tenant_config, breakers=named)
        memory.tenant.rulebook_version += 1
    return row


def would_admit(state: str, opened_ns: int | None, forced_by: str | None, now_ns: int) -> bool:
    """Whether work may pass now, if only as a probe. A probe without an outcome is followed by another."""
    if state == "closed":
        return True
    return forced_by is None and now_ns - (opened_ns or 0) >= LIMITS.open_ns


def admits(capability: str, uow: UnitOfWork, number: int) -> bool:
    """Whether this work may pass. The first after the open time is the probe; the rest keep waiting."""
    memory, now_ns = uow.memory, uow.now_ns
    row = breaker_of(memory, capability, now_ns)
    if row.state == "closed":
        return True
    if not would_admit(row.state, row.opened_ns, row.forced_by, now_ns):
        return False
    previous = row.state
    row.state, row.opened_ns, row.probe_seq = "half_open", now_ns, number
    memory.touch(row)
    if previous == "open":
        uow.append(
            _breaker_event(memory, row, "breaker_half_opened", "half-opened: one probe may pass", now_ns)
        )
    return True


def count_outcome(capabilities: Iterable[str], status: str, uow: UnitOfWork) -> None:
    """Count an outcome reported by an agent that has these capabilities."""
    if status not in ("success", "failure"):
        return
    for capability in capabilities:
        row = uow.memory.breakers.get(capability)
        if row is not None:
            _count(row, status == "failure", uow)


def _count(row: BreakerRow, failed: bool, uow: UnitOfWork) -> None:
    memory, now_ns = uow.memory, uow.now_ns
    if row.state == "open":
        return
    if row.state == "half_open":
        if failed:
            _open(row, "the probe failed", uow)
        else:
            close(row, memory, now_ns)
            uow.append(
                _breaker_event(memory, row, "breaker_closed", "is closed: the probe succeeded", now_ns)
            )
        return
    if now_ns - row.window_ns >= LIMITS.window_ns:
        row.window_ns, row.successes, row.failures = now_ns, 0, 0
    row.successes += not failed
    row.failures += failed
    memory.touch(row)
    calls = row.successes + row.failures
    if failed and calls >= LIMITS.min_calls and row.failures >= LIMITS.failure_ratio * calls:
        _open(row, f"{row.failures} of {calls} calls failed", uow)


def _open(row: BreakerRow, reason: str, uow: UnitOfWork) -> None:
    row.state, row.opened_ns, row.probe_seq, row.reason = "open", uow.now_ns, None, reason
    uow.memory.touch(row)
    uow.append(_breaker_event(uow.memory, row, "breaker_opened", f"is open: {reason}", uow.now_ns))


def close(row: BreakerRow, memory: BatchState, now_ns: int) -> None:
    row.state, row.window_ns, row.successes, row.failures = "closed", now_ns, 0, 0
    row.opened_ns = row.probe_seq = row.reason = row.forced_by = None
    memory.touch(row)


def force_state(who: Principal, capability: str, state: Literal["open", "closed"], now_ns: int) -> Command:
    """By an operator: open until an operator closes it; closing resets the counts."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        row = breaker_of(memory, capability, now_ns)
        if state == "closed":
            close(row, memory, now_ns)
            event = _breaker_event(memory, row, "breaker_closed", "was closed by hand", now_ns, who)
        else:
            row.state, row.opened_ns, row.probe_seq = "open", now_ns, None
            row.reason, row.forced_by = "opened by hand", who.entity_id
            memory.touch(row)
            event = _breaker_event(memory, row, "breaker_opened", "was opened by hand", now_ns, who)
        return SubmissionResult(200, msgspec.structs.replace(row), [event])

    return Command(who, now_ns, decide)


def _breaker_event(
    memory: BatchState,
    row: BreakerRow,
    event_type: str,
    change: str,
    now_ns: int,
    who: Principal | None = None,
) -> EventDraft:
    detail: dict[str, Any] = {
        "capability": row.capability,
        "successes": row.successes,
        "failures": row.failures,
        "window_s": LIMITS.window_ns // SECOND,
        "reason": row.reason,
    }
    summary = f"the circuit of {row.capability} {change}"
    return gateway_event(memory.tenant.tenant_id, event_type, summary, now_ns, who, detail)


def follow(ctx: MessageContext, uow: UnitOfWork, number: int) -> None:
    """An effect: the outcome of a step counts for the breakers of its agent's capabilities."""
    log = ctx.message.log
    if log is not None and uow.memory.breakers and ctx.agent is not None:
        count_outcome(types_of(ctx.agent, uow.memory.tenant_config), log.action.status, uow)
