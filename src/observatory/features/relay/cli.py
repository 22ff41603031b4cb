"""`observatory holds` lists held messages; approve, reject, edit and rewrite answer them.

A message is named by its number in the list, its id, or a prefix of the id that only one held message has.
Every answer carries the digest of what the list showed, so that a change in between is noticed.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions, GatewayRefused
from observatory.cli.kill_switches import engaged, scope_of, stopped_by
from observatory.cli.prompts import (
    File,
    Json,
    Note,
    Yes,
    api_session,
    confirm,
    content_of,
    one_of,
    path_of,
    print_result,
    require_confirmation,
    result_or,
    session_of,
    when,
)
from observatory.cli.terminal import CommandFailed, show_json, show_table
from observatory.cli.terminal import note as remark
from observatory.cli.text import action_text, age

NAMES = ("sequence_number", "step_id", "message_id")
LISTING = "`observatory holds`"
Digest = Annotated[
    str | None,
    Parameter(
        help="The digest you read (from `observatory holds`): refused if the message has changed since."
    ),
]


def holds(
    message: str | None = None,
    *,
    session: Annotated[str | None, Parameter(help="Only of this session.")] = None,
    agent: Annotated[str | None, Parameter(help="Only of this agent.")] = None,
    gates: Annotated[bool, Parameter(negative=(), help="Only messages that wait for an approval.")] = False,
    content: Annotated[
        bool, Parameter(negative=(), help="Print only the message's present content, for `edit`.")
    ] = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """List held messages: gates first, oldest first; with MESSAGE, show that message in full."""
    with api_session(gateway, json) as client:
        session = session and session_of(client, session)
        rows = _held(client, session_id=session, agent_id=agent, gates_only="true" if gates else None)
        if message is not None:
            hold = one_of(rows, message, NAMES, LISTING)
            _show(client, hold, content, json)
        elif content:
            raise CommandFailed(f"which message? {LISTING} shows them")
        elif json:
            show_json(rows)
        else:
            _table(rows, _deeds(client))
            for row in engaged(client):
                remark(f"{row['kill_id']} stops {scope_of(row)}: {row['reason']}")


def approve(
    message: str,
    *,
    digest: Digest = None,
    note: Note = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Approve a message held at a gate."""
    _pass_gate(message, "approve", "approved", digest, {"note": note}, json, gateway)


