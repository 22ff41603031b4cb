"""`observatory redaction`, `shred` and `retention`: what text is not kept, and what is kept no longer."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Gateway
from observatory.cli.prompts import Json, Yes, confirm, content_of, hand, one_of, path_of, tell, typed
from observatory.cli.terminal import Misused, note, say, show_json, show_table

RULES = "`observatory redaction list`"
File = Annotated[str | None, Parameter(help="Read the message from this file; without it, from stdin.")]

redaction = App(name="redaction", help="Text that is not kept: list, add, remove, try.")


def _body(kind: str, pattern: str | None, path: str | None) -> dict[str, Any]:
    if pattern is not None and path is not None:
        raise Misused("give either --pattern or --path; without both, a kind of ours is meant")
    type_ = "pattern" if pattern is not None else "field" if path is not None else "builtin"
    return {"type": type_, "name": kind, "pattern": pattern, "path": path}


@redaction.command(name="list")
def list_rules(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """The rules in force, and the kinds there are."""
    with hand(gateway, json, "admin") as door:
        answer = door.ask("GET", "/v1/redaction")
    if json:
        show_json(answer)
        return
    shown = [
        (row["rule_id"], row["type"], row["name"], row["pattern"] or row["path"] or "", row["note"])
        for row in answer["items"]
    ]
    show_table(("RULE", "TYPE", "NAME", "WHERE", "NOTE"), shown, "nothing is redacted")
    note(f"version {answer['version']}; kinds: {', '.join(answer['kinds'])}")


Name = Annotated[str, Parameter(help="A kind of ours (see list), or a name of your own for what follows.")]
Pattern = Annotated[str | None, Parameter(help="A regular expression; its repeats must have an end.")]
Place = Annotated[str | None, Parameter(help="A member of messages, e.g. payload.options.*.label.")]


@redaction.command(name="add")
def add_rule(
    name: Name,
    *,
    pattern: Pattern = None,
    path: Place = None,
    why: Annotated[str, Parameter(name="--note", help="Why; it is shown in the list.")] = "",
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Redact from the next message on. Try it before with `observatory redaction try`."""
    with hand(gateway, json, "admin") as door:
        answer = door.ask("POST", "/v1/redaction", _body(name, pattern, path) | {"note": why})
    tell(answer, json, f"{answer['rule_id']}: {answer['name']} is redacted from now on")


@redaction.command(name="remove")
def remove_rule(rule: str, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """End a rule, by its id or name; what was redacted stays so."""
    with hand(gateway, json, "admin") as door:
        found = one_of(door.ask("GET", "/v1/redaction")["items"], rule, ("rule_id", "name"), RULES)
        confirm(f"Keep {found['name']} in messages from now on?", yes)
        answer = door.ask("DELETE", path_of("redaction", found["rule_id"]))
    tell(answer, json, f"{found['rule_id']} rules no more")


@redaction.command(name="try")
def try_rule(
    name: Annotated[str | None, Parameter(help="As for add; without it, the rules in force.")] = None,
    *,
    pattern: Pattern = None,
    path: Place = None,
    file: File = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """What would be kept of a message; nothing of it is kept."""
    body: dict[str, Any] = {"message": content_of(file)}
    if name is not None:
        body["rule"] = _body(name, pattern, path)
    with hand(gateway, json, "admin") as door:
        answer = door.ask("POST", "/v1/redaction/dry-run", body)
    if json:
        show_json(answer)
        return
    shown = [(row["path"], row["kind"], row["times"]) for row in answer["places"]]
    show_table(("PLACE", "KIND", "TIMES"), shown, "nothing would be replaced")
    if not answer["fits"]:
        note("what is left is no message the gateway takes")


def shred(
    message: Annotated[str | None, Parameter(help="The message's id, whole.")] = None,
    *,
    session: Annotated[str | None, Parameter(help="Every message of this session instead.")] = None,
    thoughts: Annotated[str | None, Parameter(help="Every thought of this session instead.")] = None,
    reason: Annotated[str, Parameter(help="Why; it is kept in the record.")],
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Destroy the bytes of a message, of a session's, or its thoughts; proofs stay. It cannot be undone."""
    if [message, session, thoughts].count(None) != 2:
        raise Misused("give a message, or --session, or --thoughts, and one of them only")
    named = message or session or thoughts or ""
    with hand(gateway, json, "admin") as door:
        typed(f"The bytes of {named} will be gone for good.", named, yes)
        body = {"reason": reason, "confirm": named}
        if message is not None:
            answer = door.ask("POST", "/v1/messages/shred", body | {"message_id": named})
        elif session is not None:
            answer = door.ask("POST", f"{path_of('sessions', named)}/shred", body)
        else:
            answer = door.ask("POST", f"{path_of('sessions', named)}/thoughts/shred", body)
    held = f"; {answer['held']} held for a person stay" if answer["held"] else ""
    by = f" by event {answer['event']}" if answer["event"] is not None else ""
    what = "payloads" if thoughts is None else "thoughts"
    tell(answer, json, f"{answer['shredded']} {what} shredded{by}{held}")


def retention(
    days: Annotated[
        str | None, Parameter(help="A number of days, or forever; without it, what is set.")
    ] = None,
    *,
    thoughts: Annotated[bool, Parameter(negative=(), help="Words of thoughts go too.")] = False,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """How long payloads are kept; what is older is shredded by the clock."""
    with hand(gateway, json, "admin") as door:
        if days is None:
            answer = door.ask("GET", "/v1/retention")
        else:
            body = {"days": _days(days, yes, thoughts), "thoughts": thoughts}
            answer = door.ask("PUT", "/v1/retention", body)
    kept = "for ever" if answer["days"] is None else f"for {answer['days']} days"
    if json:
        show_json(answer)
    else:
        say(f"payloads{' and thoughts' if answer['thoughts'] else ''} are kept {kept}")


def _days(text: str, yes: bool, thoughts: bool) -> int | None:
    if text == "forever":
        return None
    if not text.isdigit() or not 1 <= int(text) <= 36_500:
        raise Misused("give a number of days from 1 to 36500, or forever")
    what = "payload and thought" if thoughts else "payload"
    confirm(f"Shred every {what} older than {text} days, now and from now on?", yes)
    return int(text)
