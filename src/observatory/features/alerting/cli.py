"""`observatory alerts` and `observatory scaling`: what is monitored, who is notified, and what is firing."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions
from observatory.cli.prompts import Json, Yes, api_session, confirm, one_of, path_of, print_result, when
from observatory.cli.terminal import note, show_json, show_table

alerts = App(name="alerts", help="Alert rules: open, list, add, defaults, mute, test, remove.")
scaling = App(name="scaling", help="Scaling triggers: list, add, mute, test, remove.")
Row = dict[str, Any]
PATHS = {"alert": "alert-rules", "scaling": "scaling-triggers"}
LISTING = {"alert": "`observatory alerts list`", "scaling": "`observatory scaling list`"}

Rule = Annotated[str, Parameter(help="Its id or name.")]
Name = Annotated[str, Parameter(help="A unique name.")]
Condition = Annotated[str, Parameter(help="The condition to watch; `list` shows them.")]
Scope = Annotated[str | None, Parameter(help="Scope: tenant, cluster, capability, agent, session, …")]
Target = Annotated[
    str | None, Parameter(help="One member of that scope; without it, each member is watched separately.")
]
Threshold = Annotated[float | None, Parameter(help="Fires at this value and above.")]
Below = Annotated[bool, Parameter(help="Fires at the threshold and below.", negative="")]
Lasting = Annotated[int, Parameter(name="--for", help="Seconds the condition must hold before it fires.")]
Cooldown = Annotated[int, Parameter(help="Seconds before the same subject can fire again.")]
To = Annotated[
    list[str] | None, Parameter(help="An endpoint to notify, by id or name; repeatable.", negative=())
]
Severity = Literal["info", "warning", "error", "critical"]


@alerts.command(name="open")
def open_alerts(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Alerts that are firing now, newest first."""
    with api_session(gateway, json) as api:
        rows = list(api.items("/v1/alerts/open"))
    if json:
        show_json({"items": rows, "next_cursor": None})
        return
    rows_shown = [
        (when(row["since"]), row["severity"], row["name"], row["subject"], f"{row['value']} {row['unit']}")
        for row in rows
    ]
    show_table(("SINCE", "SEVERITY", "RULE", "SUBJECT", "VALUE"), rows_shown, "nothing is firing")


