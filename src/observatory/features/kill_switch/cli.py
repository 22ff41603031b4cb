"""`observatory kill` and `observatory instructions`: admin commands that affect many agents at once.

The gateway enforces two confirmations for a kill switch. A person gives the first with y and the second by
typing the name of what will stop; `--yes` gives both.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions
from observatory.cli.kill_switches import engaged, release_sentence, scope_of
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import (
    File,
    Json,
    Yes,
    api_session,
    confirm,
    confirm_by_typing,
    one_of,
    path_of,
    print_result,
    require_confirmation,
    result_or,
    text_of,
    when,
)
from observatory.cli.terminal import CommandFailed, InvalidArguments, note, say, show_json, show_table
from observatory.plural import plural
from observatory.protocol.scopes import COLUMNS
from observatory.protocol.spelling import are_same_name

Reason = Annotated[str, Parameter(help="The reason; stored in the record and shown to the agents.")]
SHOWN_NAMES = 20
NOUNS = {"class": "agent type", "cluster": "cluster", "agent": "name"}
SWITCHES = "`observatory kill list`"

kill = App(name="kill", help="Stop an agent, a class, a cluster or the whole tenant. Also: list, release.")
instructions = App(name="instructions", help="System prompt of an agent type: list, show, set, rollback.")


@kill.default
def engage(
    scope: Literal["global", "cluster", "class", "agent"],
    target: Annotated[
        str | None, Parameter(help="The cluster, the agent type or the agent; none for global.")
    ] = None,
    *,
    reason: Reason,
    force: Annotated[bool, Parameter(negative=(), help="Also stop a name no agent has yet.")] = False,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Engage a kill switch: essential traffic passes, all else in its scope is held, nothing is lost."""
    if (scope == "global") != (target is None):
        raise InvalidArguments("name the cluster, the agent type or the agent to stop; global has no name")
    name = target or "global"
    require_confirmation(f"Stop {name}?", yes)
    with api_session(gateway, json, "admin") as client:
        if target is not None and not force:
            _must_be_known(client, scope, target)
        armed = client.ask("POST", "/v1/kill-switch", {"scope": scope, "target": target, "reason": reason})
        reach = armed["would_hold"]
        size = f"{plural(reach['agents'], 'agent')} in {plural(reach['sessions'], 'session')}"
        question = f"Stop {scope_of(armed)}: {size}?"
        confirm(question, yes)
        path = path_of("kill-switch", armed["kill_id"], "confirm")
        half = client.ask("POST", path, {"token": armed["token"]})
        confirm_by_typing("This stops them with their next message.", name, yes)
        answer = client.ask("POST", path, {"token": half["token"]})
    count = plural(answer["told"], "agent")
    result = f"{scope_of(answer)} is stopped; {count} notified  {answer['kill_id']}"
    print_result(answer, json, result, f"to release: observatory kill release {answer['kill_id']} --reason …")


def _must_be_known(client: GatewayApi, scope: str, target: str) -> None:
    """Refuses a misspelled name, which would stop nothing and look as if it had."""
    column, noun = COLUMNS[scope], NOUNS[scope]
    rows = list(client.items("/v1/agents"))
    names = sorted({row[column] for row in rows if row[column]})
    accepted = names + [row["entity_id"] for row in rows if scope == "agent"]
    if not any(are_same_name(name, target) for name in accepted):
        known = f"known: {', '.join(names[:SHOWN_NAMES])}" if names else "there are none yet"
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        raise CommandFailed(
            f"no agent has the {noun} {target}, nothing was stopped; {known}{more}; "
            "--force stops future agents of that name"
        )


