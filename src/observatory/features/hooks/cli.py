"""`observatory hooks`: webhooks that come in, from the terminal.

A secret is printed once, when it is made; one that the sender has chosen is read from a file, never from the
command line, where everybody on the machine could see it.
"""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import Json, Yes, confirm, content_of, hand, one_of, path_of, tell, text_of
from observatory.cli.terminal import Misused, note, say, show_json

HOOKS = "`observatory hooks list`"
TEXT = "As it stands; after = it is an expression over the body."
Found = Annotated[str | None, Parameter(help="An expression (JMESPath) over the body.")]
Given = Annotated[str | None, Parameter(help=TEXT)]
MappingFile = Annotated[str | None, Parameter(help="Read the mapping, JSON, from this file; - is stdin.")]
SecretFile = Annotated[str | None, Parameter(help="Read the secret from this file; without it, one is made.")]

hooks = App(
    name="hooks",
    help="Webhooks in: list, add, change, rotate, disable, enable, remove, calls, call, try.",
)


def _text(given: str) -> Any:
    return {"expression": given[1:]} if given.startswith("=") else given


def _mapping(file: str | None, target: dict[str, str | None], **members: str | None) -> dict[str, Any]:
    named = {kind: _text(name) for kind, name in target.items() if name is not None}
    given = {name: text for name, text in members.items() if text is not None}
    if file is not None:
        if named or given:
            raise Misused("give the mapping in a file, or member by member, not both")
        return content_of(file)
    if len(named) != 1 or "intent" not in given:
        raise Misused("give --intent and one of --agent, --capability and --cluster, or a --mapping file")
    return given | {"intent": _text(given["intent"]), "target": named}


def _hook(door: Api, text: str) -> dict[str, Any]:
    return one_of(door.ask("GET", "/v1/webhooks/in")["items"], text, ("name", "hook_id"), HOOKS)


def _target(row: dict[str, Any]) -> str:
    for kind in ("agent", "capability", "cluster"):
        found = row["mapping"]["target"].get(kind)
        if found is not None:
            return f"{kind} {found if isinstance(found, str) else '=' + found['expression']}"
    return ""


def _secret(file: str | None) -> dict[str, str]:
    return {} if file is None else {"secret": text_of(None, file, "the secret").strip()}