@alerts.command(name="list")
def list_rules(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """The rules, and the available conditions."""
    _list("alert", json, gateway)


@alerts.command(name="add")
def add_rule(
    name: Name,
    condition: Condition,
    *,
    scope: Scope = None,
    target: Target = None,
    threshold: Threshold = None,
    below: Below = False,
    window: Annotated[int | None, Parameter(help="Seconds in which events are counted.")] = None,
    lasting: Lasting = 0,
    cooldown: Cooldown = 300,
    severity: Severity | None = None,
    to: To = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Create an alert rule."""
    body = _body(name, condition, scope, target, threshold, below, lasting, cooldown, severity)
    with api_session(gateway, json, "admin") as api:
        body |= {"endpoint_ids": _endpoints(api, to), "window_s": window}
        answer = api.ask("POST", "/v1/alert-rules", body)
    print_result(answer, json, f"{answer['rule_id']}: {answer['name']} created")


@alerts.command
def defaults(*, to: To = None, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Create the recommended rules; those that exist already also notify the given endpoints."""
    with api_session(gateway, json, "admin") as api:
        body = {"endpoint_ids": _endpoints(api, to)}
        answer = api.ask("POST", "/v1/alert-rules/defaults", body)
    if json:
        show_json(answer)
        return
    rows_shown = [(row["rule_id"], row["name"], row["condition"]) for row in answer["items"]]
    show_table(("RULE", "NAME", "WATCHES"), rows_shown, "every recommended rule exists already")


@alerts.command(name="mute")
def mute_rule(rule: Rule, minutes: int, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Send no notifications for this many minutes; 0 unmutes."""
    _mute("alert", rule, minutes, json, gateway)


@alerts.command(name="test")
def try_rule(rule: Rule, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Send a marked test to the rule's endpoints, and show each result."""
    _test("alert", rule, json, gateway)


@alerts.command(name="remove")
def remove_rule(rule: Rule, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Remove the rule; its firing alerts are resolved."""
    _remove("alert", rule, yes, json, gateway)


@scaling.command(name="list")
def list_triggers(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """The triggers, and the available conditions."""
    _list("scaling", json, gateway)


@scaling.command(name="add")
def add_trigger(
    name: Name,
    condition: Condition,
    direction: Literal["up", "down"],
    *,
    amount: Annotated[int, Parameter(help="By how many agents.")] = 1,
    scope: Scope = None,
    target: Target = None,
    threshold: Threshold = None,
    below: Below = False,
    lasting: Lasting = 0,
    cooldown: Cooldown = 300,
    to: To = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Suggest more or fewer agents while a condition holds, again after each cooldown."""
    body = _body(name, condition, scope, target, threshold, below, lasting, cooldown, None)
    with api_session(gateway, json, "admin") as api:
        body |= {"endpoint_ids": _endpoints(api, to), "direction": direction, "amount": amount}
        answer = api.ask("POST", "/v1/scaling-triggers", body)
    print_result(answer, json, f"{answer['rule_id']}: {answer['name']} created")


@scaling.command(name="mute")
def mute_trigger(rule: Rule, minutes: int, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Send no notifications for this many minutes; 0 unmutes."""
    _mute("scaling", rule, minutes, json, gateway)


@scaling.command(name="test")
def try_trigger(rule: Rule, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Send a marked test to the trigger's endpoints, and show each result."""
    _test("scaling", rule, json, gateway)


@scaling.command(name="remove")
def remove_trigger(
    rule: Rule, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY
) -> None:
    """Remove the trigger."""
    _remove("scaling", rule, yes, json, gateway)


def _body(
    name: str,
    condition: str,
    scope: str | None,
    target: str | None,
    threshold: float | None,
    below: bool,
    lasting: int,
    cooldown: int,
    severity: str | None,
) -> Row:
    return {
        "name": name,
        "condition": condition,
        "scope": scope,
        "target": target,
        "threshold": threshold,
        "compare": "below" if below else "above",
        "for_s": lasting,
        "cooldown_s": cooldown,
        "severity": severity,
    }


def _endpoints(api: GatewayApi, names: list[str] | None) -> list[str]:
    if not names:
        return []
    known = api.ask("GET", "/v1/webhooks/out")["items"]
    found = [one_of(known, name, ("endpoint_id", "name"), "`observatory webhooks list`") for name in names]
    return [str(row["endpoint_id"]) for row in found]


def _list(purpose: str, json: bool, gateway: GatewayOptions) -> None:
    with api_session(gateway, json) as api:
        answer = api.ask("GET", f"/v1/{PATHS[purpose]}")
    if json:
        show_json(answer)
        return
    rows_shown = [
        (row["rule_id"], row["name"], row["condition"], _scope_text(row), _threshold_text(row), _state(row))
        for row in answer["items"]
    ]
    show_table(("RULE", "NAME", "WATCHES", "SCOPE", "THRESHOLD", "STATE"), rows_shown, "No rules")
    note(f"conditions: {', '.join(row['condition'] for row in answer['conditions'])}")


def _scope_text(row: Row) -> str:
    return str(row["scope"]) if row["target"] is None else f"{row['scope']} {row['target']}"


def _threshold_text(row: Row) -> str:
    figure = f"{row['threshold']:g}" + (" or below" if row["compare"] == "below" else "")
    return figure if row["direction"] is None else f"{figure}: {row['direction']} {row['amount']}"


def _state(row: Row) -> str:
    if not row["enabled"]:
        return "disabled"
    if row["muted_until"] is not None:
        return f"muted until {when(row['muted_until'])}"
    return f"{row['open']} open" if row["open"] else "ok"


def _find_rule(api: GatewayApi, purpose: str, rule: str) -> Row:
    rows = api.ask("GET", f"/v1/{PATHS[purpose]}")["items"]
    return one_of(rows, rule, ("rule_id", "name"), LISTING[purpose])


def _mute(purpose: str, rule: str, minutes: int, json: bool, gateway: GatewayOptions) -> None:
    with api_session(gateway, json, "admin") as api:
        found = _find_rule(api, purpose, rule)
        path = f"{path_of(PATHS[purpose], found['rule_id'])}/mute"
        answer = api.ask("POST", path, {"minutes": minutes})
    muted = answer["muted_until"]
    state = f"is muted until {when(muted)}" if muted is not None else "is unmuted"
    print_result(answer, json, f"{answer['name']} {state}")


def _test(purpose: str, rule: str, json: bool, gateway: GatewayOptions) -> None:
    with api_session(gateway, json, "admin") as api:
        found = _find_rule(api, purpose, rule)
        answer = api.ask("POST", f"{path_of(PATHS[purpose], found['rule_id'])}/test")
    if json:
        show_json(answer)
        return
    rows_shown = [
        (row["name"] or row["endpoint_id"], row["kind"] or "", "ok" if row["ok"] else "failed", row["detail"])
        for row in answer["outcomes"]
    ]
    show_table(
        ("ENDPOINT", "KIND", "TEST", "DETAIL"), rows_shown, "the rule has no endpoints: nothing was sent"
    )


def _remove(purpose: str, rule: str, yes: bool, json: bool, gateway: GatewayOptions) -> None:
    with api_session(gateway, json, "admin") as api:
        found = _find_rule(api, purpose, rule)
        confirm(f"Remove {found['name']}?", yes)
        answer = api.ask("DELETE", path_of(PATHS[purpose], found["rule_id"]))
    print_result(answer, json, f"{found['name']} removed")