@kill.command(name="list")
def list_switches(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List kill switches, newest first."""
    with api_session(gateway, json) as client:
        answer = client.ask("GET", "/v1/kill-switch")
    if json:
        show_json(answer)
        return
    shown = [
        (
            row["kill_id"],
            scope_of(row),
            row["state"],
            row["held"],
            when(row["engaged_at"]),
            when(row["released_at"]),
            row["requested_by"],
            row["reason"],
        )
        for row in answer["items"]
    ]
    show_table(
        ("KILL SWITCH", "SCOPE", "STATE", "HELD", "ENGAGED", "RELEASED", "BY", "REASON"),
        shown,
        "no kill switches",
    )
    note("a kill switch is engaged" if answer["engaged"] else "no kill switch active")


@kill.command(name="release")
def release(
    id_: Annotated[str | None, Parameter(help="Its id; optional when only one is engaged.")] = None,
    *,
    reason: Reason,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Release a kill switch; what it held is forwarded in stages."""
    with api_session(gateway, json, "admin") as client:
        rows = client.ask("GET", "/v1/kill-switch")["items"]
        stopping = [row for row in rows if row["state"] == "engaged"]
        if id_ is None and len(stopping) != 1:
            raise InvalidArguments(
                f"{len(stopping)} kill switches are engaged; name one ({SWITCHES} lists them)"
            )
        found = stopping[0] if id_ is None else one_of(rows, id_, ("kill_id",), SWITCHES)
        confirm(f"Release {scope_of(found)}, with {plural(found['held'], 'held message')}?", yes)
        body = {"reason": reason}
        answer = client.ask("POST", path_of("kill-switch", found["kill_id"], "release"), body)
        result = result_or(
            lambda: release_sentence(answer, engaged(client)), f"{found['kill_id']} is released"
        )
    print_result(answer, json, result)


@instructions.command(name="list")
def list_instructions(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List instructions in force by agent type, and how many agents acknowledged them."""
    with api_session(gateway, json) as client:
        rows = list(client.items("/v1/instructions"))
    columns: dict[str, Cell] = {
        "AGENT TYPE": "agent_type",
        "VERSION": "version",
        "ACKNOWLEDGED": lambda row: f"{row['acknowledged']}/{row['agents']}",
        "ISSUED": at("created_at"),
        "BY": "created_by",
        "NOTE": "note",
    }
    show_rows(rows, json, columns, "no instructions were issued")


@instructions.command(name="show")
def show(agent_type: str, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Show the text in force, its history, and which agents acknowledged it."""
    with api_session(gateway, json) as client:
        answer = client.ask("GET", path_of("instructions", agent_type))
    if json:
        show_json(answer)
        return
    say(answer["text"], "")
    history = [
        (row["version"], when(row["created_at"]), row["created_by"], row["note"]) for row in answer["history"]
    ]
    show_table(("VERSION", "ISSUED", "BY", "NOTE"), history)
    say("")
    shown = [
        (row["agent_id"], row["acknowledged_version"] or "none", _agent_state(row))
        for row in answer["agents"]
    ]
    show_table(("AGENT", "VERSION", "STATE"), shown)


@instructions.command(name="set")
def set_instructions(
    agent_type: str,
    text: str | None = None,
    *,
    file: File = None,
    note: Annotated[str, Parameter(help="What changed and why.")] = "",
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Issue new instructions to every agent of a type: the text in quotes, from --file or from stdin."""
    body = {"text": text_of(text, file, "the text"), "note": note}
    with api_session(gateway, json, "admin") as client:
        confirm(f"Issue these instructions to every agent of type {agent_type}?", yes)
        answer = client.ask("PUT", path_of("instructions", agent_type), body)
    print_result(answer, json, _issued(answer))


@instructions.command(name="rollback")
def rollback(
    agent_type: str, version: int, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY
) -> None:
    """Issue an older version's text again, as a new version."""
    with api_session(gateway, json, "admin") as client:
        confirm(f"Issue the text of version {version} again to every agent of type {agent_type}?", yes)
        answer = client.ask("POST", path_of("instructions", agent_type, "rollback"), {"version": version})
    print_result(answer, json, _issued(answer))


def _issued(answer: dict[str, Any]) -> str:
    count = plural(answer["told"], "agent")
    return f"{answer['agent_type']} has version {answer['version']}; {count} notified"


def _agent_state(row: dict[str, Any]) -> str:
    if row["evicted"]:
        return "evicted"
    return "pending" if row["pending"] else "acknowledged"
