"""Acts of people on webhooks out: endpoints made, changed, stopped and removed, secrets, tests, replays.

Law: every one is told in the record, without a secret and with no more of a URL than its host. An endpoint is
told of what happens after it was made: its cursor begins at the event that tells of it, and goes on from
where it is enabled again. A test is an event of its own and is delivered like any other. What was sent can
be sent once more, under the same id; what happened while nobody was told can be too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from observatory.features.schedule import commands_dead_letters as dead_letters
from observatory.features.webhooks.signature import TESTED, Kind, delivery_id_of
from observatory.pipeline import row_statements as stating
from observatory.pipeline.concurrency import stale
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.identity import mint

MOST_ENDPOINTS = 50
MOST_OVERLAP_S = 7 * 86_400
TEST_S = 60
S = 1_000_000_000
Row = dict[str, Any]


class Wish(NamedTuple):
    """What a person wants an endpoint to be; checked."""

    name: str
    kind: Kind
    url: str
    events: Sequence[str]
    filters: Mapping[str, Sequence[str]]
    rate_per_min: int
    schedule_s: Sequence[float]

    def columns(self) -> Row:
        return {
            "name": self.name,
            "kind": self.kind,
            "url": self.url,
            "events": _text(sorted(set(self.events))),
            "filters": _text({name: sorted(set(values)) for name, values in sorted(self.filters.items())}),
            "rate_per_min": self.rate_per_min,
            "schedule_s": _text(list(self.schedule_s)),
        }


class Matched(NamedTuple):
    """An event an endpoint is to be told of; `extra` is what its message tells besides, as JSON."""

    sequence_number: int
    event_type: str
    extra: str | None = None


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def host_of(url: str) -> str:
    """All that is told of where it lies: a path or a query may be a secret, and an address is a person's."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else f"{parts.scheme}:"


def endpoints_of(desk: Desk, tenant_id: str) -> dict[str, Row]:
    rows = desk.memory.rows.setdefault("webhook_endpoints", {})
    return {key[1]: row for key, row in rows.items() if key[0] == tenant_id and row["removed_ns"] is None}


def wants_of(tenant_id: str, endpoint_id: str | None = None, deliveries: Sequence[str] = ()) -> Wants:
    wants = Wants()
    wants.row("webhook_endpoints", tenant_id)
    if endpoint_id is not None:
        wants.row("webhook_secrets", endpoint_id)
    for delivery_id in deliveries:
        wants.row("webhook_deliveries", delivery_id)
    return wants


def unknown() -> Verdict:
    detail = "no webhook endpoint of this tenant has that id"
    return Verdict(404, Refused(reason="not_found", detail=detail))


def set_row(row: Row, values: Row) -> Write:
    """Change an endpoint, here and for others of the batch."""
    row |= values
    where = {"tenant_id": row["tenant_id"], "endpoint_id": row["endpoint_id"]}
    return Write("webhook_endpoints", values, where)


def _told(row: Row) -> Row:
    return {
        "endpoint_id": row["endpoint_id"],
        "name": row["name"],
        "kind": row["kind"],
        "host": host_of(row["url"]),
        "events": msgspec.json.decode(row["events"]),
        "filters": msgspec.json.decode(row["filters"]),
        "rate_per_min": row["rate_per_min"],
        "schedule_s": [str(one) for one in msgspec.json.decode(row["schedule_s"])],
    }


def _notice(desk: Desk, who: Principal, kind: str, did: str, detail: Row, name: str) -> Draft:
    summary = f"webhook {name} {did} by {who.entity_id}"
    return notice(who.tenant_id, kind, summary, desk.now_ns, who, detail)


def _name_taken(desk: Desk, who: Principal, name: str, but: str | None = None) -> Verdict | None:
    others = endpoints_of(desk, who.tenant_id)
    if any(row["name"] == name and key != but for key, row in others.items()):
        detail = "another webhook endpoint is called so already"
        return Verdict(409, Refused(reason="name_taken", detail=detail))
    return None


