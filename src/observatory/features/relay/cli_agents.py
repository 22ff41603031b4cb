"""The operator's hand on a running agent: pause, unpause, inject, cancel, undo, and what was done so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import (
    File,
    Json,
    Note,
    Yes,
    confirm,
    hand,
    path_of,
    poll,
    session_of,
    tell,
    text_of,
    when,
)
from observatory.cli.terminal import CommandFailed, note

SAYS = {
    "requested": "requested: the agent has not acknowledged yet; what it sends is held",
    "acknowledged": "acknowledged by the agent",
    "confirmed": "confirmed: the agent has stopped, nothing came since",
}
UNPROVEN = " (unproven: the key that acknowledged is not bound to it; see `observatory keys bind`)"


def pause(
    session: str,
    agent: str,
    *,
    note: Note = None,
    wait: Annotated[
        float | None, Parameter(help="Wait so many seconds for the agent to acknowledge and confirm.")
    ] = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Hold all further messages of an agent in a session; what it sends waits, in order."""
    with hand(gateway, json) as door:
        session = session_of(door, session)
        answer = _command(door, "pause", session, agent, {"note": note})
        if wait is not None and answer["status"] == "accepted":
            answer["confirmation"] = _await(door, session, answer["intervention_id"], wait, json)
        told = f"{agent} is paused"
        if answer["status"] == "already_paused":
            told = f"{agent} is paused already"
        elif wait is None:
            told += f" ({SAYS['requested']})"
        tell(answer, json, _told(told, answer))


def unpause(
    session: str, agent: str, *, note: Note = None, json: Json = False, gateway: Gateway = ANY
) -> None:
    """Let an agent go on: what was held is forwarded in the order it came; gates stay."""
    with hand(gateway, json) as door:
        session = session_of(door, session)
        answer = _command(door, "unpause", session, agent, {"note": note})
    if answer["status"] == "not_paused":
        tell(answer, json, f"{agent} is not paused")
        return
    released = answer.get("released") or 0
    tell(answer, json, _told(f"{agent} goes on; held messages forwarded: {released}", answer))


def inject(
    session: str,
    agent: str,
    prompt: str | None = None,
    *,
    file: File = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Put a prompt into an agent's next context; `observatory undo` takes it back until it is delivered."""
    body = {"prompt": text_of(prompt, file, "the prompt")}
    with hand(gateway, json) as door:
        session = session_of(door, session)
        answer = _command(door, "inject", session, agent, body)
    tell(answer, json, _told(f"the prompt waits for {agent}", answer))


def cancel(
    session: str,
    agent: str,
    *,
    note: Note = None,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Ask an agent to end its work on a session, for good; in its code `Cancelled` is raised."""
    with hand(gateway, json) as door:
        session = session_of(door, session)
        confirm(f"End the work of {agent} on session {session}? It cannot be taken back.", yes)
        answer = _command(door, "cancel", session, agent, {"note": note})
    tell(answer, json, _told(f"{agent} is told to end its work on this session", answer))


def undo(intervention: str, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Take a command back: a rewrite until its release, an inject until its delivery, a pause at any time."""
    with hand(gateway, json) as door:
        answer = door.ask("POST", path_of("interventions", intervention, "undo"))
    tell(answer, json, f"{intervention} is taken back")


def interventions(session: str, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """What people did in a session, oldest first, and how far each pause has come."""
    with hand(gateway, json) as door:
        session = session_of(door, session)
        rows = list(door.items(path_of("sessions", session, "interventions")))
    columns: dict[str, Cell] = {
        "INTERVENTION": "intervention_id",
        "AT": at("issued_at"),
        "COMMAND": "command",
        "AGENT": "agent_id",
        "MESSAGE": "message_id",
        "BY": "operator_id",
        "STATE": lambda row: (
            f"undone {when(row['reversed_at'])}" if row["reversed_at"] else _confirmation(row)
        ),
        "NOTE": "note",
    }
    show_rows(rows, json, columns, "nobody intervened in this session")


def _confirmation(row: Mapping[str, Any]) -> str | None:
    """How far a pause has come; unproven where any key of an agent could have acknowledged it."""
    state: str | None = row["confirmation"]
    return f"{state} (unproven)" if state is not None and row["proven"] is False else state


def _command(door: Api, command: str, session: str, agent: str, body: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = door.ask(
        "POST", path_of("sessions", session, command), {"agent_id": agent, **body}
    )
    return answer


def _await(door: Api, session: str, intervention_id: str, seconds: float, quiet: bool) -> str:
    """Follow the pause through its three states."""
    known = ""

    def look() -> bool:
        nonlocal known
        for row in door.items(path_of("sessions", session, "interventions")):
            if row["intervention_id"] == intervention_id and row["confirmation"] != known:
                known = row["confirmation"]
                if not quiet:
                    note(SAYS[known] + (UNPROVEN if row["proven"] is False else ""))
        return known == "confirmed"

    if not poll(seconds, look):
        raise CommandFailed(f"paused, but not confirmed within {seconds:g} s: {SAYS[known]}")
    return known


def _told(sentence: str, answer: dict[str, Any]) -> str:
    found = answer.get("intervention_id")
    return f"{sentence}  {found}" if found else sentence