def reject(
    message: str,
    *,
    digest: Digest = None,
    note: Note = None,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Reject a message held at a gate and its descendants: never forwarded; the agents are notified."""
    with api_session(gateway, json) as client:
        hold = _resolve(client, message)
        followers = _followers(client, hold)
        also = f" and {followers} that follow from it" if followers else ""
        question = f"Reject {hold['message_id']} of {hold['agent_id']}{also} for good?"
        if not yes:
            require_confirmation(question, yes)
            remark(f"{hold['agent_id']}: {action_text(_content(client, hold))}")
        confirm(question, yes)
        answer = _answer(client, "reject", hold, digest, {"note": note})
    others = (answer.get("rejected") or 1) - 1
    with_others = f"rejected, and {others} that followed from it; never forwarded"
    print_result(answer, json, _done(with_others if others else "rejected, never forwarded", answer))


def edit(
    message: str,
    *,
    file: File = None,
    digest: Digest = None,
    note: Note = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Edit and approve a message held at a gate; the new content is JSON from --file or stdin."""
    body = {"note": note, "new_content": content_of(file)}
    _pass_gate(message, "edit", "edited", digest, body, json, gateway)


def rewrite(message: str, *, file: File = None, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Replace the content of a held message (JSON from --file or stdin); it stays held."""
    new_content = content_of(file)
    with api_session(gateway, json) as client:
        hold = _resolve(client, message)
        body = {
            "agent_id": hold["agent_id"],
            "original_message_id": hold["message_id"],
            "new_content": new_content,
        }
        answer = client.ask("POST", path_of("sessions", hold["session_id"], "rewrite"), body)
    line = f"{answer['message_id']} has new content and stays held  {answer['intervention_id']}"
    print_result(answer, json, line)


def _pass_gate(
    message: str,
    command: str,
    done: str,
    digest: str | None,
    body: dict[str, Any],
    json: bool,
    gateway: GatewayOptions,
) -> None:
    with api_session(gateway, json) as client:
        hold = _resolve(client, message)
        answer = _answer(client, command, hold, digest, body)
        lines = () if json else (_outcome(client, done, hold, answer), _passed(client, hold))
    print_result(answer, json, *lines)


def _held(client: GatewayApi, **query: Any) -> list[dict[str, Any]]:
    """A stable sort: the gateway's order is oldest first."""
    rows = list(client.items("/v1/holds", limit=1_000, **query))
    return sorted(rows, key=lambda row: row["gate"] != "open")


def _resolve(client: GatewayApi, text: str) -> dict[str, Any]:
    """The held message; one no longer held is sent too, so that the gateway reports its outcome."""
    rows = _held(client)
    try:
        return one_of(rows, text, NAMES, LISTING)
    except CommandFailed:
        if any(str(row["message_id"]).startswith(text) for row in rows):
            raise
        try:
            stored: dict[str, Any] = client.ask("GET", path_of("messages", text))
        except GatewayRefused as refusal:
            if refusal.code != 404:
                raise
        else:
            return stored | {"agent_id": _sender(stored["message"]), "action_digest": None}
        raise


def _answer(
    client: GatewayApi, command: str, hold: dict[str, Any], digest: str | None, body: dict[str, Any]
) -> dict[str, Any]:
    seen = digest or hold["action_digest"]
    body = {"agent_id": hold["agent_id"], "message_id": hold["message_id"], "digest": seen, **body}
    answer: dict[str, Any] = client.ask("POST", path_of("sessions", hold["session_id"], command), body)
    return answer


def _outcome(client: GatewayApi, done: str, hold: dict[str, Any], answer: dict[str, Any]) -> str:
    given, needed = answer.get("approvals") or (), answer.get("needed") or 1
    if len(given) < needed and answer.get("state") == "held" and given:
        done += f": {len(given)} of {needed} required approvals; it stays held"
    elif answer.get("state") == "held":
        reason = result_or(lambda: _still_held_because(client, hold), "see `observatory holds`")
        done += f", but still held: {reason}"
    elif answer.get("state") == "forwarded":
        done += " and forwarded"
    return _done(done, answer)


def _done(done: str, answer: dict[str, Any]) -> str:
    line, intervention_id = f"{answer['message_id']} is {done}", answer.get("intervention_id")
    return f"{line}  {intervention_id}" if intervention_id else line


def _still_held_because(client: GatewayApi, hold: dict[str, Any]) -> str:
    """Why an approved message is still held."""
    stop = stopped_by(client, hold["agent_id"])
    if stop is not None:
        return f"{stop}; it leaves when that is released"
    numbers = {row["sequence_number"] for row in _held(client, session_id=hold["session_id"])}
    before = [number for number in hold.get("waits_for") or () if number in numbers]
    if before:
        return f"it follows {', '.join(map(str, before))}, which {'is' if len(before) == 1 else 'are'} held"
    return "its agent is paused, or has earlier messages that are held"


def _passed(client: GatewayApi, hold: dict[str, Any]) -> str:
    return "  " + result_or(lambda: action_text(_content(client, hold)), "(its content is not available now)")


def _content(client: GatewayApi, hold: dict[str, Any]) -> dict[str, Any] | None:
    message: dict[str, Any] | None = client.ask("GET", path_of("messages", hold["message_id"]))["message"]
    return message


def _followers(client: GatewayApi, hold: dict[str, Any]) -> int:
    """How many held messages descend from this one; ancestors come first in the list."""
    descendants = {hold["sequence_number"]}
    rows = _held(client, session_id=hold["session_id"])
    for row in sorted(rows, key=lambda row: int(row["sequence_number"])):
        if descendants.intersection(row["waits_for"]):
            descendants.add(row["sequence_number"])
    return len(descendants) - 1


def _show(client: GatewayApi, hold: dict[str, Any], content: bool, json: bool) -> None:
    message = _content(client, hold)
    if content:
        show_json(message)
    elif json:
        show_json(hold | {"message": message})
    else:
        show_table(("WHAT", "IS"), [(name, _plain(value)) for name, value in hold.items()])
        show_json(message)


def _table(rows: list[dict[str, Any]], deeds: dict[str, str]) -> None:
    """The number names a message in every other command: a terminal is too narrow for two long ids."""
    columns = ["NO", "AGENT", "WAITS FOR", "WHAT", "AGE", "DEADLINE", "SESSION"]
    lines = [
        [
            row["sequence_number"],
            row["agent_id"],
            _waits(row),
            ("(rewritten) " if row["rewritten"] else "") + deeds.get(row["message_id"], ""),
            age(row["held_at"]),
            when(row["deadline"]),
            row["session_id"],
        ]
        for row in rows
    ]
    if not sys.stdout.isatty():
        columns += ["MESSAGE", "REASON", "HELD"]
        more = [[row["message_id"], row["reason"], when(row["held_at"])] for row in rows]
        lines = [cells + added for cells, added in zip(lines, more, strict=True)]
    show_table(columns, lines, "nothing is held")


def _waits(row: dict[str, Any]) -> str:
    if row["gate"] == "open":
        return f"approval {len(row['approvals'])}/{row['quorum']}"
    if row["waits_for"]:
        return "after " + ", ".join(map(str, row["waits_for"]))
    return "release (approved)" if row["gate"] == "approved" else str(row["cause"])


def _deeds(client: GatewayApi) -> dict[str, str]:
    """A short description of what each of the newest held messages wants to do."""
    messages = client.ask("GET", "/v1/messages", state="held", limit=1_000)["items"]
    return {row["message_id"]: action_text(row.get("message"), 60) for row in messages}


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def _sender(message: dict[str, Any] | None) -> str:
    parts = message or {}
    named = (parts.get("identity") or {}).get("agent_id") or (parts.get("sender") or {}).get("entity_id")
    return str(named or "unknown")
