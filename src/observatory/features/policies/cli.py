"""`observatory policy` and `observatory budget`: rules for messages between agents, and caps on spending."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions, GatewayRefused
from observatory.cli.prompts import Json, Yes, api_session, confirm, one_of, path_of, print_result, when
from observatory.cli.terminal import InvalidArguments, note, say, show_json, show_table

Effect = Literal["allow", "deny", "hold"]
Patterns = Annotated[tuple[str, ...], Parameter(negative=())]
RULES, BUDGETS = "`observatory policy list`", "`observatory budget list`"
LOCKS_OUT = "locks_everyone_out"

policy = App(name="policy", help="Rules between agents: list, add, remove, dry-run.")
budget = App(name="budget", help="Caps on spending: list, set, remove.")


@Parameter(name="*")
@dataclass(frozen=True)
class Rule:
    """The messages a rule matches; an omitted option matches everything, each may be given twice."""

    sender: Annotated[
        Patterns, Parameter(help="An agent, type:T or cluster:C; * at the end matches any rest.")
    ] = ()
    recipient: Annotated[Patterns, Parameter(help="As --sender, or session:S.")] = ()
    type: Annotated[Patterns, Parameter(help="A message type, e.g. decision_log.")] = ()
    tool: Annotated[Patterns, Parameter(help="The tool being called.")] = ()
    cluster: Annotated[Patterns, Parameter(help="The sender's cluster.")] = ()
    quorum: Annotated[int, Parameter(help="For hold: how many people must approve.")] = 1
    deadline: Annotated[int | None, Parameter(help="For hold: seconds until it expires.")] = None
    on_expiry: Annotated[Literal["deny", "approve"], Parameter(help="For hold: what happens on expiry.")] = (
        "deny"
    )

    def body(self, effect: Effect) -> dict[str, Any]:
        patterns = {
            "sender": self.sender,
            "recipient": self.recipient,
            "message_type": self.type,
            "tool": self.tool,
            "cluster": self.cluster,
        }
        return {
            "effect": effect,
            "match": {name: given for name, given in patterns.items() if given},
            "quorum": self.quorum,
            "deadline_s": self.deadline,
            "on_expiry": self.on_expiry,
        }


ALL = Rule()


@policy.command(name="list")
def list_rules(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List the rules in order; deny takes precedence over hold, hold over allow."""
    with api_session(gateway, json) as client:
        answer = client.ask("GET", "/v1/policies")
    if json:
        show_json(answer)
        return
    rows = [
        (
            row["position"],
            row["rule_id"],
            row["effect"] + ("" if row["enabled"] else " (off)"),
            _matches(row["match"]),
            _gate(row),
            row["note"],
        )
        for row in answer["items"]
    ]
    show_table(("NO", "RULE", "EFFECT", "MATCHES", "GATE", "NOTE"), rows, "no rules")
    note(f"default, if no rule matches: {answer['default']}")


