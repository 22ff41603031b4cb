"""`observatory alerts` and `observatory scaling`: what is watched, who is told, what is open."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway
from observatory.cli.prompts import Json, Yes, confirm, hand, one_of, path_of, tell, when
from observatory.cli.terminal import note, show_json, show_table

alerts = App(name="alerts", help="Alert rules: open, list, add, defaults, mute, test, remove.")
scaling = App(name="scaling", help="Scaling triggers: list, add, mute, test, remove.")
Row = dict[str, Any]
PATHS = {"alert": "alert-rules", "scaling": "scaling-triggers"}
LISTING = {"alert": "`observatory alerts list`", "scaling": "`observatory scaling list`"}

Rule = Annotated[str, Parameter(help="Its id or name.")]
Name = Annotated[str, Parameter(help="A name of your own.")]
Condition = Annotated[str, Parameter(help="What is watched: a condition of the list.")]
Scope = Annotated[str | None, Parameter(help="Whose: tenant, cluster, capability, agent, session, …")]
Target = Annotated[str | None, Parameter(help="One of that scope; without it each is watched by itself.")]
Threshold = Annotated[float | None, Parameter(help="Told from this figure on.")]
Below = Annotated[bool, Parameter(help="Told at this figure and below it.", negative="")]
Lasting = Annotated[int, Parameter(name="--for", help="Seconds a level must last.")]
Cooldown = Annotated[int, Parameter(help="Seconds in which nothing is told again of the same subject.")]
To = Annotated[
    list[str] | None, Parameter(help="An endpoint that is told, by id or name; repeatable.", negative=())
]
Severity = Literal["info", "warning", "error", "critical"]


@alerts.command(name="open")
def open_alerts(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """What rules fire for now, newest first."""
    with hand(gateway, json) as door:
        rows = list(door.items("/v1/alerts/open"))
    if json:
        show_json({"items": rows, "next_cursor": None})
        return
    shown = [
        (when(row["since"]), row["severity"], row["name"], row["subject"], f"{row['value']} {row['unit']}")
        for row in rows
    ]
    show_table(("SINCE", "SEVERITY", "RULE", "SUBJECT", "VALUE"), shown, "nothing is amiss")


@alerts.command(name="list")
def list_rules(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """The rules, and what can be watched."""
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
    gateway: Gateway = ANY,
) -> None:
    """Watch something from now on."""
    body = _body(name, condition, scope, target, threshold, below, lasting, cooldown, severity)
    with hand(gateway, json, "admin") as door:
        body |= {"endpoint_ids": _endpoints(door, to), "window_s": window}
        answer = door.ask("POST", "/v1/alert-rules", body)
    tell(answer, json, f"{answer['rule_id']}: {answer['name']} is watched from now on")


@alerts.command
def defaults(*, to: To = None, json: Json = False, gateway: Gateway = ANY) -> None:
    """Make the rules every gateway should have; those that are there are sent to the endpoints too."""
    with hand(gateway, json, "admin") as door:
        body = {"endpoint_ids": _endpoints(door, to)}
        answer = door.ask("POST", "/v1/alert-rules/defaults", body)
    if json:
        show_json(answer)
        return
    shown = [(row["rule_id"], row["name"], row["condition"]) for row in answer["items"]]
    show_table(("RULE", "NAME", "WATCHES"), shown, "all of it is watched already")


@alerts.command(name="mute")
def mute_rule(rule: Rule, minutes: int, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Tell nobody outside for so many minutes; 0 ends it."""
    _mute("alert", rule, minutes, json, gateway)


