"""Commands on a running agent: pause, unpause, inject, cancel, undo, and the list of interventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import (
    File,
    Json,
    Note,
    Yes,
    api_session,
    confirm,
    path_of,
    poll,
    print_result,
    session_of,
    text_of,
    when,
)
from observatory.cli.terminal import CommandFailed, note

CONFIRMATIONS = {
    "requested": "requested: the agent has not acknowledged yet; what it sends is held",
    "acknowledged": "acknowledged by the agent",
    "confirmed": "confirmed: the agent has stopped and sent nothing since",
}
UNPROVEN = " (unproven: the key that acknowledged is not bound to it; see `observatory keys bind`)"


def pause(
    session: str,
    agent: str,
    *,
    note: Note = None,
    wait: Annotated[
        float | None,
        Parameter(help="Wait up to this many seconds for the pause to be acknowledged and confirmed."),
    ] = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Pause an agent in a session: its further messages are held, in order."""
    with api_session(gateway, json) as client:
        session = session_of(client, session)
        answer = _command(client, "pause", session, agent, {"note": note})
        if wait is not None and answer["status"] == "accepted":
            answer["confirmation"] = _await(client, session, answer["intervention_id"], wait, json)
        line = f"{agent} is paused"
        if answer["status"] == "already_paused":
            line = f"{agent} is already paused"
        elif wait is None:
            line += f" ({CONFIRMATIONS['requested']})"
        print_result(answer, json, _with_id(line, answer))


def unpause(
    session: str, agent: str, *, note: Note = None, json: Json = False, gateway: GatewayOptions = ANY
) -> None:
    """Resume an agent: held messages are forwarded in arrival order; gates stay."""
    with api_session(gateway, json) as client:
        session = session_of(client, session)
        answer = _command(client, "unpause", session, agent, {"note": note})
    if answer["status"] == "not_paused":
        print_result(answer, json, f"{agent} is not paused")
        return
    released = answer.get("released") or 0
    print_result(answer, json, _with_id(f"{agent} is running; held messages forwarded: {released}", answer))


def inject(
    session: str,
    agent: str,
    prompt: str | None = None,
    *,
    file: File = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Put a prompt into an agent's next context; `observatory undo` withdraws it until it is delivered."""
    body = {"prompt": text_of(prompt, file, "the prompt")}
    with api_session(gateway, json) as client:
        session = session_of(client, session)
        answer = _command(client, "inject", session, agent, body)
    print_result(answer, json, _with_id(f"the prompt is queued for {agent}", answer))


def cancel(
    session: str,
    agent: str,
    *,
    note: Note = None,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Cancel an agent's work on a session for good; `Cancelled` is raised in its code."""
    with api_session(gateway, json) as client:
        session = session_of(client, session)
        confirm(f"Cancel the work of {agent} on session {session}? This cannot be undone.", yes)
        answer = _command(client, "cancel", session, agent, {"note": note})
    print_result(answer, json, _with_id(f"{agent} is asked to end its work on this session", answer))


def undo(intervention: str, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Undo a command: a rewrite until its release, an inject until its delivery, a pause at any time."""
    with api_session(gateway, json) as client:
        answer = client.ask("POST", path_of("interventions", intervention, "undo"))
    print_result(answer, json, f"{intervention} is undone")


def interventions(session: str, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List the interventions in a session, oldest first, with the confirmation state of each pause."""
    with api_session(gateway, json) as client:
        session = session_of(client, session)
        rows = list(client.items(path_of("sessions", session, "interventions")))
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
    show_rows(rows, json, columns, "no interventions in this session")


def _confirmation(row: Mapping[str, Any]) -> str | None:
    """A pause's confirmation state; unproven where any agent's key could have acknowledged it."""
    state: str | None = row["confirmation"]
    return f"{state} (unproven)" if state is not None and row["proven"] is False else state


def _command(
    client: GatewayApi, command: str, session: str, agent: str, body: dict[str, Any]
) -> dict[str, Any]:
    answer: dict[str, Any] = client.ask(
        "POST", path_of("sessions", session, command), {"agent_id": agent, **body}
    )
    return answer


def _await(client: GatewayApi, session: str, intervention_id: str, seconds: float, quiet: bool) -> str:
    """Wait until the pause is confirmed, printing each of its three states."""
    known = ""

    def look() -> bool:
        nonlocal known
        for row in client.items(path_of("sessions", session, "interventions")):
            if row["intervention_id"] == intervention_id and row["confirmation"] != known:
                known = row["confirmation"]
                if not quiet:
                    note(CONFIRMATIONS[known] + (UNPROVEN if row["proven"] is False else ""))
        return known == "confirmed"

    if not poll(seconds, look):
        raise CommandFailed(f"paused, but not confirmed within {seconds:g} s: {CONFIRMATIONS[known]}")
    return known


def _with_id(sentence: str, answer: dict[str, Any]) -> str:
    intervention_id = answer.get("intervention_id")
    return f"{sentence}  {intervention_id}" if intervention_id else sentence