@policy.command(name="add")
def add_rule(
    effect: Effect,
    *,
    rule: Rule = ALL,
    position: Annotated[int | None, Parameter(help="1 is first; default: last.")] = None,
    note: Annotated[str, Parameter(help="The reason; shown in the list.")] = "",
    force: Annotated[
        bool, Parameter(negative=(), help="Even if no agent could send a step any more.")
    ] = False,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Add a rule, effective from the next message. Test it first with `observatory policy dry-run`."""
    body = rule.body(effect) | {"position": position, "note": note}
    with api_session(gateway, json) as client:
        if effect == "deny" or (effect == "hold" and not body["match"]):
            confirm(f"{effect.capitalize()} {_matches(body['match'])} from now on?", yes)
        answer = _locked(client, "POST", "/v1/policies", body, force)
    print_result(answer, json, f"{answer['rule_id']} is rule {answer['position']}: {_rule_line(answer)}")


@policy.command(name="remove")
def remove_rule(
    rule: str,
    *,
    force: Annotated[bool, Parameter(negative=(), help="Even if nothing would be allowed any more.")] = False,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Remove a rule, by its id or its number in the list; the record keeps it."""
    with api_session(gateway, json) as client:
        found = one_of(client.ask("GET", "/v1/policies")["items"], rule, ("position", "rule_id"), RULES)
        confirm(f"Remove the rule {_rule_line(found)}?", yes)
        answer = _locked(client, "DELETE", path_of("policies", found["rule_id"]), None, force)
    print_result(answer, json, f"{found['rule_id']} removed")


@policy.command(name="dry-run")
def dry_run(
    effect: Effect,
    *,
    rule: Rule = ALL,
    minutes: Annotated[int, Parameter(help="How far back to look.")] = 60,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Show what a rule would have denied or held in the last minutes; it changes nothing."""
    with api_session(gateway, json) as client:
        body = {"rule": rule.body(effect), "minutes": minutes}
        answer = client.ask("POST", "/v1/policies/dry-run", body)
    if json:
        show_json(answer)
        return
    capped = " (the newest; there were more)" if answer["capped"] else ""
    count = answer["looked_at"]
    span = "minute" if minutes == 1 else f"{minutes} minutes"
    say(
        f"of {count:,} {'message' if count == 1 else 'messages'}{capped} in the last {span}: "
        f"{answer['denied']:,} denied, {answer['held']:,} held"
    )
    if answer["by_agent"]:
        rows = [(row["agent_id"], row["denied"], row["held"]) for row in answer["by_agent"]]
        show_table(("AGENT", "DENIED", "HELD"), rows)


@budget.command(name="list")
def list_budgets(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List budgets and what is spent of them."""
    with api_session(gateway, json) as client:
        rows = list(client.items("/v1/budgets"))
    if json:
        show_json(rows)
        return
    rows_shown = [
        (
            row["budget_id"],
            row["scope"],
            row["target"],
            row["soft"],
            row["hard"],
            row["period"],
            f"{row['spent']} ({row['share']:.0%})" + (f" by {row['spender']}" if row["spender"] else ""),
            row["remaining"],
            when(row["resets_at"]),
        )
        for row in rows
    ]
    columns = ("BUDGET", "SCOPE", "TARGET", "SOFT", "HARD", "PERIOD", "SPENT", "LEFT", "RESETS")
    show_table(columns, rows_shown, "no budgets")


@budget.command(name="set")
def set_budget(
    scope: Literal["tenant", "cluster", "session", "agent"],
    target: Annotated[str | None, Parameter(help="Its name; * gives each session or agent its own.")] = None,
    *,
    soft: Annotated[float | None, Parameter(help="Beyond it, messages are held for review.")] = None,
    hard: Annotated[float | None, Parameter(help="Beyond it, messages are refused.")] = None,
    period: Literal["none", "daily", "monthly"] = "none",
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Set a budget, or change its caps; what was spent stays."""
    if soft is None and hard is None:
        raise InvalidArguments("give --soft, --hard or both; to remove a budget: `observatory budget remove`")
    if not all(math.isfinite(cap) for cap in (soft, hard) if cap is not None):
        raise InvalidArguments("a cap is a finite amount")
    body = {"scope": scope, "target": target, "soft": soft, "hard": hard, "period": period}
    with api_session(gateway, json) as client:
        answer = client.ask("PUT", "/v1/budgets", body)
    print_result(answer, json, f"{answer['budget_id']}: {_caps(answer)}, {answer['spent']} spent so far")


@budget.command(name="remove")
def remove_budget(id_: str, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Remove a budget: that spending is no longer capped. The record keeps it."""
    with api_session(gateway, json) as client:
        found = one_of(list(client.items("/v1/budgets")), id_, ("budget_id",), BUDGETS)
        confirm(f"Remove the budget {found['budget_id']} ({_caps(found)})?", yes)
        answer = client.ask("DELETE", path_of("budgets", found["budget_id"]))
    print_result(answer, json, f"{found['budget_id']} removed")


def _locked(client: GatewayApi, method: str, path: str, body: dict[str, Any] | None, force: bool) -> Any:
    """Adds a hint to the gateway's refusal of a rule that would allow no agent any step."""
    try:
        if body is None:
            return client.ask(method, path, confirm="true" if force else None)
        return client.ask(method, path, body | {"confirm": force})
    except GatewayRefused as refusal:
        if refusal.reason == LOCKS_OUT:
            refusal.args = (f"{refusal} (use --force)",)
        raise


def _matches(match: dict[str, Any]) -> str:
    given = [f"{name} {' or '.join(patterns)}" for name, patterns in match.items() if patterns]
    return ", ".join(given) or "everything"


def _gate(row: dict[str, Any]) -> str:
    if row["effect"] != "hold":
        return ""
    count = f"{row['quorum']} approval{'' if row['quorum'] == 1 else 's'}"
    return count if row["deadline_s"] is None else f"{count}, {row['deadline_s']} s, then {row['on_expiry']}"


def _rule_line(row: dict[str, Any]) -> str:
    return f"{row['effect']} {_matches(row['match'])}"


def _caps(row: dict[str, Any]) -> str:
    caps = [f"{name} {row[name]}" for name in ("soft", "hard") if row[name] is not None]
    period = "" if row["period"] == "none" else f" {row['period']}"
    return f"{row['scope']} {row['target']}: {', '.join(caps)}{period}"