@alerts.command(name="test")
def try_rule(rule: Rule, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Send a marked test to the rule's endpoints, and tell how each took it."""
    _test("alert", rule, json, gateway)


@alerts.command(name="remove")
def remove_rule(rule: Rule, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """Watch it no more; what is open of it is resolved."""
    _remove("alert", rule, yes, json, gateway)


@scaling.command(name="list")
def list_triggers(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """The triggers, and what can be watched."""
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
    gateway: Gateway = ANY,
) -> None:
    """Suggest more or fewer agents when something holds, again after each cool-down."""
    body = _body(name, condition, scope, target, threshold, below, lasting, cooldown, None)
    with hand(gateway, json, "admin") as door:
        body |= {"endpoint_ids": _endpoints(door, to), "direction": direction, "amount": amount}
        answer = door.ask("POST", "/v1/scaling-triggers", body)
    tell(answer, json, f"{answer['rule_id']}: {answer['name']} triggers from now on")


@scaling.command(name="mute")
def mute_trigger(rule: Rule, minutes: int, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Tell nobody outside for so many minutes; 0 ends it."""
    _mute("scaling", rule, minutes, json, gateway)


@scaling.command(name="test")
def try_trigger(rule: Rule, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Send a marked test to the trigger's endpoints, and tell how each took it."""
    _test("scaling", rule, json, gateway)


@scaling.command(name="remove")
def remove_trigger(rule: Rule, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """Trigger no more."""
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


def _endpoints(door: Api, names: list[str] | None) -> list[str]:
    if not names:
        return []
    known = door.ask("GET", "/v1/webhooks/out")["items"]
    found = [one_of(known, name, ("endpoint_id", "name"), "`observatory webhooks list`") for name in names]
    return [str(row["endpoint_id"]) for row in found]


def _list(purpose: str, json: bool, gateway: Gateway) -> None:
    with hand(gateway, json) as door:
        answer = door.ask("GET", f"/v1/{PATHS[purpose]}")
    if json:
        show_json(answer)
        return
    shown = [
        (row["rule_id"], row["name"], row["condition"], _whose(row), _figure(row), _state(row))
        for row in answer["items"]
    ]
    show_table(("RULE", "NAME", "WATCHES", "OF", "FROM", "STATE"), shown, "nothing is watched")
    note(f"conditions: {', '.join(row['condition'] for row in answer['conditions'])}")


def _whose(row: Row) -> str:
    return str(row["scope"]) if row["target"] is None else f"{row['scope']} {row['target']}"


def _figure(row: Row) -> str:
    figure = f"{row['threshold']:g}" + (" and below" if row["compare"] == "below" else "")
    return figure if row["direction"] is None else f"{figure}: {row['direction']} {row['amount']}"


def _state(row: Row) -> str:
    if not row["enabled"]:
        return "disabled"
    if row["muted_until"] is not None:
        return f"muted until {when(row['muted_until'])}"
    return f"{row['open']} open" if row["open"] else "ok"


def _found(door: Api, purpose: str, rule: str) -> Row:
    rows = door.ask("GET", f"/v1/{PATHS[purpose]}")["items"]
    return one_of(rows, rule, ("rule_id", "name"), LISTING[purpose])


def _mute(purpose: str, rule: str, minutes: int, json: bool, gateway: Gateway) -> None:
    with hand(gateway, json, "admin") as door:
        found = _found(door, purpose, rule)
        path = f"{path_of(PATHS[purpose], found['rule_id'])}/mute"
        answer = door.ask("POST", path, {"minutes": minutes})
    muted = answer["muted_until"]
    said = f"is muted until {when(muted)}" if muted is not None else "is heard again"
    tell(answer, json, f"{answer['name']} {said}")


def _test(purpose: str, rule: str, json: bool, gateway: Gateway) -> None:
    with hand(gateway, json, "admin") as door:
        found = _found(door, purpose, rule)
        answer = door.ask("POST", f"{path_of(PATHS[purpose], found['rule_id'])}/test")
    if json:
        show_json(answer)
        return
    shown = [
        (row["name"] or row["endpoint_id"], row["kind"] or "", "ok" if row["ok"] else "failed", row["detail"])
        for row in answer["outcomes"]
    ]
    show_table(("ENDPOINT", "KIND", "TEST", "HOW"), shown, "the rule names no endpoint: nobody was told")


def _remove(purpose: str, rule: str, yes: bool, json: bool, gateway: Gateway) -> None:
    with hand(gateway, json, "admin") as door:
        found = _found(door, purpose, rule)
        confirm(f"Watch {found['name']} no more?", yes)
        answer = door.ask("DELETE", path_of(PATHS[purpose], found["rule_id"]))
    tell(answer, json, f"{found['name']} is removed")
