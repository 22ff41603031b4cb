"""`observatory exporters`: manage OTLP exporters of audit events, and see their lag."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions
from observatory.cli.prompts import Json, Yes, api_session, confirm, one_of, path_of, print_result, when
from observatory.cli.terminal import CommandFailed, InvalidArguments, say, show_json, show_table

EXPORTERS = "`observatory exporters list`"
exporters = App(
    name="exporters",
    help="OTLP backends: list, show, add, change, pause, resume, rewind, test, remove.",
)
Which = Annotated[str, Parameter(help="An exporter's name, or its id or a prefix of it.")]
Way = Literal["http", "grpc"]
Header = Annotated[
    list[str] | None,
    Parameter(
        name="--header",
        negative=(),
        help="NAME=env:VARIABLE or NAME=file:PATH, e.g. an API key; never the secret itself.",
    ),
]
Types = Annotated[
    list[str] | None,
    Parameter(name="--event", negative=(), help="Only events of this type; repeatable."),
]
Severity = Annotated[int | None, Parameter(help="Only events of at least this severity (1 to 24).")]
Agents = Annotated[
    list[str] | None, Parameter(name="--agent", negative=(), help="Only from or to this agent; repeatable.")
]


@exporters.command(name="list")
def list_exporters(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List exporters and their lag."""
    with api_session(gateway, json, "operator") as api:
        rows = list(api.items("/v1/exporters"))
    if json:
        show_json(rows)
        return
    rows_shown = [
        (row["name"], row["protocol"], row["url"], row["status"], row["lag_events"], _age(row["lag_s"]),
         row["sent"], row["refused"], row["problem"])
        for row in rows
    ]  # fmt: skip
    columns = ("NAME", "PROTOCOL", "URL", "STATUS", "LAG", "AGE", "SENT", "REFUSED", "PROBLEM")
    show_table(columns, rows_shown, "No exporters")


def _age(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:,.0f} s"


