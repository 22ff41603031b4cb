"""Commands on outbound webhooks: create, change, enable, disable, remove, rotate the secret, test, replay.

Each is audited, without secrets and with only the host of the URL. An endpoint receives events after its
creation: its cursor starts at the event that created it, and restarts where it is enabled again. A test is an
event of its own and delivered like any other. Deliveries can be sent again under the same id, and events
missed while the endpoint was disabled can be replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from observatory.features.webhooks.types_signature import TESTED, Kind, delivery_id_of
from observatory.pipeline import dead_letters
from observatory.pipeline import row_statements as stating
from observatory.pipeline.concurrency import conflict_if_stale
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, EventDraft, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.identity import mint
from observatory.protocol.responses import Refused

MAX_ENDPOINTS = 50
MAX_OVERLAP_S = 7 * 86_400
TEST_S = 60
S = 1_000_000_000
Row = dict[str, Any]


class EndpointConfig(NamedTuple):
    """The requested configuration of an endpoint; validated."""

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


class MatchedEvent(NamedTuple):
    """An event to deliver to an endpoint; `extra` is additional content for its payload, as JSON."""

    sequence_number: int
    event_type: str
    extra: str | None = None


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def host_of(url: str) -> str:
    """The only part of a URL that is audited: path and query may be secrets, and an address is personal
    data."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else f"{parts.scheme}:"


def endpoints_of(uow: UnitOfWork, tenant_id: str) -> dict[str, Row]:
    rows = uow.memory.rows.setdefault("webhook_endpoints", {})
    return {key[1]: row for key, row in rows.items() if key[0] == tenant_id and row["removed_ns"] is None}


def endpoint_read_set(
    tenant_id: str, endpoint_id: str | None = None, deliveries: Sequence[str] = ()
) -> ReadSet:
    read_set = ReadSet()
    read_set.row("webhook_endpoints", tenant_id)
    if endpoint_id is not None:
        read_set.row("webhook_secrets", endpoint_id)
    for delivery_id in deliveries:
        read_set.row("webhook_deliveries", delivery_id)
    return read_set


def endpoint_not_found() -> SubmissionResult:
    detail = "no webhook endpoint of this tenant has that id"
    return SubmissionResult(404, Refused(reason="not_found", detail=detail))


def set_row(row: Row, values: Row) -> RowWrite:
    """Change an endpoint, also for later commands of this batch."""
    row |= values
    where = {"tenant_id": row["tenant_id"], "endpoint_id": row["endpoint_id"]}
    return RowWrite("webhook_endpoints", values, where)


def _detail(row: Row) -> Row:
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


def _notice(uow: UnitOfWork, who: Principal, kind: str, verb: str, detail: Row, name: str) -> EventDraft:
    summary = f"webhook {name} {verb} by {who.entity_id}"
    return gateway_event(who.tenant_id, kind, summary, uow.now_ns, who, detail)


def _name_taken(
    uow: UnitOfWork, who: Principal, name: str, but: str | None = None
) -> SubmissionResult | None:
    others = endpoints_of(uow, who.tenant_id)
    if any(row["name"] == name and key != but for key, row in others.items()):
        detail = "a webhook endpoint with that name already exists"
        return SubmissionResult(409, Refused(reason="name_taken", detail=detail))
    return None


