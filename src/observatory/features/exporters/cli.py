"""`observatory exporters`: where the audit events go by OTLP, how far each is behind, and how to steer it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway
from observatory.cli.prompts import Json, Yes, confirm, hand, one_of, path_of, tell, when
from observatory.cli.terminal import CommandFailed, Misused, say, show_json, show_table

EXPORTERS = "`observatory exporters list`"
exporters = App(
    name="exporters",
    help="OTLP backends: list, show, add, change, pause, resume, rewind, test, remove.",
)
Which = Annotated[str, Parameter(help="An exporter's name, or its id or the beginning of it.")]
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
    Parameter(name="--event", negative=(), help="Only events of this type; may be repeated."),
]
Severity = Annotated[int | None, Parameter(help="Only events of at least this severity (1 to 24).")]
Agents = Annotated[
    list[str] | None, Parameter(name="--agent", negative=(), help="Only from or to this agent; repeatable.")
]


@exporters.command(name="list")
def list_exporters(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """All of them, and how far each is behind."""
    with hand(gateway, json, "operator") as door:
        rows = list(door.items("/v1/exporters"))
    if json:
        show_json(rows)
        return
    shown = [
        (row["name"], row["protocol"], row["url"], row["status"], row["lag_events"], _age(row["lag_s"]),
         row["sent"], row["refused"], row["problem"])
        for row in rows
    ]  # fmt: skip
    columns = ("NAME", "WAY", "URL", "STATUS", "BEHIND", "AGE", "SENT", "REFUSED", "PROBLEM")
    show_table(columns, shown, "no event leaves this house")


def _age(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:,.0f} s"


@exporters.command(name="show")
def show(which: Which, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """One of them, whole; of its headers the names."""
    with hand(gateway, json, "operator") as door:
        row = _one(door, which)
    if json:
        show_json(row)
        return
    for name, value in row.items():
        if value not in (None, [], {}):
            say(f"{name}: {when(value) if name.endswith('_at') else value}")


@exporters.command(name="add")
def add(
    name: Annotated[str, Parameter(help="What it is called here.")],
    url: Annotated[str, Parameter(help="https://HOST[:PORT][/PATH]; over http without a path: /v1/logs.")],
    /,
    *,
    way: Annotated[Way, Parameter(help="http (OTLP/HTTP with protobuf) or grpc.")] = "http",
    start: Annotated[str, Parameter(name="--from", help="now, start, or the first event's number.")] = "now",
    header: Header = None,
    event: Types = None,
    severity: Severity = None,
    agent: Agents = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Send this tenant's events there, from now on or from the beginning. Payloads never leave."""
    body = {
        "name": name,
        "url": url,
        "protocol": way,
        "headers": _headers(header),
        "filters": _filters(event, severity, agent),
        "from": _first(start),
    }
    with hand(gateway, json, "admin") as door:
        answer = door.ask("POST", "/v1/exporters", body)
    tell(answer, json, f"{answer['exporter_id']}: {answer['lag_events']:,} events to send")


@exporters.command(name="change")
def change(
    which: Which,
    *,
    name: str | None = None,
    url: Annotated[str | None, Parameter(name="--to", help="Where it sends from now on.")] = None,
    way: Way | None = None,
    header: Header = None,
    event: Types = None,
    severity: Severity = None,
    agent: Agents = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """What is not given stays; headers and filters, once given, are all there are."""
    body: dict[str, Any] = {"name": name, "url": url, "protocol": way}
    body["headers"] = None if header is None else _headers(header)
    if (event, severity, agent) != (None, None, None):
        body["filters"] = _filters(event, severity, agent)
    with hand(gateway, json, "admin") as door:
        answer = door.ask("PATCH", path_of("exporters", _one(door, which)["exporter_id"]), body)
    tell(answer, json, f"{answer['name']}: changed")


@exporters.command(name="pause")
def pause(which: Which, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Send nothing for now; nothing is lost by it."""
    answer = _do(which, "pause", json, gateway)
    tell(answer, json, f"{answer['name']}: paused at {answer['cursor']:,}")


@exporters.command(name="resume")
def resume(which: Which, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Go on from where it was."""
    answer = _do(which, "resume", json, gateway)
    tell(answer, json, f"{answer['name']}: {answer['lag_events']:,} events to send")


@exporters.command(name="rewind")
def rewind(
    which: Which,
    to: Annotated[int, Parameter(help="The number of the next event that is sent.")],
    *,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Send again from an event on, or go on past what a backend will never take."""
    with hand(gateway, json, "admin") as door:
        row = _one(door, which)
        if to > row["cursor"] + 1:
            confirm(f"Never send events {row['cursor'] + 1:,} to {to - 1:,} to {row['name']}?", yes)
        else:
            confirm(f"Send events {to:,} to {row['cursor']:,} to {row['name']} once more?", yes)
        answer = door.ask("POST", f"{path_of('exporters', row['exporter_id'])}/rewind", {"to": to})
    tell(answer, json, f"{answer['name']}: goes on with event {to:,}")


@exporters.command(name="test")
def try_out(which: Which, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Send one record that is no event, and tell how it was answered."""
    answer = _do(which, "test", json, gateway)
    if json:
        show_json(answer)
    elif answer["outcome"] != "taken":
        raise CommandFailed(f"not taken: {answer['detail']}")
    else:
        say(answer["detail"])


@exporters.command(name="remove")
def remove(which: Which, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """Send nothing there any more; its headers are forgotten."""
    with hand(gateway, json, "admin") as door:
        row = _one(door, which)
        confirm(f"Send nothing to {row['name']} ({row['url']}) any more?", yes)
        answer = door.ask("DELETE", path_of("exporters", row["exporter_id"]))
    tell(answer, json, f"{row['name']}: removed")


def _do(which: str, verb: str, json: bool, gateway: Gateway) -> dict[str, Any]:
    with hand(gateway, json, "admin") as door:
        path = path_of("exporters", _one(door, which)["exporter_id"])
        answer: dict[str, Any] = door.ask("POST", f"{path}/{verb}")
    return answer


def _one(door: Api, which: str) -> dict[str, Any]:
    return one_of(list(door.items("/v1/exporters")), which, ("name", "exporter_id"), EXPORTERS)


def _first(text: str) -> str | int:
    if text in ("now", "start"):
        return text
    if not text.isdecimal() or int(text) < 1:
        raise Misused("--from is now, start, or the number of an event")
    return int(text)


def _filters(
    types: Sequence[str] | None, severity: int | None, agents: Sequence[str] | None
) -> dict[str, Any]:
    return {"event_types": types or [], "severity_min": severity or 1, "agents": agents or []}


def _headers(given: Sequence[str] | None) -> dict[str, str]:
    """Words of a command line are seen by everybody on the machine: secrets come another way."""
    found: dict[str, str] = {}
    for text in given or ():
        name, _, source = text.partition("=")
        kind, _, place = source.partition(":")
        if kind == "env" and place:
            if place not in os.environ:
                raise Misused(f"the environment has no {place} for the header {name}")
            found[name.lower()] = os.environ[place]
        elif kind == "file" and place:
            try:
                found[name.lower()] = Path(place).read_text().strip()
            except (OSError, UnicodeDecodeError):
                raise Misused(f"the header {name} cannot be read from {place}") from None
        else:
            raise Misused("a header is NAME=env:VARIABLE or NAME=file:PATH; no secret on the command line")
    return found
