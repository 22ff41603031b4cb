"""`observatory webhooks`: manage outbound webhooks, inspect their deliveries, and redeliver."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions
from observatory.cli.prompts import Json, Yes, api_session, confirm, one_of, path_of, print_result, when
from observatory.cli.terminal import InvalidArguments, note, say, show_json, show_table
from observatory.plural import plural

LISTED = "`observatory webhooks list`"
Row = dict[str, Any]
Endpoint = Annotated[str, Parameter(help="The endpoint's name, its id, or a prefix of the id.")]
Events = Annotated[tuple[str, ...], Parameter(name="--event", help="An event type to send; repeatable.")]
Filters = Annotated[
    tuple[str, ...],
    Parameter(name="--filter", help="Only where name=value: agent, session, cluster, tool, severity, …"),
]

webhooks = App(
    name="webhooks",
    help="Outbound webhooks: list, show, add, test, log, replay, rotate, enable, disable, remove.",
)


@webhooks.command(name="list")
def list_endpoints(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List endpoints and their status."""
    with api_session(gateway, json, "admin") as api:
        answer = api.ask("GET", "/v1/webhooks/out")
    if json:
        show_json(answer)
        return
    columns = ("ENDPOINT", "NAME", "KIND", "STATE", "PENDING", "LAST OK", "URL")
    show_table(columns, [_line(row) for row in answer["items"]], "No webhooks")


def _line(row: Row) -> tuple[object, ...]:
    state = row["state"]
    if state == "active" and row["failures"]:
        state = f"failing ({row['failures']})"
    return (
        row["endpoint_id"], row["name"], row["kind"], state, row["waiting"], when(row["last_ok_at"]),
        row["url"],
    )  # fmt: skip