def create(who: Principal, config: EndpointConfig, secret: str, now_ns: int) -> Command:
    """`secret` is the first signing secret; only the kind `webhook` has one."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        taken = _name_taken(uow, who, config.name)
        if taken is not None:
            return taken
        if len(endpoints_of(uow, who.tenant_id)) >= MAX_ENDPOINTS:
            detail = f"a tenant has at most {MAX_ENDPOINTS} webhook endpoints"
            return SubmissionResult(409, Refused(reason="too_many_endpoints", detail=detail))
        row: Row = {
            "tenant_id": who.tenant_id,
            "endpoint_id": mint("whe_", now_ns),
            **config.columns(),
            "state": "active",
            "disabled_reason": None,
            "cursor_seq": 0,
            "failures": 0,
            "paused_until_ns": None,
            "last_ok_ns": None,
            "last_failed_ns": None,
            "created_ns": uow.now_ns,
            "created_by": who.entity_id,
            "changed_ns": uow.now_ns,
            "removed_ns": None,
        }
        event = _notice(uow, who, "webhook_created", "created", _detail(row), config.name)
        stating.attach_rows(event, [stating.stated_row("webhook_endpoints", row)])
        row["cursor_seq"] = uow.append(event)
        uow.memory.rows["webhook_endpoints"][who.tenant_id, row["endpoint_id"]] = row
        writes = [RowWrite("webhook_endpoints", row)]
        if config.kind == "webhook":
            writes.append(_secret(uow, row, 1, secret))
        return SubmissionResult(201, dict(row), writes=writes)

    return Command(who, now_ns, decide, endpoint_read_set(who.tenant_id))


def _secret(uow: UnitOfWork, endpoint: Row, number: int, secret: str) -> RowWrite:
    row = {
        "tenant_id": endpoint["tenant_id"],
        "endpoint_id": endpoint["endpoint_id"],
        "secret_no": number,
        "secret": secret,
        "created_ns": uow.now_ns,
        "ends_ns": None,
    }
    uow.memory.rows.setdefault("webhook_secrets", {})[endpoint["endpoint_id"], number] = row
    return RowWrite("webhook_secrets", row)


def change(
    who: Principal, endpoint_id: str, config: EndpointConfig, now_ns: int, was: str | None = None
) -> Command:
    """Replaces everything but its kind. Pending deliveries go to the new URL. `was`: see `stale`."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = endpoints_of(uow, who.tenant_id).get(endpoint_id)
        if row is None:
            return endpoint_not_found()
        refused = conflict_if_stale(was, row["changed_ns"]) or _name_taken(uow, who, config.name, endpoint_id)
        if refused is not None:
            return refused
        if row["kind"] != config.kind:
            detail_text = "the kind of an endpoint cannot be changed; create another one"
            return SubmissionResult(409, Refused(reason="kind_fixed", detail=detail_text))
        values = {name: value for name, value in config.columns().items() if row[name] != value}
        if not values:
            return SubmissionResult(200, dict(row))
        before = _detail(row)
        if "url" in values:  # a new receiver starts without failures
            values |= {"failures": 0, "paused_until_ns": None}
        write = set_row(row, values | {"changed_ns": uow.now_ns})
        detail: Row = {"endpoint_id": endpoint_id, "before": before, "after": _detail(row)}
        detail["url_changed"] = "url" in values
        event = _notice(uow, who, "webhook_changed", "changed", detail, row["name"])
        return SubmissionResult(200, dict(row), [event], [write])

    return Command(who, now_ns, decide, endpoint_read_set(who.tenant_id))


