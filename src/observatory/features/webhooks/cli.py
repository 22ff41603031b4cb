"""`observatory webhooks`: who outside is told of what happens here, what was sent there, and once more."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway
from observatory.cli.prompts import Json, Yes, confirm, hand, one_of, path_of, tell, when
from observatory.cli.terminal import Misused, note, say, show_json, show_table

LISTED = "`observatory webhooks list`"
Row = dict[str, Any]
Endpoint = Annotated[str, Parameter(help="The endpoint's name, its id, or a beginning of the id.")]
Events = Annotated[
    tuple[str, ...], Parameter(name="--event", help="An event it is told of; as often as you like.")
]
Filters = Annotated[
    tuple[str, ...],
    Parameter(name="--filter", help="Only where name=value: agent, session, cluster, tool, severity, …"),
]

webhooks = App(
    name="webhooks",
    help="Webhooks out: list, show, add, test, log, replay, rotate, enable, disable, remove.",
)


@webhooks.command(name="list")
def list_endpoints(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """Every endpoint and how it fares."""
    with hand(gateway, json, "admin") as door:
        answer = door.ask("GET", "/v1/webhooks/out")
    if json:
        show_json(answer)
        return
    columns = ("ENDPOINT", "NAME", "KIND", "STATE", "WAITING", "LAST OK", "URL")
    show_table(columns, [_line(row) for row in answer["items"]], "nobody outside is told of anything")


def _line(row: Row) -> tuple[object, ...]:
    state = row["state"]
    if state == "active" and row["failures"]:
        state = f"failing ({row['failures']})"
    return (
        row["endpoint_id"], row["name"], row["kind"], state, row["waiting"], when(row["last_ok_at"]),
        row["url"],
    )  # fmt: skip


@webhooks.command(name="show")
def show(endpoint: Endpoint, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """One endpoint whole: what it is told of, by which schedule, and how it fares."""
    with hand(gateway, json, "admin") as door:
        row = _found(door, endpoint)
    if json:
        show_json(row)
        return
    chosen = ", ".join(f"{name}={value}" for name, values in row["filters"].items() for value in values)
    say(
        f"endpoint  {row['endpoint_id']}",
        f"name      {row['name']} ({row['kind']})",
        f"url       {row['url']}",
        f"events    {', '.join(row['events']) or 'none: only alerts that name it'}",
        f"filters   {chosen or 'none'}",
        f"rate      {row['rate_per_min']} a minute",
        f"schedule  at once, then after {', '.join(str(one) for one in row['schedule_s'])} s",
        f"state     {row['state']} {row['disabled_reason'] or ''}".rstrip(),
        f"waiting   {row['waiting']}, {row['failures']} failures in a row",
    )
    if row["paused_until"]:
        say(f"paused    until {when(row['paused_until'])}")


@webhooks.command(name="add")
def add(
    name: Annotated[str, Parameter(help="What you call it.")],
    url: Annotated[str, Parameter(help="Where it is told: https://…, or mailto:… for e-mail.")],
    /,
    *,
    event: Events = (),
    only: Filters = (),
    kind: Annotated[str, Parameter(help="webhook, slack or email.")] = "webhook",
    rate: Annotated[int, Parameter(help="At most so many a minute.")] = 600,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Tell somebody outside of events from now on. The secret is shown now and never again."""
    filters: dict[str, list[str]] = {}
    for one in only:
        named, equals, value = one.partition("=")
        if not equals:
            raise Misused("a filter is name=value, as in --filter agent=researcher-1")
        filters.setdefault(named, []).append(value)
    body = {"name": name, "url": url, "kind": kind, "events": list(event), "filters": filters}
    with hand(gateway, json, "admin") as door:
        answer = door.ask("POST", "/v1/webhooks/out", body | {"rate_per_min": rate})
    tell(answer, json, f"{answer['endpoint_id']}: {answer['name']} is told from now on")
    if not json and answer["secret"]:
        say(f"secret  {answer['secret']}")
        note("the secret is not shown again; give it to the receiver")


