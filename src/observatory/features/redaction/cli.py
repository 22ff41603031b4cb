"""`observatory redaction`, `shred` and `retention`: redaction rules, shredding, retention of payloads."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayOptions
from observatory.cli.prompts import (
    Json,
    Yes,
    api_session,
    confirm,
    confirm_by_typing,
    content_of,
    one_of,
    path_of,
    print_result,
)
from observatory.cli.terminal import InvalidArguments, note, say, show_json, show_table

RULES = "`observatory redaction list`"
File = Annotated[str | None, Parameter(help="Read the message from this file; default: stdin.")]

redaction = App(name="redaction", help="Redaction rules: list, add, remove, try.")


def _body(kind: str, pattern: str | None, path: str | None) -> dict[str, Any]:
    if pattern is not None and path is not None:
        raise InvalidArguments("give either --pattern or --path; without both, NAME must be a built-in kind")
    type_ = "pattern" if pattern is not None else "field" if path is not None else "builtin"
    return {"type": type_, "name": kind, "pattern": pattern, "path": path}


@redaction.command(name="list")
def list_rules(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List the rules in force, and the built-in kinds."""
    with api_session(gateway, json, "admin") as client:
        answer = client.ask("GET", "/v1/redaction")
    if json:
        show_json(answer)
        return
    rows = [
        (row["rule_id"], row["type"], row["name"], row["pattern"] or row["path"] or "", row["note"])
        for row in answer["items"]
    ]
    show_table(("RULE", "TYPE", "NAME", "WHERE", "NOTE"), rows, "no redaction rules")
    note(f"version {answer['version']}; built-in kinds: {', '.join(answer['kinds'])}")


Name = Annotated[str, Parameter(help="A built-in kind (see list), or a name of your own.")]
Pattern = Annotated[str | None, Parameter(help="A regular expression; its repeats must be bounded.")]
Place = Annotated[str | None, Parameter(help="A member of messages, e.g. payload.options.*.label.")]


@redaction.command(name="add")
def add_rule(
    name: Name,
    *,
    pattern: Pattern = None,
    path: Place = None,
    why: Annotated[str, Parameter(name="--note", help="The reason; shown in the list.")] = "",
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Add a rule, effective from the next message. Test it first with `observatory redaction try`."""
    with api_session(gateway, json, "admin") as client:
        answer = client.ask("POST", "/v1/redaction", _body(name, pattern, path) | {"note": why})
    print_result(answer, json, f"{answer['rule_id']}: {answer['name']} added")


@redaction.command(name="remove")
def remove_rule(rule: str, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """End a rule, by its id or name; what was redacted stays redacted."""
    with api_session(gateway, json, "admin") as client:
        found = one_of(client.ask("GET", "/v1/redaction")["items"], rule, ("rule_id", "name"), RULES)
        confirm(f"Stop redacting {found['name']}?", yes)
        answer = client.ask("DELETE", path_of("redaction", found["rule_id"]))
    print_result(answer, json, f"{found['rule_id']} removed")


@redaction.command(name="try")
def try_rule(
    name: Annotated[str | None, Parameter(help="As for add; default: the rules in force.")] = None,
    *,
    pattern: Pattern = None,
    path: Place = None,
    file: File = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Test what would be stored of a message; nothing of it is stored."""
    body: dict[str, Any] = {"message": content_of(file)}
    if name is not None:
        body["rule"] = _body(name, pattern, path)
    with api_session(gateway, json, "admin") as client:
        answer = client.ask("POST", "/v1/redaction/dry-run", body)
    if json:
        show_json(answer)
        return
    rows = [(row["path"], row["kind"], row["times"]) for row in answer["places"]]
    show_table(("PLACE", "KIND", "TIMES"), rows, "nothing would be replaced")
    if not answer["fits"]:
        note("after redaction it is not a valid message")


def shred(
    message: Annotated[str | None, Parameter(help="The message's full id.")] = None,
    *,
    session: Annotated[str | None, Parameter(help="All messages of this session instead.")] = None,
    thoughts: Annotated[str | None, Parameter(help="All thoughts of this session instead.")] = None,
    reason: Annotated[str, Parameter(help="The reason; stored in the record.")],
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Destroy the bytes of a message, of a session, or its thoughts; proofs stay. It cannot be undone."""
    if [message, session, thoughts].count(None) != 2:
        raise InvalidArguments("give exactly one of a message, --session and --thoughts")
    named = message or session or thoughts or ""
    with api_session(gateway, json, "admin") as client:
        confirm_by_typing(f"The bytes of {named} will be destroyed permanently.", named, yes)
        body = {"reason": reason, "confirm": named}
        if message is not None:
            answer = client.ask("POST", "/v1/messages/shred", body | {"message_id": named})
        elif session is not None:
            answer = client.ask("POST", f"{path_of('sessions', named)}/shred", body)
        else:
            answer = client.ask("POST", f"{path_of('sessions', named)}/thoughts/shred", body)
    held = f"; {answer['held']} held for review skipped" if answer["held"] else ""
    by = f" by event {answer['event']}" if answer["event"] is not None else ""
    what = "payload" if thoughts is None else "thought"
    count = f"{answer['shredded']} {what}{'' if answer['shredded'] == 1 else 's'}"
    print_result(answer, json, f"{count} shredded{by}{held}")


def retention(
    days: Annotated[
        str | None, Parameter(help="A number of days, or forever; default: show the setting.")
    ] = None,
    *,
    thoughts: Annotated[bool, Parameter(negative=(), help="Also shred texts of thoughts.")] = False,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Show or set how long payloads are kept; older ones are shredded automatically."""
    with api_session(gateway, json, "admin") as client:
        if days is None:
            answer = client.ask("GET", "/v1/retention")
        else:
            body = {"days": _days(days, yes, thoughts), "thoughts": thoughts}
            answer = client.ask("PUT", "/v1/retention", body)
    days_kept = answer["days"]
    kept = "forever" if days_kept is None else f"for {days_kept} {'day' if days_kept == 1 else 'days'}"
    if json:
        show_json(answer)
    else:
        say(f"payloads{' and thoughts' if answer['thoughts'] else ''} are kept {kept}")


def _days(text: str, yes: bool, thoughts: bool) -> int | None:
    if text == "forever":
        return None
    if not text.isdigit() or not 1 <= int(text) <= 36_500:
        raise InvalidArguments("give a number of days from 1 to 36500, or forever")
    what = "payload and thought" if thoughts else "payload"
    confirm(
        f"Shred every {what} older than {text} {'day' if text == '1' else 'days'}, now and in future?", yes
    )
    return int(text)