def rotate(who: Principal, endpoint_id: str, secret: str, overlap_s: int, now_ns: int) -> Command:
    """The new secret signs from now on; the previous one also signs for `overlap_s`. Older ones are
    deleted."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = endpoints_of(uow, who.tenant_id).get(endpoint_id)
        if row is None:
            return endpoint_not_found()
        if row["kind"] != "webhook":
            detail_text = "only endpoints of the kind webhook are signed"
            return SubmissionResult(409, Refused(reason="not_signed", detail=detail_text))
        secrets = uow.memory.rows.get("webhook_secrets", {})
        own_secrets = {key[1]: one for key, one in secrets.items() if key[0] == endpoint_id}
        newest = max(own_secrets)
        ends_ns = uow.now_ns + overlap_s * S
        writes = []
        for number, one in own_secrets.items():
            if number == newest and overlap_s > 0:
                writes.append(_end(one, {"ends_ns": ends_ns}))
            elif one["secret"]:
                writes.append(_end(one, {"secret": "", "ends_ns": uow.now_ns}))
        writes.append(_secret(uow, row, newest + 1, secret))
        detail = {"endpoint_id": endpoint_id, "secret_no": newest + 1, "overlap_s": overlap_s}
        event = _notice(uow, who, "webhook_secret_rotated", "secret rotated", detail, row["name"])
        return SubmissionResult(200, {"old_ends_ns": ends_ns}, [event], writes)

    return Command(who, now_ns, decide, endpoint_read_set(who.tenant_id, endpoint_id))


def _end(one: Row, values: Row) -> RowWrite:
    one |= values
    where = {name: one[name] for name in ("tenant_id", "endpoint_id", "secret_no")}
    return RowWrite("webhook_secrets", values, where)


def enable(who: Principal, endpoint_id: str, now_ns: int) -> Command:
    """From the current head on. Pending deliveries are retried; missed events can be replayed."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = endpoints_of(uow, who.tenant_id).get(endpoint_id)
        if row is None:
            return endpoint_not_found()
        if row["state"] == "active":
            return SubmissionResult(200, dict(row))
        detail = {"endpoint_id": endpoint_id, "missed_after": row["cursor_seq"]}
        event = _notice(uow, who, "webhook_enabled", "enabled", detail, row["name"])
        stating.attach_rows(event, [stating.stated_row("webhook_endpoints", row | {"state": "active"})])
        number = uow.append(event)
        values = {"state": "active", "disabled_reason": None, "cursor_seq": number}
        values |= {"failures": 0, "paused_until_ns": None, "changed_ns": uow.now_ns}
        write = set_row(row, values)
        return SubmissionResult(200, dict(row), writes=[write])

    return Command(who, now_ns, decide, endpoint_read_set(who.tenant_id))


def disable(who: Principal, endpoint_id: str, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = endpoints_of(uow, who.tenant_id).get(endpoint_id)
        if row is None:
            return endpoint_not_found()
        if row["state"] == "disabled":
            return SubmissionResult(200, dict(row))
        reason = f"by {who.entity_id}"
        detail = {"endpoint_id": endpoint_id, "reason": reason}
        event = _notice(uow, who, "webhook_disabled", "disabled", detail, row["name"])
        values = {"state": "disabled", "disabled_reason": reason, "changed_ns": uow.now_ns}
        write = set_row(row, values)
        return SubmissionResult(200, dict(row), [event], [write])

    return Command(who, now_ns, decide, endpoint_read_set(who.tenant_id))


def remove(who: Principal, endpoint_id: str, now_ns: int) -> Command:
    """Nothing more is sent, not even pending deliveries; its secrets are deleted, its log stays."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = endpoints_of(uow, who.tenant_id).get(endpoint_id)
        if row is None:
            return endpoint_not_found()
        writes = [set_row(row, {"removed_ns": uow.now_ns, "changed_ns": uow.now_ns})]
        secrets = uow.memory.rows.get("webhook_secrets", {})
        writes += [
            _end(one, {"secret": "", "ends_ns": uow.now_ns})
            for (owner, _), one in secrets.items()
            if owner == endpoint_id and one["secret"]
        ]
        event = _notice(uow, who, "webhook_removed", "removed", _detail(row), row["name"])
        return SubmissionResult(200, {"endpoint_id": endpoint_id, "removed": True}, [event], writes)

    return Command(who, now_ns, decide, endpoint_read_set(who.tenant_id, endpoint_id))


def test(who: Principal, endpoint_id: str, now_ns: int) -> Command:
    """Returns the delivery. A disabled endpoint can be tested too, to check whether it works again."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = endpoints_of(uow, who.tenant_id).get(endpoint_id)
        if row is None:
            return endpoint_not_found()
        detail = {"endpoint_id": endpoint_id, "test": True}
        number = uow.append(_notice(uow, who, TESTED, "tested", detail, row["name"]))
        new = new_delivery(uow, row, MatchedEvent(number, TESTED))
        new["next_ns"] += TEST_S * S  # the caller sends it; if that fails, the worker does
        return SubmissionResult(200, new, writes=[RowWrite("webhook_deliveries", new)])

    return Command(who, now_ns, decide, endpoint_read_set(who.tenant_id))


def new_delivery(uow: UnitOfWork, endpoint: Row, matched: MatchedEvent) -> Row:
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
        "next_ns": uow.now_ns,
        "round_ns": uow.now_ns,
        "created_ns": uow.now_ns,
        "ended_ns": None,
        "last_code": None,
        "last_detail": None,
    }
    uow.memory.rows.setdefault("webhook_deliveries", {})[row["delivery_id"]] = row
    return row


