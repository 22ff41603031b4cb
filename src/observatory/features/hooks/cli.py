"""`observatory hooks`: manage inbound webhooks.

A secret is printed once, when it is created; one chosen by the sender is read from a file, never from the
command line, where other users of the machine could see it.
"""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import (
    Json,
    Yes,
    api_session,
    confirm,
    content_of,
    one_of,
    path_of,
    print_result,
    text_of,
)
from observatory.cli.terminal import InvalidArguments, note, say, show_json

HOOKS = "`observatory hooks list`"
TEXT = "A literal; after = it is an expression over the body."
ExpressionOption = Annotated[str | None, Parameter(help="An expression (JMESPath) over the body.")]
TextOption = Annotated[str | None, Parameter(help=TEXT)]
MappingFile = Annotated[str | None, Parameter(help="Read the mapping, JSON, from this file; - is stdin.")]
SecretFile = Annotated[str | None, Parameter(help="Read the secret from this file; default: generate one.")]

hooks = App(
    name="hooks",
    help="Inbound webhooks: list, add, change, rotate, disable, enable, remove, calls, call, try.",
)


def _text(given: str) -> Any:
    return {"expression": given[1:]} if given.startswith("=") else given


def _mapping(file: str | None, target: dict[str, str | None], **members: str | None) -> dict[str, Any]:
    named = {kind: _text(name) for kind, name in target.items() if name is not None}
    given = {name: text for name, text in members.items() if text is not None}
    if file is not None:
        if named or given:
            raise InvalidArguments("give the mapping in a file, or member by member, not both")
        return content_of(file)
    if len(named) != 1 or "intent" not in given:
        raise InvalidArguments(
            "give --intent and one of --agent, --capability and --cluster, or a --mapping file"
        )
    return given | {"intent": _text(given["intent"]), "target": named}


def _hook(client: GatewayApi, text: str) -> dict[str, Any]:
    return one_of(client.ask("GET", "/v1/webhooks/in")["items"], text, ("name", "hook_id"), HOOKS)


def _target(row: dict[str, Any]) -> str:
    for kind in ("agent", "capability", "cluster"):
        found = row["mapping"]["target"].get(kind)
        if found is not None:
            return f"{kind} {found if isinstance(found, str) else '=' + found['expression']}"
    return ""


def _secret(file: str | None) -> dict[str, str]:
    return {} if file is None else {"secret": text_of(None, file, "the secret").strip()}


