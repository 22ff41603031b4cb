"""Acts of the sender: what is to be delivered, how each try ended, what is given up.

Law: none writes an event but those that end something: an endpoint whose receiver is gone, a delivery that
is dead. A try counts only under its own number, a cursor moves only from where it was seen: of any number of
senders that race one is right, and the others change nothing. What tells of dead letters and stopped
endpoints is never buried itself when it cannot be delivered: so no failure feeds on itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.schedule import commands_dead_letters as dead_letters
from observatory.features.webhooks.commands import Matched, endpoints_of, new_delivery, set_row, wants_of
from observatory.features.webhooks.retry import Health, S, after_failure, chance, wait_s
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict

EXCERPT: Final = 1_024  # characters of an answer that are kept
# Of these no dead letter is made: they tell of one, or of what makes them.
ECHO: Final = frozenset({"dead_lettered", "webhook_disabled", "webhook_tested"})
OK_EVERY_NS: Final = 60 * S  # how often it is noted that all is well
Row = dict[str, Any]


class Tried(NamedTuple):
    """One try and how it ended."""

    attempt: int
    at_ns: int
    took_ms: int
    ok: bool
    code: int | None
    detail: str
    excerpt: str
    retry_after_s: int | None
    gone: bool
    preview: str  # of what was to be delivered, for a dead letter


def queue(
    who: Principal, endpoint_id: str, since: int, until: int, matched: Sequence[Matched], now_ns: int
) -> Act:
    """The cursor goes from `since` to `until`; of what lies between these are to be sent. Answers 1 if so."""

    def decide(desk: Desk) -> Verdict:
        row = endpoints_of(desk, who.tenant_id).get(endpoint_id)
        if row is None or row["state"] != "active" or row["cursor_seq"] != since or until <= since:
            return Verdict(200, 0)
        writes = [set_row(row, {"cursor_seq": until})]
        if matched:
            first, *more = (new_delivery(desk, row, one) for one in matched)
            writes.append(Write("webhook_deliveries", first, more=tuple(more)))
        return Verdict(200, 1, writes=writes)

    return Act(who, now_ns, decide, wants_of(who.tenant_id), size=256 * (1 + len(matched)))


def settle(who: Principal, endpoint_id: str, delivery_id: str, tried: Tried, now_ns: int) -> Act:
    """How a try ended. Answers (delivery, endpoint) as they are now; None when this try does not count."""

    def decide(desk: Desk) -> Verdict:
        endpoint = endpoints_of(desk, who.tenant_id).get(endpoint_id)
        row = desk.memory.rows.get("webhook_deliveries", {}).get(delivery_id)
        if endpoint is None or row is None:
            return Verdict(200, None)
        if row["state"] != "waiting" or row["attempts"] != tried.attempt - 1:
            return Verdict(200, None)
        events, writes = list[Draft](), [_attempt(row, tried)]
        values: Row = {"attempts": tried.attempt, "tries": row["tries"] + 1}
        values |= {"last_code": tried.code, "last_detail": tried.detail}
        if tried.ok:
            values |= {"state": "delivered", "next_ns": None, "ended_ns": desk.now_ns}
        else:
            values |= _next(desk, endpoint, row, tried)
        writes += _health(endpoint, tried, desk.now_ns)
        writes.append(_set(row, values))
        if tried.gone and endpoint["state"] == "active":
            event, write = _gone(desk, who, endpoint)
            events.append(event)
            writes.append(write)
        if values["state"] == "dead" and row["event_type"] not in ECHO:
            event, write = _bury(desk, endpoint, row, tried.detail, tried.preview)
            events.append(event)
            writes.append(write)
        return Verdict(200, (dict(row), dict(endpoint)), events, writes)

    wants = wants_of(who.tenant_id, None, [delivery_id])
    return Act(who, now_ns, decide, wants, size=512 + len(tried.excerpt))


def _attempt(row: Row, tried: Tried) -> Write:
    values = {
        "tenant_id": row["tenant_id"],
        "delivery_id": row["delivery_id"],
        "attempt": tried.attempt,
        "at_ns": tried.at_ns,
        "took_ms": tried.took_ms,
        "ok": int(tried.ok),
        "code": tried.code,
        "detail": tried.detail,
        "excerpt": tried.excerpt[:EXCERPT].replace("\x00", "\ufffd"),
    }
    return Write("webhook_attempts", values)


def _next(desk: Desk, endpoint: Row, row: Row, tried: Tried) -> Row:
    schedule = msgspec.json.decode(endpoint["schedule_s"])
    luck = chance(row["delivery_id"], tried.attempt)
    wait = wait_s(schedule, row["tries"] + 1, luck, tried.retry_after_s)
    # A test is for who stands before it: it is not tried again.
    if wait is None or tried.gone or row["event_type"] == "webhook_tested":
        return {"state": "dead", "next_ns": None, "ended_ns": desk.now_ns}
    return {"state": "waiting", "next_ns": desk.now_ns + int(wait * S)}


def _health(endpoint: Row, tried: Tried, now_ns: int) -> list[Write]:
    before = Health(endpoint["failures"], endpoint["paused_until_ns"])
    if not tried.ok:
        schedule = msgspec.json.decode(endpoint["schedule_s"])
        after = after_failure(before, schedule, tried.code, tried.retry_after_s, now_ns)
        return [set_row(endpoint, after._asdict() | {"last_failed_ns": now_ns})]
    is_fresh = endpoint["last_ok_ns"] is not None and now_ns - endpoint["last_ok_ns"] < OK_EVERY_NS
    if before == Health() and is_fresh:
        return []
    return [set_row(endpoint, Health()._asdict() | {"last_ok_ns": now_ns})]


def _set(row: Row, values: Row) -> Write:
    where = {"tenant_id": row["tenant_id"], "delivery_id": row["delivery_id"], "attempts": row["attempts"]}
    row |= values
    return Write("webhook_deliveries", values, where)


def _gone(desk: Desk, who: Principal, endpoint: Row) -> tuple[Draft, Write]:
    reason = "the receiver answered 410: it is gone"
    detail = {"endpoint_id": endpoint["endpoint_id"], "reason": reason}
    summary = f"webhook {endpoint['name']} disabled: {reason}"
    event = notice(who.tenant_id, "webhook_disabled", summary, desk.now_ns, None, detail)
    values = {"state": "disabled", "disabled_reason": reason, "changed_ns": desk.now_ns}
    return event, set_row(endpoint, values)


def _bury(desk: Desk, endpoint: Row, row: Row, reason: str, preview: str) -> tuple[Draft, Write]:
    return dead_letters.bury(
        desk,
        kind="webhook",
        source_id=endpoint["endpoint_id"],
        source_name=endpoint["name"],
        subject_id=row["delivery_id"],
        reason=reason,
        preview=preview,
        now_ns=desk.now_ns,
    )


def give_up(
    who: Principal, endpoint_id: str, previews: dict[str, str], before_ns: int, reason: str, now_ns: int
) -> Act:
    """Deliveries that could not be tried for as long as their schedule lasts; delivery id -> preview."""

    def decide(desk: Desk) -> Verdict:
        endpoint = endpoints_of(desk, who.tenant_id).get(endpoint_id)
        known = desk.memory.rows.get("webhook_deliveries", {})
        events, writes = list[Draft](), list[Write]()
        for delivery_id, preview in previews.items():
            row = known.get(delivery_id)
            if endpoint is None or row is None or row["state"] != "waiting" or row["round_ns"] >= before_ns:
                continue
            values = {"state": "dead", "next_ns": None, "ended_ns": desk.now_ns, "last_detail": reason}
            writes.append(_set(row, values))
            if row["event_type"] not in ECHO:
                event, write = _bury(desk, endpoint, row, reason, preview)
                events.append(event)
                writes.append(write)
        return Verdict(200, len(events), events, writes)

    return Act(who, now_ns, decide, wants_of(who.tenant_id, None, list(previews)), size=512 * len(previews))


def end_secrets(who: Principal, endpoint_id: str, now_ns: int) -> Act:
    """Secrets that were followed and whose time is over are emptied. No event: the rotation told of it."""

    def decide(desk: Desk) -> Verdict:
        kept, writes = desk.memory.rows.get("webhook_secrets", {}), list[Write]()
        for (owner, _), one in kept.items():
            is_over = one["ends_ns"] is not None and one["ends_ns"] <= desk.now_ns
            if owner == endpoint_id and one["secret"] and is_over:
                one["secret"] = ""
                where = {name: one[name] for name in ("tenant_id", "endpoint_id", "secret_no")}
                writes.append(Write("webhook_secrets", {"secret": ""}, where))
        return Verdict(200, len(writes), writes=writes)

    return Act(who, now_ns, decide, wants_of(who.tenant_id, endpoint_id))
