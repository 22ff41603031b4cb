"""What is held, and a person's answer to it: approve, reject, edit, rewrite.

A message is named by its number in the list, by its id, or by a beginning of the id that only one held
message has. Every answer carries the digest of what the list showed, so a change in between is noticed.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from cyclopts import Parameter

from observatory.cli.asking import (
    File,
    Json,
    Note,
    Yes,
    confirm,
    content_of,
    hand,
    one_of,
    path_of,
    tell,
    when,
)
from observatory.cli.door import ANY, Api, Gateway, GatewayRefused
from observatory.cli.tail import summary_of
from observatory.cli.terminal import CommandFailed, show_json, show_table

NAMES = ("sequence_number", "step_id", "message_id")
LISTING = "`observatory holds`"
Digest = Annotated[
    str | None, Parameter(help="The digest you read (from `observatory holds`): refused if it changed since.")
]


def holds(
    message: str | None = None,
    *,
    session: Annotated[str | None, Parameter(help="Only of this session.")] = None,
    agent: Annotated[str | None, Parameter(help="Only of this agent.")] = None,
    gates: Annotated[bool, Parameter(negative=(), help="Only what waits for an answer.")] = False,
    content: Annotated[
        bool, Parameter(negative=(), help="Print a message's present content only, for `edit`.")
    ] = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """What is held: gates first, oldest first; with MESSAGE that one whole."""
    with hand(gateway, json) as door:
        rows = _held(door, session_id=session, agent_id=agent, gates_only="true" if gates else None)
        if message is not None:
            hold = one_of(rows, message, NAMES, LISTING)
            _show(door, hold, content, json)
        elif content:
            raise CommandFailed(f"which message? {LISTING} shows them")
        elif json:
            show_json(rows)
        else:
            _table(rows, _words(door))


def approve(
    message: str, *, digest: Digest = None, note: Note = None, json: Json = False, gateway: Gateway = ANY
) -> None:
    """Let a message pass its gate."""
    with hand(gateway, json) as door:
        hold = _meant(door, message)
        answer = _answer(door, "approve", hold, digest, {"note": note})
    tell(answer, json, _outcome("approved", answer))


def reject(
    message: str,
    *,
    digest: Digest = None,
    note: Note = None,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Never forward a message held at a gate; its agent is told."""
    with hand(gateway, json) as door:
        hold = _meant(door, message)
        confirm(f"Reject {_named(hold)} for good?", yes)
        answer = _answer(door, "reject", hold, digest, {"note": note})
    tell(answer, json, _outcome("rejected, never forwarded", answer))


def edit(
    message: str,
    *,
    file: File = None,
    digest: Digest = None,
    note: Note = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Change a message held at a gate and let it pass; the new content is JSON from --file or stdin."""
    new_content = content_of(file)
    with hand(gateway, json) as door:
        hold = _meant(door, message)
        answer = _answer(door, "edit", hold, digest, {"note": note, "new_content": new_content})
    tell(answer, json, _outcome("edited", answer))


def rewrite(message: str, *, file: File = None, json: Json = False, gateway: Gateway = ANY) -> None:
    """Put new content (JSON from --file or stdin) in the place of a held message; it stays held."""
    new_content = content_of(file)
    with hand(gateway, json) as door:
        hold = _meant(door, message)
        body = {
            "agent_id": hold["agent_id"],
            "original_message_id": hold["message_id"],
            "new_content": new_content,
        }
        answer = door.ask("POST", path_of("sessions", hold["session_id"], "rewrite"), body)
    told = f"{answer['message_id']} has new content and stays held  {answer['intervention_id']}"
    tell(answer, json, told)


def _held(door: Api, **query: Any) -> list[dict[str, Any]]:
    """Stable: the door's order is oldest first."""
    rows = list(door.items("/v1/holds", limit=1_000, **query))
    return sorted(rows, key=lambda row: row["gate"] != "open")


def _meant(door: Api, text: str) -> dict[str, Any]:
    """The held message; one held no more is named too, so that the gateway says what became of it."""
    rows = _held(door)
    try:
        return one_of(rows, text, NAMES, LISTING)
    except CommandFailed:
        if any(str(row["message_id"]).startswith(text) for row in rows):
            raise
        try:
            found: dict[str, Any] = door.ask("GET", path_of("messages", text))
        except GatewayRefused as refusal:
            if refusal.code != 404:
                raise
        else:
            return found | {"agent_id": _sender(found["message"]), "action_digest": None}
        raise


def _answer(
    door: Api, command: str, hold: dict[str, Any], digest: str | None, body: dict[str, Any]
) -> dict[str, Any]:
    seen = digest or hold["action_digest"]
    told = {"agent_id": hold["agent_id"], "message_id": hold["message_id"], "digest": seen, **body}
    answer: dict[str, Any] = door.ask("POST", path_of("sessions", hold["session_id"], command), told)
    return answer


def _outcome(done: str, answer: dict[str, Any]) -> str:
    given, needed = answer.get("approvals") or (), answer.get("needed") or 1
    told = f"{answer['message_id']} is {done}"
    if len(given) < needed and answer.get("state") == "held" and given:
        told += f": {len(given)} of {needed} needed people; it stays held"
    elif answer.get("state") == "held":
        told += ", but still held: its agent is paused, or what it follows is held"
    elif answer.get("state") == "forwarded":
        told += " and forwarded"
    found = answer.get("intervention_id")
    return f"{told}  {found}" if found else told


def _show(door: Api, hold: dict[str, Any], content: bool, json: bool) -> None:
    message = door.ask("GET", path_of("messages", hold["message_id"]))["message"]
    if content:
        show_json(message)
    elif json:
        show_json(hold | {"message": message})
    else:
        show_table(("WHAT", "IS"), [(name, _plain(value)) for name, value in hold.items()])
        show_json(message)


def _table(rows: list[dict[str, Any]], words: dict[str, str]) -> None:
    """The number names a message in every other command: a terminal has no room for two long ids."""
    columns = ["NO", "AGENT", "WAITS FOR", "WHAT", "HELD", "DEADLINE", "SESSION"]
    shown = [
        [
            row["sequence_number"],
            row["agent_id"],
            _waits(row),
            words.get(row["message_id"], ""),
            when(row["held_at"]),
            when(row["deadline"]),
            row["session_id"],
        ]
        for row in rows
    ]
    if not sys.stdout.isatty():
        columns += ["MESSAGE", "REASON"]
        shown = [[*cells, row["message_id"], row["reason"]] for cells, row in zip(shown, rows, strict=True)]
    show_table(columns, shown)


def _waits(row: dict[str, Any]) -> str:
    if row["gate"] == "open":
        return f"approval {len(row['approvals'])}/{row['quorum']}"
    if row["waits_for"]:
        return "number " + ", ".join(map(str, row["waits_for"]))
    return "release (approved)" if row["gate"] == "approved" else str(row["cause"])


def _words(door: Api) -> dict[str, str]:
    """What each of the newest held messages is about, in a few words."""
    found = door.ask("GET", "/v1/messages", state="held", limit=1_000)["items"]
    told = {row["message_id"]: summary_of(row) for row in found}
    return {name: f"{one['what']} {one['intent']}".strip() for name, one in told.items()}


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def _named(hold: dict[str, Any]) -> str:
    return f"{hold['message_id']} of {hold['agent_id']}"


def _sender(message: dict[str, Any] | None) -> str:
    parts = message or {}
    named = (parts.get("identity") or {}).get("agent_id") or (parts.get("sender") or {}).get("entity_id")
    return str(named or "unknown")