def create(who: Principal, wish: Wish, secret: str, now_ns: int) -> Act:
    """`secret` is what it signs with from the first; only a `webhook` has one."""

    def decide(desk: Desk) -> Verdict:
        taken = _name_taken(desk, who, wish.name)
        if taken is not None:
            return taken
        if len(endpoints_of(desk, who.tenant_id)) >= MOST_ENDPOINTS:
            detail = f"a tenant has at most {MOST_ENDPOINTS} webhook endpoints"
            return Verdict(409, Refused(reason="too_many_endpoints", detail=detail))
        row: Row = {
            "tenant_id": who.tenant_id,
            "endpoint_id": mint("whe_", now_ns),
            **wish.columns(),
            "state": "active",
            "disabled_reason": None,
            "cursor_seq": 0,
            "failures": 0,
            "paused_until_ns": None,
            "last_ok_ns": None,
            "last_failed_ns": None,
            "created_ns": desk.now_ns,
            "created_by": who.entity_id,
            "changed_ns": desk.now_ns,
            "removed_ns": None,
        }
        event = _notice(desk, who, "webhook_created", "made", _told(row), wish.name)
        stating.put_on(event, [stating.row_of("webhook_endpoints", row)])
        row["cursor_seq"] = desk.append(event)
        desk.memory.rows["webhook_endpoints"][who.tenant_id, row["endpoint_id"]] = row
        writes = [Write("webhook_endpoints", row)]
        if wish.kind == "webhook":
            writes.append(_secret(desk, row, 1, secret))
        return Verdict(201, dict(row), writes=writes)

    return Act(who, now_ns, decide, wants_of(who.tenant_id))


def _secret(desk: Desk, endpoint: Row, number: int, secret: str) -> Write:
    row = {
        "tenant_id": endpoint["tenant_id"],
        "endpoint_id": endpoint["endpoint_id"],
        "secret_no": number,
        "secret": secret,
        "created_ns": desk.now_ns,
        "ends_ns": None,
    }
    desk.memory.rows.setdefault("webhook_secrets", {})[endpoint["endpoint_id"], number] = row
    return Write("webhook_secrets", row)


def change(who: Principal, endpoint_id: str, wish: Wish, now_ns: int, was: str | None = None) -> Act:
    """The whole of it but its kind. What waits goes to where it lies now. `was`: see `stale`."""

    def decide(desk: Desk) -> Verdict:
        row = endpoints_of(desk, who.tenant_id).get(endpoint_id)
        if row is None:
            return unknown()
        refused = stale(was, row["changed_ns"]) or _name_taken(desk, who, wish.name, endpoint_id)
        if refused is not None:
            return refused
        if row["kind"] != wish.kind:
            sentence = "the kind of an endpoint is not changed; make another one"
            return Verdict(409, Refused(reason="kind_fixed", detail=sentence))
        values = {name: value for name, value in wish.columns().items() if row[name] != value}
        if not values:
            return Verdict(200, dict(row))
        before = _told(row)
        if "url" in values:  # another receiver may fare better
            values |= {"failures": 0, "paused_until_ns": None}
        write = set_row(row, values | {"changed_ns": desk.now_ns})
        detail: Row = {"endpoint_id": endpoint_id, "before": before, "after": _told(row)}
        detail["url_changed"] = "url" in values
        event = _notice(desk, who, "webhook_changed", "changed", detail, row["name"])
        return Verdict(200, dict(row), [event], [write])

    return Act(who, now_ns, decide, wants_of(who.tenant_id))