@webhooks.command(name="show")
def show(endpoint: Endpoint, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Show one endpoint: its events, filters, schedule and status."""
    with api_session(gateway, json, "admin") as api:
        row = _endpoint(api, endpoint)
    if json:
        show_json(row)
        return
    filters = ", ".join(f"{name}={value}" for name, values in row["filters"].items() for value in values)
    say(
        f"endpoint  {row['endpoint_id']}",
        f"name      {row['name']} ({row['kind']})",
        f"url       {row['url']}",
        f"events    {', '.join(row['events']) or 'none: only alert rules that use it'}",
        f"filters   {filters or 'none'}",
        f"rate      {row['rate_per_min']} per minute",
        f"schedule  immediately, then after {', '.join(str(one) for one in row['schedule_s'])} s",
        f"state     {row['state']} {row['disabled_reason'] or ''}".rstrip(),
        f"pending   {row['waiting']}, {row['failures']} failures in a row",
    )
    if row["paused_until"]:
        say(f"paused    until {when(row['paused_until'])}")


@webhooks.command(name="add")
def add(
    name: Annotated[str, Parameter(help="A unique name.")],
    url: Annotated[str, Parameter(help="Target URL: https://…, or mailto:… for e-mail.")],
    /,
    *,
    event: Events = (),
    only: Filters = (),
    kind: Annotated[str, Parameter(help="webhook, slack or email.")] = "webhook",
    rate: Annotated[int, Parameter(help="Maximum deliveries per minute.")] = 600,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Create an endpoint for events from now on. Its secret is shown only once."""
    filters: dict[str, list[str]] = {}
    for one in only:
        named, equals, value = one.partition("=")
        if not equals:
            raise InvalidArguments("a filter is name=value, as in --filter agent=researcher-1")
        filters.setdefault(named, []).append(value)
    body = {"name": name, "url": url, "kind": kind, "events": list(event), "filters": filters}
    with api_session(gateway, json, "admin") as api:
        answer = api.ask("POST", "/v1/webhooks/out", body | {"rate_per_min": rate})
    print_result(answer, json, f"{answer['endpoint_id']}: {answer['name']} created")
    if not json and answer["secret"]:
        say(f"secret  {answer['secret']}")
        note("the secret is shown only once; configure it at the receiver")


@webhooks.command(name="test")
def send_test(endpoint: Endpoint, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Send a test delivery and show the result; exit code 1 when it failed."""
    with api_session(gateway, json, "admin") as api:
        endpoint_row = _endpoint(api, endpoint)
        answer = api.ask("POST", f"{_path(endpoint_row)}/test")
    last_attempt = answer["tries"][-1] if answer["tries"] else {"detail": "not attempted", "took_ms": 0}
    print_result(answer, json, f"{answer['state']}: {last_attempt['detail']} ({last_attempt['took_ms']} ms)")
    if answer["state"] != "delivered":
        raise SystemExit(1)


@webhooks.command(name="log")
def log(
    endpoint: Endpoint,
    delivery: Annotated[
        str | None, Parameter(help="Show one delivery with its payload and attempts.")
    ] = None,
    *,
    state: Annotated[str | None, Parameter(help="Only waiting, delivered or dead ones.")] = None,
    limit: Annotated[int, Parameter(help="Maximum number, newest first.")] = 50,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """List an endpoint's deliveries: delivered, pending and failed."""
    with api_session(gateway, json, "admin") as api:
        endpoint_row = _endpoint(api, endpoint)
        if delivery is not None:
            _one(
                api.ask(
                    "GET", path_of("webhooks", "out", endpoint_row["endpoint_id"], "deliveries", delivery)
                ),
                json,
            )
            return
        answer = api.ask("GET", f"{_path(endpoint_row)}/deliveries", limit=limit, state=state)
    if json:
        show_json(answer)
        return
    rows_shown = [
        (row["delivery_id"], row["event_type"], row["state"], row["attempts"], row["last_code"],
         when(row["next_try_at"]), row["last_detail"] or "")
        for row in answer["items"]
    ]  # fmt: skip
    columns = ("DELIVERY", "EVENT", "STATE", "ATTEMPTS", "CODE", "NEXT", "LAST RESULT")
    show_table(columns, rows_shown, "No deliveries")


def _one(row: Row, json: bool) -> None:
    if json:
        show_json(row)
        return
    say(f"{row['delivery_id']}  {row['event_type']}  {row['state']}")
    for one in row["tries"]:
        say(f"  {one['attempt']}. {when(one['at'])}  {one['took_ms']} ms  {one['detail']}")
    if row["next_try_at"]:
        say(f"  next {when(row['next_try_at'])}")
    say(row["payload"] or "the payload is no longer available")


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
    gateway: GatewayOptions = ANY,
) -> None:
    """Redeliver under the same ids; a range also includes events missed while the endpoint was disabled."""
    span = {"after": after, "before": before, "since": since, "until": until}
    body: Row = {name: value for name, value in span.items() if value is not None}
    if delivery is not None:
        body = {"delivery_id": delivery}
    if not body:
        raise InvalidArguments("name a delivery, or a range by --after, --before, --since or --until")
    total = 0
    with api_session(gateway, json, "admin") as api:
        endpoint_row = _endpoint(api, endpoint)
        if delivery is None:
            confirm(f"Redeliver this range to {endpoint_row['name']}?", yes)
        while True:
            answer = api.ask("POST", f"{_path(endpoint_row)}/replay", body)
            total += answer["replayed"]
            if answer["next_after"] is None:
                break
            body["after"] = answer["next_after"]
    print_result(
        answer | {"replayed": total}, json, f"{plural(total, 'delivery', 'deliveries')} queued again"
    )


@webhooks.command(name="rotate")
def rotate(
    endpoint: Endpoint,
    *,
    overlap: Annotated[int, Parameter(help="Seconds during which the old secret also signs.")] = 86_400,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Replace an endpoint's secret. The new one is shown only once."""
    with api_session(gateway, json, "admin") as api:
        endpoint_row = _endpoint(api, endpoint)
        answer = api.ask("POST", f"{_path(endpoint_row)}/rotate", {"overlap_s": overlap})
    print_result(
        answer,
        json,
        f"secret  {answer['secret']}",
        f"the old secret signs until {when(answer['old_ends_at'])}",
    )


@webhooks.command(name="enable")
def enable(endpoint: Endpoint, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Enable an endpoint: events from now on are sent again."""
    with api_session(gateway, json, "admin") as api:
        answer = api.ask("POST", f"{_path(_endpoint(api, endpoint))}/enable")
    print_result(answer, json, f"{answer['name']} is {answer['state']}")


@webhooks.command(name="disable")
def disable(endpoint: Endpoint, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Disable an endpoint: nothing is sent to it."""
    with api_session(gateway, json, "admin") as api:
        answer = api.ask("POST", f"{_path(_endpoint(api, endpoint))}/disable")
    print_result(answer, json, f"{answer['name']} is {answer['state']}")


@webhooks.command(name="remove")
def remove(
    endpoint: Endpoint, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY
) -> None:
    """Remove an endpoint; pending deliveries are not sent, its log stays."""
    with api_session(gateway, json, "admin") as api:
        endpoint_row = _endpoint(api, endpoint)
        confirm(f"Remove {endpoint_row['name']}?", yes)
        answer = api.ask("DELETE", _path(endpoint_row))
    print_result(answer, json, f"{endpoint_row['name']} removed")


def _endpoint(api: GatewayApi, endpoint: str) -> Row:
    return one_of(api.ask("GET", "/v1/webhooks/out")["items"], endpoint, ("name", "endpoint_id"), LISTED)


def _path(row: Row) -> str:
    return path_of("webhooks", "out", row["endpoint_id"])