@hooks.command(name="list")
def list_hooks(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """Where the outside may call, and whom it reaches."""
    with hand(gateway, json) as door:
        rows = list(door.items("/v1/webhooks/in"))
    columns: dict[str, Cell] = {
        "HOOK": "hook_id",
        "NAME": "name",
        "SCHEME": "scheme",
        "STATE": "state",
        "TARGET": lambda row: _target(dict(row)),
        "VALID": lambda row: row["signatures"]["valid"],
        "INVALID": lambda row: row["signatures"]["invalid"],
        "MISSING": lambda row: row["signatures"]["missing"],
        "CALLED": at("last_called_at"),
        "URL": "url",
    }
    show_rows(rows, json, columns, "nobody outside may call")


@hooks.command(name="add")
def add_hook(
    name: str,
    *,
    scheme: Annotated[str, Parameter(help="How the sender signs: standard, github, stripe or slack.")],
    intent: Given = None,
    agent: Given = None,
    capability: Given = None,
    cluster: Given = None,
    payload: Found = None,
    session: Found = None,
    when: Found = None,
    delivery_id: Found = None,
    mapping: MappingFile = None,
    secret_file: SecretFile = None,
    window: Annotated[int | None, Parameter(help="Seconds the signed time may lie from ours.")] = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Open a hook. Its secret is printed this once; try the mapping before with `observatory hooks try`."""
    wanted = _mapping(
        mapping,
        {"agent": agent, "capability": capability, "cluster": cluster},
        intent=intent,
        payload=payload,
        session=session,
        when=when,
        delivery_id=delivery_id,
    )
    body: dict[str, Any] = {"name": name, "scheme": scheme, "mapping": wanted} | _secret(secret_file)
    if window is not None:
        body["window_s"] = window
    with hand(gateway, json, "admin") as door:
        answer = door.ask("POST", "/v1/webhooks/in", body)
    _told(answer, json, f"{answer['name']} may be called at {answer['url']}")


def _told(answer: dict[str, Any], json: bool, sentence: str) -> None:
    if json:
        show_json(answer)
        return
    note(sentence)
    note("its secret, shown this once:")
    say(answer["secret"])


@hooks.command(name="change")
def change_hook(
    hook: str,
    *,
    name: Annotated[str | None, Parameter(help="Call it otherwise.")] = None,
    mapping: MappingFile = None,
    window: Annotated[int | None, Parameter(help="Seconds the signed time may lie from ours.")] = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Change a hook, by its id or name; from the next call on."""
    body: dict[str, Any] = {} if mapping is None else {"mapping": content_of(mapping)}
    body |= {key: value for key, value in (("name", name), ("window_s", window)) if value is not None}
    if not body:
        raise Misused("give what is to be otherwise: --name, --mapping or --window")
    _patch(hook, body, "is changed", json, gateway)


@hooks.command(name="disable")
def disable_hook(hook: str, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Take nothing there until it is enabled."""
    _patch(hook, {"state": "disabled"}, "takes nothing until it is enabled", json, gateway)


@hooks.command(name="enable")
def enable_hook(hook: str, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Take calls again."""
    _patch(hook, {"state": "active"}, "takes calls", json, gateway)


def _patch(hook: str, body: dict[str, Any], told: str, json: bool, gateway: Gateway) -> None:
    with hand(gateway, json, "admin") as door:
        found = _hook(door, hook)
        answer = door.ask("PATCH", path_of("webhooks", "in", found["hook_id"]), body)
    tell(answer, json, f"{answer['name']} {told}")


@hooks.command(name="rotate")
def rotate_hook(
    hook: str,
    *,
    secret_file: SecretFile = None,
    overlap: Annotated[int, Parameter(help="Seconds for which the secret before is taken too.")] = 86_400,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Give a hook another secret, printed this once."""
    with hand(gateway, json, "admin") as door:
        found = _hook(door, hook)
        if overlap == 0:
            confirm(f"Refuse at once what {found['name']} signed with the secret of now?", yes)
        body = _secret(secret_file) | {"overlap_s": overlap}
        answer = door.ask("POST", path_of("webhooks", "in", found["hook_id"], "rotate"), body)
    _told(answer, json, f"{answer['name']} has another secret")


@hooks.command(name="remove")
def remove_hook(hook: str, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """Close a hook for good, by its id or name; its log stays."""
    with hand(gateway, json, "admin") as door:
        found = _hook(door, hook)
        confirm(f"Take nothing of {found['name']} any more?", yes)
        answer = door.ask("DELETE", path_of("webhooks", "in", found["hook_id"]))
    tell(answer, json, f"{found['name']} is closed")


@hooks.command(name="calls")
def list_calls(
    hook: Annotated[str | None, Parameter(help="Of this hook, by its id or name.")] = None,
    *,
    signature: Annotated[str | None, Parameter(help="valid, invalid or missing.")] = None,
    limit: Annotated[int, Parameter(help="How many at most (1-1000).")] = 50,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Who called, how the signature was, and what came of it; the newest first."""
    with hand(gateway, json) as door:
        hook_id = None if hook is None else _hook(door, hook)["hook_id"]
        path = "/v1/webhooks/in/calls"
        rows = door.ask("GET", path, hook_id=hook_id, signature=signature, limit=limit)["items"]
    columns: dict[str, Cell] = {
        "CALL": "call_id",
        "AT": at("at"),
        "SIGNATURE": "signature",
        "OUTCOME": "outcome",
        "CALLS": "calls",
        "REPEATS": "repeats",
        "MESSAGE": "message_id",
        "REASON": "reason",
    }
    show_rows(rows, json, columns, "nobody called")


@hooks.command(name="call")
def show_call(call: str, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """One call with the body that was kept of it."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", path_of("webhooks", "in", "calls", call))
    if json:
        show_json(answer)
        return
    for name in ("at", "caller", "signature", "outcome", "reason", "delivery_id", "message_id", "body_hash"):
        note(f"{name}: {'' if answer[name] is None else answer[name]}")
    say(answer["body"] if answer["body"] is not None else "")


@hooks.command(name="try")
def try_hook(
    hook: Annotated[str | None, Parameter(help="The hook whose mapping is meant, by its id or name.")] = None,
    *,
    mapping: MappingFile = None,
    file: Annotated[str, Parameter(help="A body, JSON, as the sender would send it.")],
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """What would become of a body; nothing of it is sent or kept."""
    if (hook is None) == (mapping is None):
        raise Misused("give a hook, or a --mapping file, and not both")
    body: dict[str, Any] = {"body": content_of(file)}
    with hand(gateway, json, "admin") as door:
        if hook is not None:
            body["hook_id"] = _hook(door, hook)["hook_id"]
        else:
            body["mapping"] = content_of(mapping)
        answer = door.ask("POST", "/v1/webhooks/in/test", body)
    if json:
        show_json(answer)
    elif answer["outcome"] == "ignored":
        say("it would be ignored: `when` says it is not for us")
    elif answer["fault"] is not None:
        say(f"it would be refused: {answer['fault']['path']} {answer['fault']['problem']}")
    else:
        say(f"{answer['intent']!r} for {answer['target']['kind']} {answer['target']['name']}")
        show_json(answer["payload"])