def rotate(who: Principal, endpoint_id: str, secret: str, overlap_s: int, now_ns: int) -> Act:
    """The new one signs from now on; the one before signs beside it for `overlap_s` more. No third."""

    def decide(desk: Desk) -> Verdict:
        row = endpoints_of(desk, who.tenant_id).get(endpoint_id)
        if row is None:
            return unknown()
        if row["kind"] != "webhook":
            sentence = "only endpoints of the kind webhook are signed"
            return Verdict(409, Refused(reason="not_signed", detail=sentence))
        kept = desk.memory.rows.get("webhook_secrets", {})
        mine = {key[1]: one for key, one in kept.items() if key[0] == endpoint_id}
        newest = max(mine)
        ends_ns = desk.now_ns + overlap_s * S
        writes = []
        for number, one in mine.items():
            if number == newest and overlap_s > 0:
                writes.append(_end(one, {"ends_ns": ends_ns}))
            elif one["secret"]:
                writes.append(_end(one, {"secret": "", "ends_ns": desk.now_ns}))
        writes.append(_secret(desk, row, newest + 1, secret))
        detail = {"endpoint_id": endpoint_id, "secret_no": newest + 1, "overlap_s": overlap_s}
        event = _notice(desk, who, "webhook_secret_rotated", "given another secret", detail, row["name"])
        return Verdict(200, {"old_ends_ns": ends_ns}, [event], writes)

    return Act(who, now_ns, decide, wants_of(who.tenant_id, endpoint_id))


def _end(one: Row, values: Row) -> Write:
    one |= values
    where = {name: one[name] for name in ("tenant_id", "endpoint_id", "secret_no")}
    return Write("webhook_secrets", values, where)


def enable(who: Principal, endpoint_id: str, now_ns: int) -> Act:
    """From the present head on. What waited is tried again; what happened meanwhile can be replayed."""

    def decide(desk: Desk) -> Verdict:
        row = endpoints_of(desk, who.tenant_id).get(endpoint_id)
        if row is None:
            return unknown()
        if row["state"] == "active":
            return Verdict(200, dict(row))
        detail = {"endpoint_id": endpoint_id, "missed_after": row["cursor_seq"]}
        event = _notice(desk, who, "webhook_enabled", "enabled", detail, row["name"])
        stating.put_on(event, [stating.row_of("webhook_endpoints", row | {"state": "active"})])
        number = desk.append(event)
        values = {"state": "active", "disabled_reason": None, "cursor_seq": number}
        values |= {"failures": 0, "paused_until_ns": None, "changed_ns": desk.now_ns}
        write = set_row(row, values)
        return Verdict(200, dict(row), writes=[write])

    return Act(who, now_ns, decide, wants_of(who.tenant_id))


