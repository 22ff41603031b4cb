"""What is held, and a person's answer to it: approve, reject, edit, rewrite.

A message is named by its number in the list, by its id, or by a beginning of the id that only one held
message has. Every answer carries the digest of what the list showed, so a change in between is noticed.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway, GatewayRefused
from observatory.cli.prompts import (
    File,
    Json,
    Note,
    Yes,
    confirm,
    content_of,
    hand,
    must_be_asked,
    one_of,
    path_of,
    perhaps,
    session_of,
    tell,
    when,
)
from observatory.cli.terminal import CommandFailed, show_json, show_table
from observatory.cli.terminal import note as remark
from observatory.cli.text import age, deed_of
from observatory.features.kill_switch.descriptions import engaged, scope_of, stopping

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
        session = session and session_of(door, session)
        rows = _held(door, session_id=session, agent_id=agent, gates_only="true" if gates else None)
        if message is not None:
            hold = one_of(rows, message, NAMES, LISTING)
            _show(door, hold, content, json)
        elif content:
            raise CommandFailed(f"which message? {LISTING} shows them")
        elif json:
            show_json(rows)
        else:
            _table(rows, _deeds(door))
            for row in engaged(door):
                remark(f"{row['kill_id']} stops {scope_of(row)}: {row['reason']}")


def approve(
    message: str, *, digest: Digest = None, note: Note = None, json: Json = False, gateway: Gateway = ANY
) -> None:
    """Let a message pass its gate."""
    _let_pass(message, "approve", "approved", digest, {"note": note}, json, gateway)


def reject(
    message: str,
    *,
    digest: Digest = None,
    note: Note = None,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Never forward a message held at a gate, nor what follows from it; its agent is told."""
    with hand(gateway, json) as door:
        hold = _meant(door, message)
        followers = _followers(door, hold)
        also = f" and {followers} that follow from it" if followers else ""
        question = f"Reject {hold['message_id']} of {hold['agent_id']}{also} for good?"
        if not yes:
            must_be_asked(question, yes)
            remark(f"{hold['agent_id']}: {deed_of(_content(door, hold))}")
        confirm(question, yes)
        answer = _answer(door, "reject", hold, digest, {"note": note})
    others = (answer.get("rejected") or 1) - 1
    told = f"rejected, and {others} that followed from it; never forwarded"
    tell(answer, json, _done(told if others else "rejected, never forwarded", answer))


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
    body = {"note": note, "new_content": content_of(file)}
    _let_pass(message, "edit", "edited", digest, body, json, gateway)


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


def _let_pass(
    message: str,
    command: str,
    done: str,
    digest: str | None,
    body: dict[str, Any],
    json: bool,
    gateway: Gateway,
) -> None:
    with hand(gateway, json) as door:
        hold = _meant(door, message)
        answer = _answer(door, command, hold, digest, body)
        told = () if json else (_outcome(door, done, hold, answer), _passed(door, hold))
    tell(answer, json, *told)


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


def _outcome(door: Api, done: str, hold: dict[str, Any], answer: dict[str, Any]) -> str:
    given, needed = answer.get("approvals") or (), answer.get("needed") or 1
    if len(given) < needed and answer.get("state") == "held" and given:
        done += f": {len(given)} of {needed} needed people; it stays held"
    elif answer.get("state") == "held":
        done += f", but still held: {perhaps(lambda: _keeping(door, hold), 'see `observatory holds`')}"
    elif answer.get("state") == "forwarded":
        done += " and forwarded"
    return _done(done, answer)


def _done(done: str, answer: dict[str, Any]) -> str:
    told, found = f"{answer['message_id']} is {done}", answer.get("intervention_id")
    return f"{told}  {found}" if found else told


def _keeping(door: Api, hold: dict[str, Any]) -> str:
    """Why what was approved is held nevertheless."""
    stop = stopping(door, hold["agent_id"])
    if stop is not None:
        return f"{stop}; it leaves when that is released"
    numbers = {row["sequence_number"] for row in _held(door, session_id=hold["session_id"])}
    before = [number for number in hold.get("waits_for") or () if number in numbers]
    if before:
        return f"it follows {', '.join(map(str, before))}, held too"
    return "its agent is paused, or earlier messages of it are held"


def _passed(door: Api, hold: dict[str, Any]) -> str:
    return "  " + perhaps(lambda: deed_of(_content(door, hold)), "(it cannot be shown now)")


def _content(door: Api, hold: dict[str, Any]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = door.ask("GET", path_of("messages", hold["message_id"]))["message"]
    return found


def _followers(door: Api, hold: dict[str, Any]) -> int:
    """How many held messages hang on this one, directly or not; the list's order has ancestors first."""
    hanging = {hold["sequence_number"]}
    rows = _held(door, session_id=hold["session_id"])
    for row in sorted(rows, key=lambda row: int(row["sequence_number"])):
        if hanging.intersection(row["waits_for"]):
            hanging.add(row["sequence_number"])
    return len(hanging) - 1


def _show(door: Api, hold: dict[str, Any], content: bool, json: bool) -> None:
    message = _content(door, hold)
    if content:
        show_json(message)
    elif json:
        show_json(hold | {"message": message})
    else:
        show_table(("WHAT", "IS"), [(name, _plain(value)) for name, value in hold.items()])
        show_json(message)


def _table(rows: list[dict[str, Any]], deeds: dict[str, str]) -> None:
    """The number names a message in every other command: a terminal has no room for two long ids."""
    columns = ["NO", "AGENT", "WAITS FOR", "WHAT", "AGE", "DEADLINE", "SESSION"]
    shown = [
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
        shown = [cells + added for cells, added in zip(shown, more, strict=True)]
    show_table(columns, shown, "nothing is held")


def _waits(row: dict[str, Any]) -> str:
    if row["gate"] == "open":
        return f"approval {len(row['approvals'])}/{row['quorum']}"
    if row["waits_for"]:
        return "after " + ", ".join(map(str, row["waits_for"]))
    return "release (approved)" if row["gate"] == "approved" else str(row["cause"])


def _deeds(door: Api) -> dict[str, str]:
    """What each of the newest held messages wants to do, in a few words."""
    found = door.ask("GET", "/v1/messages", state="held", limit=1_000)["items"]
    return {row["message_id"]: deed_of(row.get("message"), 60) for row in found}


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def _sender(message: dict[str, Any] | None) -> str:
    parts = message or {}
    named = (parts.get("identity") or {}).get("agent_id") or (parts.get("sender") or {}).get("entity_id")
    return str(named or "unknown")
