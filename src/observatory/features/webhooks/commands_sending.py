"""Commands of the webhook worker: queue deliveries, record attempts, give up.

Only commands that end something write an event: a receiver that is gone, a dead delivery. An attempt counts
only under its own number, and a cursor moves only from where it was read: of racing workers one wins, and the
others change nothing. Events about dead letters and stopped endpoints never become dead letters themselves,
so no failure causes another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.webhooks.commands import (
    MatchedEvent,
    endpoint_read_set,
    endpoints_of,
    new_delivery,
    set_row,
)
from observatory.features.webhooks.retry import ReceiverHealth, S, after_failure, jitter_of, wait_s
from observatory.pipeline import dead_letters
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, EventDraft, Principal, SubmissionResult, UnitOfWork

EXCERPT: Final = 1_024  # characters of a response that are stored
# These never become dead letters: they report dead letters or their cause.
ECHO: Final = frozenset({"dead_lettered", "webhook_disabled", "webhook_tested"})
OK_EVERY_NS: Final = 60 * S  # how often success is recorded
Row = dict[str, Any]


class DeliveryAttempt(NamedTuple):
    """One attempt and its result."""

    attempt: int
    at_ns: int
    took_ms: int
    ok: bool
    code: int | None
    detail: str
    excerpt: str
    retry_after_s: int | None
    gone: bool
    preview: str  # of the payload, for a dead letter


def queue(
    who: Principal, endpoint_id: str, since: int, until: int, matched: Sequence[MatchedEvent], now_ns: int
) -> Command:
    """Move the cursor from `since` to `until` and queue the matching events between. Returns 1 if it did."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = endpoints_of(uow, who.tenant_id).get(endpoint_id)
        if row is None or row["state"] != "active" or row["cursor_seq"] != since or until <= since:
            return SubmissionResult(200, 0)
        writes = [set_row(row, {"cursor_seq": until})]
        if matched:
            first, *more = (new_delivery(uow, row, one) for one in matched)
            writes.append(RowWrite("webhook_deliveries", first, more=tuple(more)))
        return SubmissionResult(200, 1, writes=writes)

    return Command(who, now_ns, decide, endpoint_read_set(who.tenant_id), size=256 * (1 + len(matched)))