def _again(uow: UnitOfWork, row: Row) -> RowWrite:
    """A new round: the full schedule again, at once, under the same id and the next attempt number."""
    values = {"state": "waiting", "tries": 0, "next_ns": uow.now_ns, "round_ns": uow.now_ns}
    values["ended_ns"] = None
    row |= values
    where = {"tenant_id": row["tenant_id"], "delivery_id": row["delivery_id"]}
    return RowWrite("webhook_deliveries", values, where)


def replay(
    who: Principal, endpoint_id: str, matched: Sequence[MatchedEvent], detail: Row, now_ns: int
) -> Command:
    """Deliver events again, or for the first time if they were missed."""
    names = [delivery_id_of(endpoint_id, one.sequence_number) for one in matched]

    def decide(uow: UnitOfWork) -> SubmissionResult:
        endpoint = endpoints_of(uow, who.tenant_id).get(endpoint_id)
        if endpoint is None:
            return endpoint_not_found()
        if endpoint["state"] != "active":
            detail_text = "this endpoint is disabled; enable it first"
            return SubmissionResult(409, Refused(reason="disabled", detail=detail_text))
        known = uow.memory.rows.setdefault("webhook_deliveries", {})
        # Events past the cursor will be sent anyway.
        due = [
            (name, one)
            for name, one in zip(names, matched, strict=True)
            if one.sequence_number <= endpoint["cursor_seq"] or name in known
        ]
        writes = [_again(uow, known[name]) for name, _ in due if name in known]
        writes += [
            RowWrite("webhook_deliveries", new_delivery(uow, endpoint, one))
            for name, one in due
            if name not in known
        ]
        if not due:
            return SubmissionResult(200, 0)
        summary_detail = {"endpoint_id": endpoint_id, "deliveries": len(due), **detail}
        event = _notice(uow, who, "webhook_replayed", "replayed", summary_detail, endpoint["name"])
        return SubmissionResult(200, len(due), [event], writes)

    size = 256 * max(1, len(matched))
    return Command(who, now_ns, decide, endpoint_read_set(who.tenant_id, None, names), size=size)


def revive(who: Principal, letter: Row, now_ns: int) -> Command:
    """Retry of a dead letter of the kind `webhook`."""

    def again(uow: UnitOfWork, row: Row) -> tuple[list[EventDraft], list[RowWrite]] | Refused:
        endpoint = endpoints_of(uow, who.tenant_id).get(row["source_id"])
        delivery = uow.memory.rows.get("webhook_deliveries", {}).get(row["subject_id"])
        if endpoint is None or delivery is None:
            return Refused(
                reason="removed", detail="the endpoint of this dead letter was removed; discard it"
            )
        if endpoint["state"] != "active":
            return Refused(
                reason="disabled", detail="the endpoint of this dead letter is disabled; enable it first"
            )
        if delivery["state"] != "dead":
            return Refused(
                reason="already_sent", detail="this was already sent again; discard the dead letter"
            )
        return [], [_again(uow, delivery)]

    read_set = endpoint_read_set(who.tenant_id, None, [letter["subject_id"]])
    return dead_letters.retry(who, letter, now_ns, again, read_set)