def disable(who: Principal, endpoint_id: str, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        row = endpoints_of(desk, who.tenant_id).get(endpoint_id)
        if row is None:
            return unknown()
        if row["state"] == "disabled":
            return Verdict(200, dict(row))
        reason = f"by {who.entity_id}"
        detail = {"endpoint_id": endpoint_id, "reason": reason}
        event = _notice(desk, who, "webhook_disabled", "disabled", detail, row["name"])
        values = {"state": "disabled", "disabled_reason": reason, "changed_ns": desk.now_ns}
        write = set_row(row, values)
        return Verdict(200, dict(row), [event], [write])

    return Act(who, now_ns, decide, wants_of(who.tenant_id))


def remove(who: Principal, endpoint_id: str, now_ns: int) -> Act:
    """Nothing is sent there any more, not even what waits; its secrets are emptied, its log stays."""

    def decide(desk: Desk) -> Verdict:
        row = endpoints_of(desk, who.tenant_id).get(endpoint_id)
        if row is None:
            return unknown()
        writes = [set_row(row, {"removed_ns": desk.now_ns, "changed_ns": desk.now_ns})]
        kept = desk.memory.rows.get("webhook_secrets", {})
        writes += [
            _end(one, {"secret": "", "ends_ns": desk.now_ns})
            for (owner, _), one in kept.items()
            if owner == endpoint_id and one["secret"]
        ]
        event = _notice(desk, who, "webhook_removed", "removed", _told(row), row["name"])
        return Verdict(200, {"endpoint_id": endpoint_id, "removed": True}, [event], writes)

    return Act(who, now_ns, decide, wants_of(who.tenant_id, endpoint_id))


def test(who: Principal, endpoint_id: str, now_ns: int) -> Act:
    """Answered with the delivery. A disabled endpoint can be tested too: that is how one sees it is back."""

    def decide(desk: Desk) -> Verdict:
        row = endpoints_of(desk, who.tenant_id).get(endpoint_id)
        if row is None:
            return unknown()
        detail = {"endpoint_id": endpoint_id, "test": True}
        number = desk.append(_notice(desk, who, TESTED, "tested", detail, row["name"]))
        new = new_delivery(desk, row, Matched(number, TESTED))
        new["next_ns"] += TEST_S * S  # who asked sends it; if that comes to nothing, the sender does
        return Verdict(200, new, writes=[Write("webhook_deliveries", new)])

    return Act(who, now_ns, decide, wants_of(who.tenant_id))


def new_delivery(desk: Desk, endpoint: Row, matched: Matched) -> Row:
    row: Row = {
        "tenant_id": endpoint["tenant_id"],
        "delivery_id": delivery_id_of(endpoint["endpoint_id"], matched.sequence_number),
        "endpoint_id": endpoint["endpoint_id"],
        "event_seq": matched.sequence_number,
        "event_type": matched.event_type,
        "extra": matched.extra,
        "state": "waiting",
        "attempts": 0,
        "tries": 0,
        "next_ns": desk.now_ns,
        "round_ns": desk.now_ns,
        "created_ns": desk.now_ns,
        "ended_ns": None,
        "last_code": None,
        "last_detail": None,
    }
    desk.memory.rows.setdefault("webhook_deliveries", {})[row["delivery_id"]] = row
    return row


def _again(desk: Desk, row: Row) -> Write:
    """A new round: all tries anew, at once, under the same id and the next attempt's number."""
    values = {"state": "waiting", "tries": 0, "next_ns": desk.now_ns, "round_ns": desk.now_ns}
    values["ended_ns"] = None
    row |= values
    where = {"tenant_id": row["tenant_id"], "delivery_id": row["delivery_id"]}
    return Write("webhook_deliveries", values, where)


def replay(who: Principal, endpoint_id: str, matched: Sequence[Matched], detail: Row, now_ns: int) -> Act:
    """Events sent once more, or for the first time if they happened while nobody was told."""
    names = [delivery_id_of(endpoint_id, one.sequence_number) for one in matched]

    def decide(desk: Desk) -> Verdict:
        endpoint = endpoints_of(desk, who.tenant_id).get(endpoint_id)
        if endpoint is None:
            return unknown()
        if endpoint["state"] != "active":
            sentence = "this endpoint is disabled; enable it first"
            return Verdict(409, Refused(reason="disabled", detail=sentence))
        known = desk.memory.rows.setdefault("webhook_deliveries", {})
        # What the cursor has not reached is sent anyway.
        due = [
            (name, one)
            for name, one in zip(names, matched, strict=True)
            if one.sequence_number <= endpoint["cursor_seq"] or name in known
        ]
        writes = [_again(desk, known[name]) for name, _ in due if name in known]
        writes += [
            Write("webhook_deliveries", new_delivery(desk, endpoint, one))
            for name, one in due
            if name not in known
        ]
        if not due:
            return Verdict(200, 0)
        told = {"endpoint_id": endpoint_id, "deliveries": len(due), **detail}
        event = _notice(desk, who, "webhook_replayed", "replayed", told, endpoint["name"])
        return Verdict(200, len(due), [event], writes)

    size = 256 * max(1, len(matched))
    return Act(who, now_ns, decide, wants_of(who.tenant_id, None, names), size=size)


def revive(who: Principal, letter: Row, now_ns: int) -> Act:
    """How a dead letter of the kind `webhook` is tried again."""

    def again(desk: Desk, row: Row) -> tuple[list[Draft], list[Write]] | Refused:
        endpoint = endpoints_of(desk, who.tenant_id).get(row["source_id"])
        delivery = desk.memory.rows.get("webhook_deliveries", {}).get(row["subject_id"])
        if endpoint is None or delivery is None:
            return Refused(reason="removed", detail="the endpoint of this letter was removed; discard it")
        if endpoint["state"] != "active":
            return Refused(
                reason="disabled", detail="the endpoint of this letter is disabled; enable it first"
            )
        if delivery["state"] != "dead":
            return Refused(reason="already_sent", detail="this was sent again already; discard the letter")
        return [], [_again(desk, delivery)]

    wants = wants_of(who.tenant_id, None, [letter["subject_id"]])
    return dead_letters.retry(who, letter, now_ns, again, wants)