@webhooks.command(name="test")
def send_test(endpoint: Endpoint, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Send a test now and say how it went; exit code 1 when it failed."""
    with hand(gateway, json, "admin") as door:
        found = _found(door, endpoint)
        answer = door.ask("POST", f"{_path(found)}/test")
    tried = answer["tries"][-1] if answer["tries"] else {"detail": "it was not tried", "took_ms": 0}
    tell(answer, json, f"{answer['state']}: {tried['detail']} ({tried['took_ms']} ms)")
    if answer["state"] != "delivered":
        raise SystemExit(1)


@webhooks.command(name="log")
def log(
    endpoint: Endpoint,
    delivery: Annotated[str | None, Parameter(help="One delivery whole: what is sent, every try.")] = None,
    *,
    state: Annotated[str | None, Parameter(help="Only waiting, delivered or dead ones.")] = None,
    limit: Annotated[int, Parameter(help="So many, the newest first.")] = 50,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """What was sent to an endpoint, what waits, and what died."""
    with hand(gateway, json, "admin") as door:
        found = _found(door, endpoint)
        if delivery is not None:
            _one(
                door.ask("GET", path_of("webhooks", "out", found["endpoint_id"], "deliveries", delivery)),
                json,
            )
            return
        answer = door.ask("GET", f"{_path(found)}/deliveries", limit=limit, state=state)
    if json:
        show_json(answer)
        return
    shown = [
        (row["delivery_id"], row["event_type"], row["state"], row["attempts"], row["last_code"],
         when(row["next_try_at"]), row["last_detail"] or "")
        for row in answer["items"]
    ]  # fmt: skip
    columns = ("DELIVERY", "EVENT", "STATE", "TRIES", "CODE", "NEXT", "LAST")
    show_table(columns, shown, "nothing was sent to it")


def _one(row: Row, json: bool) -> None:
    if json:
        show_json(row)
        return
    say(f"{row['delivery_id']}  {row['event_type']}  {row['state']}")
    for one in row["tries"]:
        say(f"  {one['attempt']}. {when(one['at'])}  {one['took_ms']} ms  {one['detail']}")
    if row["next_try_at"]:
        say(f"  next {when(row['next_try_at'])}")
    say(row["payload"] or "what was sent is not there any more")


@webhooks.command(name="replay")
def replay(
    endpoint: Endpoint,
    delivery: Annotated[str | None, Parameter(help="One delivery; without it, a range.")] = None,
    *,
    after: Annotated[int | None, Parameter(help="Events after this number.")] = None,
    before: Annotated[int | None, Parameter(help="Events before this number.")] = None,
    since: Annotated[str | None, Parameter(help="Events since this time, e.g. 2026-11-16T12:00:00Z.")] = None,
    until: Annotated[str | None, Parameter(help="Events until this time.")] = None,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Send once more, under the same ids; also what it was never told of, as while it was disabled."""
    span = {"after": after, "before": before, "since": since, "until": until}
    body: Row = {name: value for name, value in span.items() if value is not None}
    if delivery is not None:
        body = {"delivery_id": delivery}
    if not body:
        raise Misused("name a delivery, or a range by --after, --before, --since or --until")
    total = 0
    with hand(gateway, json, "admin") as door:
        found = _found(door, endpoint)
        if delivery is None:
            confirm(f"Send all of that to {found['name']} once more?", yes)
        while True:
            answer = door.ask("POST", f"{_path(found)}/replay", body)
            total += answer["replayed"]
            if answer["next_after"] is None:
                break
            body["after"] = answer["next_after"]
    tell(answer | {"replayed": total}, json, f"{total} deliveries are sent once more")


@webhooks.command(name="rotate")
def rotate(
    endpoint: Endpoint,
    *,
    overlap: Annotated[int, Parameter(help="So many seconds the old one signs as well.")] = 86_400,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Give an endpoint another secret. It is shown now and never again."""
    with hand(gateway, json, "admin") as door:
        found = _found(door, endpoint)
        answer = door.ask("POST", f"{_path(found)}/rotate", {"overlap_s": overlap})
    tell(
        answer, json, f"secret  {answer['secret']}", f"the old one signs until {when(answer['old_ends_at'])}"
    )


@webhooks.command(name="enable")
def enable(endpoint: Endpoint, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Send to an endpoint again, from now on."""
    with hand(gateway, json, "admin") as door:
        answer = door.ask("POST", f"{_path(_found(door, endpoint))}/enable")
    tell(answer, json, f"{answer['name']} is {answer['state']}")


@webhooks.command(name="disable")
def disable(endpoint: Endpoint, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Send nothing to an endpoint for now."""
    with hand(gateway, json, "admin") as door:
        answer = door.ask("POST", f"{_path(_found(door, endpoint))}/disable")
    tell(answer, json, f"{answer['name']} is {answer['state']}")


@webhooks.command(name="remove")
def remove(endpoint: Endpoint, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """End an endpoint; what waits for it is not sent, its log stays."""
    with hand(gateway, json, "admin") as door:
        found = _found(door, endpoint)
        confirm(f"Tell {found['name']} nothing more?", yes)
        answer = door.ask("DELETE", _path(found))
    tell(answer, json, f"{found['name']} is told nothing more")


def _found(door: Api, endpoint: str) -> Row:
    return one_of(door.ask("GET", "/v1/webhooks/out")["items"], endpoint, ("name", "endpoint_id"), LISTED)


def _path(row: Row) -> str:
    return path_of("webhooks", "out", row["endpoint_id"])