@exporters.command(name="show")
def show(which: Which, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Show one exporter; of its headers only the names."""
    with api_session(gateway, json, "operator") as api:
        row = _one(api, which)
    if json:
        show_json(row)
        return
    for name, value in row.items():
        if value not in (None, [], {}):
            say(f"{name}: {when(value) if name.endswith('_at') else value}")


@exporters.command(name="add")
def add(
    name: Annotated[str, Parameter(help="A unique name.")],
    url: Annotated[
        str, Parameter(help="https://HOST[:PORT][/PATH]; with http, the default path is /v1/logs.")
    ],
    /,
    *,
    way: Annotated[Way, Parameter(help="http (OTLP/HTTP with protobuf) or grpc.")] = "http",
    start: Annotated[str, Parameter(name="--from", help="now, start, or the first event's number.")] = "now",
    header: Header = None,
    event: Types = None,
    severity: Severity = None,
    agent: Agents = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Send this tenant's audit events there, from now on or from the start. Payloads are never sent."""
    body = {
        "name": name,
        "url": url,
        "protocol": way,
        "headers": _headers(header),
        "filters": _filters(event, severity, agent),
        "from": _first(start),
    }
    with api_session(gateway, json, "admin") as api:
        answer = api.ask("POST", "/v1/exporters", body)
    print_result(answer, json, f"{answer['exporter_id']}: {answer['lag_events']:,} events to send")


@exporters.command(name="change")
def change(
    which: Which,
    *,
    name: str | None = None,
    url: Annotated[str | None, Parameter(name="--to", help="The new URL.")] = None,
    way: Way | None = None,
    header: Header = None,
    event: Types = None,
    severity: Severity = None,
    agent: Agents = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Change an exporter. What is not given stays; headers and filters replace all previous ones."""
    body: dict[str, Any] = {"name": name, "url": url, "protocol": way}
    body["headers"] = None if header is None else _headers(header)
    if (event, severity, agent) != (None, None, None):
        body["filters"] = _filters(event, severity, agent)
    with api_session(gateway, json, "admin") as api:
        answer = api.ask("PATCH", path_of("exporters", _one(api, which)["exporter_id"]), body)
    print_result(answer, json, f"{answer['name']}: changed")


@exporters.command(name="pause")
def pause(which: Which, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Stop sending for now; nothing is lost."""
    answer = _do(which, "pause", json, gateway)
    print_result(answer, json, f"{answer['name']}: paused at {answer['cursor']:,}")


@exporters.command(name="resume")
def resume(which: Which, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Continue where it stopped."""
    answer = _do(which, "resume", json, gateway)
    print_result(answer, json, f"{answer['name']}: {answer['lag_events']:,} events to send")


@exporters.command(name="rewind")
def rewind(
    which: Which,
    to: Annotated[int, Parameter(help="The number of the next event to send.")],
    *,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Send again from an event on, or skip events that a backend will never accept."""
    with api_session(gateway, json, "admin") as api:
        row = _one(api, which)
        if to > row["cursor"] + 1:
            confirm(f"Skip events {row['cursor'] + 1:,} to {to - 1:,} for {row['name']}?", yes)
        else:
            confirm(f"Send events {to:,} to {row['cursor']:,} to {row['name']} again?", yes)
        answer = api.ask("POST", f"{path_of('exporters', row['exporter_id'])}/rewind", {"to": to})
    print_result(answer, json, f"{answer['name']}: continues with event {to:,}")


@exporters.command(name="test")
def try_out(which: Which, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Send one test record that is no audit event, and show the result."""
    answer = _do(which, "test", json, gateway)
    if json:
        show_json(answer)
    elif answer["outcome"] != "taken":
        raise CommandFailed(f"not accepted: {answer['detail']}")
    else:
        say(answer["detail"])


@exporters.command(name="remove")
def remove(which: Which, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Remove an exporter; its headers are deleted."""
    with api_session(gateway, json, "admin") as api:
        row = _one(api, which)
        confirm(f"Remove {row['name']} ({row['url']})?", yes)
        answer = api.ask("DELETE", path_of("exporters", row["exporter_id"]))
    print_result(answer, json, f"{row['name']}: removed")


def _do(which: str, verb: str, json: bool, gateway: GatewayOptions) -> dict[str, Any]:
    with api_session(gateway, json, "admin") as api:
        path = path_of("exporters", _one(api, which)["exporter_id"])
        answer: dict[str, Any] = api.ask("POST", f"{path}/{verb}")
    return answer


def _one(api: GatewayApi, which: str) -> dict[str, Any]:
    return one_of(list(api.items("/v1/exporters")), which, ("name", "exporter_id"), EXPORTERS)


def _first(text: str) -> str | int:
    if text in ("now", "start"):
        return text
    if not text.isdecimal() or int(text) < 1:
        raise InvalidArguments("--from must be now, start, or the number of an event")
    return int(text)


def _filters(
    types: Sequence[str] | None, severity: int | None, agents: Sequence[str] | None
) -> dict[str, Any]:
    return {"event_types": types or [], "severity_min": severity or 1, "agents": agents or []}


def _headers(given: Sequence[str] | None) -> dict[str, str]:
    """Command-line arguments are visible to every user of the machine, so secrets are read from elsewhere."""
    found: dict[str, str] = {}
    for text in given or ():
        name, _, source = text.partition("=")
        kind, _, place = source.partition(":")
        if kind == "env" and place:
            if place not in os.environ:
                raise InvalidArguments(f"environment variable {place} for the header {name} is not set")
            found[name.lower()] = os.environ[place]
        elif kind == "file" and place:
            try:
                found[name.lower()] = Path(place).read_text().strip()
            except (OSError, UnicodeDecodeError):
                raise InvalidArguments(f"the header {name} cannot be read from {place}") from None
        else:
            raise InvalidArguments(
                "a header is NAME=env:VARIABLE or NAME=file:PATH; never a secret on the command line"
            )
    return found