def settle(
    who: Principal, endpoint_id: str, delivery_id: str, attempt: DeliveryAttempt, now_ns: int
) -> Command:
    """Record an attempt. Returns (delivery, endpoint) afterwards; None when this attempt does not count."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        endpoint = endpoints_of(uow, who.tenant_id).get(endpoint_id)
        row = uow.memory.rows.get("webhook_deliveries", {}).get(delivery_id)
        if endpoint is None or row is None:
            return SubmissionResult(200, None)
        if row["state"] != "waiting" or row["attempts"] != attempt.attempt - 1:
            return SubmissionResult(200, None)
        events, writes = list[EventDraft](), [_attempt(row, attempt)]
        values: Row = {"attempts": attempt.attempt, "tries": row["tries"] + 1}
        values |= {"last_code": attempt.code, "last_detail": attempt.detail}
        if attempt.ok:
            values |= {"state": "delivered", "next_ns": None, "ended_ns": uow.now_ns}
        else:
            values |= _next(uow, endpoint, row, attempt)
        writes += _health(endpoint, attempt, uow.now_ns)
        writes.append(_set(row, values))
        if attempt.gone and endpoint["state"] == "active":
            event, write = _gone(uow, who, endpoint)
            events.append(event)
            writes.append(write)
        if values["state"] == "dead" and row["event_type"] not in ECHO:
            event, write = _bury(uow, endpoint, row, attempt.detail, attempt.preview)
            events.append(event)
            writes.append(write)
        return SubmissionResult(200, (dict(row), dict(endpoint)), events, writes)

    read_set = endpoint_read_set(who.tenant_id, None, [delivery_id])
    return Command(who, now_ns, decide, read_set, size=512 + len(attempt.excerpt))


def _attempt(row: Row, attempt: DeliveryAttempt) -> RowWrite:
    values = {
        "tenant_id": row["tenant_id"],
        "delivery_id": row["delivery_id"],
        "attempt": attempt.attempt,
        "at_ns": attempt.at_ns,
        "took_ms": attempt.took_ms,
        "ok": int(attempt.ok),
        "code": attempt.code,
        "detail": attempt.detail,
        "excerpt": attempt.excerpt[:EXCERPT].replace("\x00", "\ufffd"),
    }
    return RowWrite("webhook_attempts", values)


def _next(uow: UnitOfWork, endpoint: Row, row: Row, attempt: DeliveryAttempt) -> Row:
    schedule = msgspec.json.decode(endpoint["schedule_s"])
    jitter = jitter_of(row["delivery_id"], attempt.attempt)
    wait = wait_s(schedule, row["tries"] + 1, jitter, attempt.retry_after_s)
    # A test is interactive: it is not retried.
    if wait is None or attempt.gone or row["event_type"] == "webhook_tested":
        return {"state": "dead", "next_ns": None, "ended_ns": uow.now_ns}
    return {"state": "waiting", "next_ns": uow.now_ns + int(wait * S)}


def _health(endpoint: Row, attempt: DeliveryAttempt, now_ns: int) -> list[RowWrite]:
    before = ReceiverHealth(endpoint["failures"], endpoint["paused_until_ns"])
    if not attempt.ok:
        schedule = msgspec.json.decode(endpoint["schedule_s"])
        after = after_failure(before, schedule, attempt.code, attempt.retry_after_s, now_ns)
        return [set_row(endpoint, after._asdict() | {"last_failed_ns": now_ns})]
    is_fresh = endpoint["last_ok_ns"] is not None and now_ns - endpoint["last_ok_ns"] < OK_EVERY_NS
    if before == ReceiverHealth() and is_fresh:
        return []
    return [set_row(endpoint, ReceiverHealth()._asdict() | {"last_ok_ns": now_ns})]


def _set(row: Row, values: Row) -> RowWrite:
    where = {"tenant_id": row["tenant_id"], "delivery_id": row["delivery_id"], "attempts": row["attempts"]}
    row |= values
    return RowWrite("webhook_deliveries", values, where)


def _gone(uow: UnitOfWork, who: Principal, endpoint: Row) -> tuple[EventDraft, RowWrite]:
    reason = "the receiver returned 410: it is gone"
    detail = {"endpoint_id": endpoint["endpoint_id"], "reason": reason}
    summary = f"webhook {endpoint['name']} disabled: {reason}"
    event = gateway_event(who.tenant_id, "webhook_disabled", summary, uow.now_ns, None, detail)
    values = {"state": "disabled", "disabled_reason": reason, "changed_ns": uow.now_ns}
    return event, set_row(endpoint, values)


def _bury(uow: UnitOfWork, endpoint: Row, row: Row, reason: str, preview: str) -> tuple[EventDraft, RowWrite]:
    return dead_letters.create_dead_letter(
        uow,
        kind="webhook",
        source_id=endpoint["endpoint_id"],
        source_name=endpoint["name"],
        subject_id=row["delivery_id"],
        reason=reason,
        preview=preview,
        now_ns=uow.now_ns,
    )


def give_up(
    who: Principal, endpoint_id: str, previews: dict[str, str], before_ns: int, reason: str, now_ns: int
) -> Command:
    """Deliveries that could not be attempted within their whole schedule; delivery id -> preview."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        endpoint = endpoints_of(uow, who.tenant_id).get(endpoint_id)
        known = uow.memory.rows.get("webhook_deliveries", {})
        events, writes = list[EventDraft](), list[RowWrite]()
        for delivery_id, preview in previews.items():
            row = known.get(delivery_id)
            if endpoint is None or row is None or row["state"] != "waiting" or row["round_ns"] >= before_ns:
                continue
            values = {"state": "dead", "next_ns": None, "ended_ns": uow.now_ns, "last_detail": reason}
            writes.append(_set(row, values))
            if row["event_type"] not in ECHO:
                event, write = _bury(uow, endpoint, row, reason, preview)
                events.append(event)
                writes.append(write)
        return SubmissionResult(200, len(events), events, writes)

    return Command(
        who, now_ns, decide, endpoint_read_set(who.tenant_id, None, list(previews)), size=512 * len(previews)
    )


def end_secrets(who: Principal, endpoint_id: str, now_ns: int) -> Command:
    """Delete replaced secrets whose overlap has ended. No event: the rotation was recorded."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        secrets, writes = uow.memory.rows.get("webhook_secrets", {}), list[RowWrite]()
        for (owner, _), one in secrets.items():
            is_over = one["ends_ns"] is not None and one["ends_ns"] <= uow.now_ns
            if owner == endpoint_id and one["secret"] and is_over:
                one["secret"] = ""
                where = {name: one[name] for name in ("tenant_id", "endpoint_id", "secret_no")}
                writes.append(RowWrite("webhook_secrets", {"secret": ""}, where))
        return SubmissionResult(200, len(writes), writes=writes)

    return Command(who, now_ns, decide, endpoint_read_set(who.tenant_id, endpoint_id))
