"""`observatory kill` and `observatory instructions`: what reaches many agents at once; an admin's words.

The gateway enforces two confirmations for a kill-switch. A person gives the first with y and the second by
typing what will stop; `--yes` gives both.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import (
    File,
    Json,
    Yes,
    confirm,
    hand,
    must_be_asked,
    one_of,
    path_of,
    perhaps,
    tell,
    text_of,
    typed,
    when,
)
from observatory.cli.terminal import CommandFailed, Misused, note, say, show_json, show_table
from observatory.features.kill_switch.descriptions import engaged, released, scope_of
from observatory.protocol.scopes import COLUMNS
from observatory.protocol.spelling import are_same

Reason = Annotated[str, Parameter(help="Why; it is kept in the record and shown to the agents.")]
SHOWN_NAMES = 20
NOUNS = {"class": "agent type", "cluster": "cluster", "agent": "name"}
SWITCHES = "`observatory kill list`"

kill = App(
    name="kill", help="Stop an agent, a class, a cluster or everything of the tenant: then list, release."
)
instructions = App(name="instructions", help="What agents of a type work by: list, show, set, rollback.")


@kill.default
def engage(
    scope: Literal["global", "cluster", "class", "agent"],
    target: Annotated[
        str | None, Parameter(help="The cluster, the agent type or the agent; none for global.")
    ] = None,
    *,
    reason: Reason,
    force: Annotated[bool, Parameter(negative=(), help="Also for a name no agent has yet.")] = False,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Engage a kill-switch: essential traffic passes, all else of its scope is held, none is lost."""
    if (scope == "global") != (target is None):
        raise Misused("name the cluster, the agent type or the agent to stop; global has no name")
    name = target or "global"
    must_be_asked(f"Stop {name}?", yes)
    with hand(gateway, json, "admin") as door:
        if target is not None and not force:
            _must_be_known(door, scope, target)
        armed = door.ask("POST", "/v1/kill-switch", {"scope": scope, "target": target, "reason": reason})
        reach = armed["would_hold"]
        question = f"Stop {scope_of(armed)}: {reach['agents']} agents in {reach['sessions']} sessions?"
        confirm(question, yes)
        path = path_of("kill-switch", armed["kill_id"], "confirm")
        half = door.ask("POST", path, {"token": armed["token"]})
        typed("This stops them with their next message.", name, yes)
        answer = door.ask("POST", path, {"token": half["token"]})
    told = f"{scope_of(answer)} is stopped; {answer['told']} agents are told  {answer['kill_id']}"
    tell(answer, json, told, f"to let it go on: observatory kill release {answer['kill_id']} --reason …")


def _must_be_known(door: Api, scope: str, target: str) -> None:
    """A misspelt name would stop nothing, and look as if it had."""
    column, noun = COLUMNS[scope], NOUNS[scope]
    rows = list(door.items("/v1/agents"))
    names = sorted({row[column] for row in rows if row[column]})
    taken = names + [row["entity_id"] for row in rows if scope == "agent"]
    if not any(are_same(name, target) for name in taken):
        known = f"there are {', '.join(names[:SHOWN_NAMES])}" if names else "there are none yet"
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        raise CommandFailed(
            f"no agent has the {noun} {target}, nothing was stopped; {known}{more}; "
            "--force stops it for agents that may come"
        )


@kill.command(name="list")
def list_switches(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """Kill-switches, newest first."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", "/v1/kill-switch")
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
        ("KILL-SWITCH", "SCOPE", "STATE", "HELD", "ENGAGED", "RELEASED", "BY", "REASON"),
        shown,
        "no kill-switch was ever armed",
    )
    note("something is stopped" if answer["engaged"] else "nothing is stopped")


@kill.command(name="release")
def release(
    id_: Annotated[str | None, Parameter(help="Which one; may be left out when only one is engaged.")] = None,
    *,
    reason: Reason,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Release a kill-switch; what it held goes on in stages."""
    with hand(gateway, json, "admin") as door:
        rows = door.ask("GET", "/v1/kill-switch")["items"]
        stopping = [row for row in rows if row["state"] == "engaged"]
        if id_ is None and len(stopping) != 1:
            raise Misused(f"{len(stopping)} kill-switches are engaged; name one ({SWITCHES} shows them)")
        found = stopping[0] if id_ is None else one_of(rows, id_, ("kill_id",), SWITCHES)
        confirm(f"Let {scope_of(found)} go on, with {found['held']} held messages?", yes)
        body = {"reason": reason}
        answer = door.ask("POST", path_of("kill-switch", found["kill_id"], "release"), body)
        told = perhaps(lambda: released(answer, engaged(door)), f"{found['kill_id']} is released")
    tell(answer, json, told)


@instructions.command(name="list")
def list_instructions(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """Instructions in force, by agent type, and how many agents have taken them."""
    with hand(gateway, json) as door:
        rows = list(door.items("/v1/instructions"))
    columns: dict[str, Cell] = {
        "AGENT TYPE": "agent_type",
        "VERSION": "version",
        "TAKEN": lambda row: f"{row['acknowledged']}/{row['agents']}",
        "ISSUED": at("created_at"),
        "BY": "created_by",
        "NOTE": "note",
    }
    show_rows(rows, json, columns, "no instructions were issued")


@instructions.command(name="show")
def show(agent_type: str, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """The text in force, its history, and which agents have taken it."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", path_of("instructions", agent_type))
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
        (row["agent_id"], row["acknowledged_version"] or "none", _taken(row)) for row in answer["agents"]
    ]
    show_table(("AGENT", "HAS", "STATE"), shown)


@instructions.command(name="set")
def set_instructions(
    agent_type: str,
    text: str | None = None,
    *,
    file: File = None,
    note: Annotated[str, Parameter(help="What changed and why.")] = "",
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Issue new instructions to every agent of a type: the text in quotes, from --file or from stdin."""
    body = {"text": text_of(text, file, "the text"), "note": note}
    with hand(gateway, json, "admin") as door:
        confirm(f"Give these instructions to every agent of type {agent_type}?", yes)
        answer = door.ask("PUT", path_of("instructions", agent_type), body)
    tell(answer, json, _issued(answer))


@instructions.command(name="rollback")
def rollback(
    agent_type: str, version: int, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY
) -> None:
    """Issue an older version's text again, as a new version."""
    with hand(gateway, json, "admin") as door:
        confirm(f"Give every agent of type {agent_type} the text of version {version} again?", yes)
        answer = door.ask("POST", path_of("instructions", agent_type, "rollback"), {"version": version})
    tell(answer, json, _issued(answer))


def _issued(answer: dict[str, Any]) -> str:
    return f"{answer['agent_type']} has version {answer['version']}; {answer['told']} agents are told"


def _taken(row: dict[str, Any]) -> str:
    if row["evicted"]:
        return "evicted"
    return "not yet" if row["pending"] else "taken"