@hooks.command(name="list")
def list_hooks(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List inbound webhooks and their targets."""
    with api_session(gateway, json) as client:
        rows = list(client.items("/v1/webhooks/in"))
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
    show_rows(rows, json, columns, "no webhooks")


@hooks.command(name="add")
def add_hook(
    name: str,
    *,
    scheme: Annotated[str, Parameter(help="How the sender signs: standard, github, stripe or slack.")],
    intent: TextOption = None,
    agent: TextOption = None,
    capability: TextOption = None,
    cluster: TextOption = None,
    payload: ExpressionOption = None,
    session: ExpressionOption = None,
    when: ExpressionOption = None,
    delivery_id: ExpressionOption = None,
    mapping: MappingFile = None,
    secret_file: SecretFile = None,
    window: Annotated[
        int | None, Parameter(help="Seconds the signed time may differ from the gateway's.")
    ] = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Add an inbound webhook. Its secret is printed once; test its mapping first with `hooks try`."""
    whole = _mapping(
        mapping,
        {"agent": agent, "capability": capability, "cluster": cluster},
        intent=intent,
        payload=payload,
        session=session,
        when=when,
        delivery_id=delivery_id,
    )
    body: dict[str, Any] = {"name": name, "scheme": scheme, "mapping": whole} | _secret(secret_file)
    if window is not None:
        body["window_s"] = window
    with api_session(gateway, json, "admin") as client:
        answer = client.ask("POST", "/v1/webhooks/in", body)
    _show_secret(answer, json, f"added {answer['name']} at {answer['url']}")


def _show_secret(answer: dict[str, Any], json: bool, sentence: str) -> None:
    if json:
        show_json(answer)
        return
    note(sentence)
    note("secret, shown only once:")
    say(answer["secret"])


@hooks.command(name="change")
def change_hook(
    hook: str,
    *,
    name: Annotated[str | None, Parameter(help="A new name.")] = None,
    mapping: MappingFile = None,
    window: Annotated[
        int | None, Parameter(help="Seconds the signed time may differ from the gateway's.")
    ] = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Change a webhook, by its id or name; effective from the next call."""
    body: dict[str, Any] = {} if mapping is None else {"mapping": content_of(mapping)}
    body |= {key: value for key, value in (("name", name), ("window_s", window)) if value is not None}
    if not body:
        raise InvalidArguments("give what to change: --name, --mapping or --window")
    _patch(hook, body, "changed", json, gateway)


@hooks.command(name="disable")
def disable_hook(hook: str, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Refuse calls of a webhook until it is enabled."""
    _patch(hook, {"state": "disabled"}, "disabled", json, gateway)


@hooks.command(name="enable")
def enable_hook(hook: str, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Accept calls of a webhook again."""
    _patch(hook, {"state": "active"}, "enabled", json, gateway)


def _patch(hook: str, body: dict[str, Any], result: str, json: bool, gateway: GatewayOptions) -> None:
    with api_session(gateway, json, "admin") as client:
        found = _hook(client, hook)
        answer = client.ask("PATCH", path_of("webhooks", "in", found["hook_id"]), body)
    print_result(answer, json, f"{answer['name']} {result}")


@hooks.command(name="rotate")
def rotate_hook(
    hook: str,
    *,
    secret_file: SecretFile = None,
    overlap: Annotated[int, Parameter(help="Seconds for which the previous secret stays valid.")] = 86_400,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Give a webhook a new secret, printed once."""
    with api_session(gateway, json, "admin") as client:
        found = _hook(client, hook)
        if overlap == 0:
            confirm(f"Invalidate the current secret of {found['name']} immediately?", yes)
        body = _secret(secret_file) | {"overlap_s": overlap}
        answer = client.ask("POST", path_of("webhooks", "in", found["hook_id"], "rotate"), body)
    _show_secret(answer, json, f"{answer['name']} has a new secret")


@hooks.command(name="remove")
def remove_hook(hook: str, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Remove a webhook permanently, by its id or name; its log is kept."""
    with api_session(gateway, json, "admin") as client:
        found = _hook(client, hook)
        confirm(f"Remove {found['name']} permanently?", yes)
        answer = client.ask("DELETE", path_of("webhooks", "in", found["hook_id"]))
    print_result(answer, json, f"{found['name']} removed")


@hooks.command(name="calls")
def list_calls(
    hook: Annotated[str | None, Parameter(help="Only this webhook, by its id or name.")] = None,
    *,
    signature: Annotated[str | None, Parameter(help="valid, invalid or missing.")] = None,
    limit: Annotated[int, Parameter(help="How many at most (1-1000).")] = 50,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """List calls with their signature and outcome, the newest first."""
    with api_session(gateway, json) as client:
        hook_id = None if hook is None else _hook(client, hook)["hook_id"]
        path = "/v1/webhooks/in/calls"
        rows = client.ask("GET", path, hook_id=hook_id, signature=signature, limit=limit)["items"]
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
    show_rows(rows, json, columns, "no calls")


@hooks.command(name="call")
def show_call(call: str, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Show one call with its stored body."""
    with api_session(gateway, json) as client:
        answer = client.ask("GET", path_of("webhooks", "in", "calls", call))
    if json:
        show_json(answer)
        return
    for name in ("at", "caller", "signature", "outcome", "reason", "delivery_id", "message_id", "body_hash"):
        note(f"{name}: {'' if answer[name] is None else answer[name]}")
    say(answer["body"] if answer["body"] is not None else "")


@hooks.command(name="try")
def try_hook(
    hook: Annotated[
        str | None, Parameter(help="The webhook whose mapping to test, by its id or name.")
    ] = None,
    *,
    mapping: MappingFile = None,
    file: Annotated[str, Parameter(help="A JSON body as the sender would send it.")],
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Test what a body would become; nothing is sent or stored."""
    if (hook is None) == (mapping is None):
        raise InvalidArguments("give a hook or a --mapping file, not both")
    body: dict[str, Any] = {"body": content_of(file)}
    with api_session(gateway, json, "admin") as client:
        if hook is not None:
            body["hook_id"] = _hook(client, hook)["hook_id"]
        else:
            body["mapping"] = content_of(mapping)
        answer = client.ask("POST", "/v1/webhooks/in/test", body)
    if json:
        show_json(answer)
    elif answer["outcome"] == "ignored":
        say("it would be ignored: `when` does not match")
    elif answer["fault"] is not None:
        say(f"it would be refused: {answer['fault']['path']} {answer['fault']['problem']}")
    else:
        say(f"{answer['intent']!r} for {answer['target']['kind']} {answer['target']['name']}")
        show_json(answer["payload"])
