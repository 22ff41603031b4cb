"""`observatory policy` and `observatory budget`: rules between agents, and caps on what they spend."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway, GatewayRefused
from observatory.cli.prompts import Json, Yes, confirm, hand, one_of, path_of, tell, when
from observatory.cli.terminal import Misused, note, say, show_json, show_table

Effect = Literal["allow", "deny", "hold"]
Words = Annotated[tuple[str, ...], Parameter(negative=())]
RULES, BUDGETS = "`observatory policy list`", "`observatory budget list`"
LOCKS_OUT = "locks_everyone_out"

policy = App(name="policy", help="Rules between agents: list, add, remove, dry-run.")
budget = App(name="budget", help="Caps on spending: list, set, remove.")


@Parameter(name="*")
@dataclass(frozen=True)
class Rule:
    """Which messages a rule is about; what is left out matches everything, and each may be given twice."""

    sender: Annotated[
        Words, Parameter(help="An agent, type:T or cluster:C; * at the end matches any rest.")
    ] = ()
    recipient: Annotated[Words, Parameter(help="As --sender, or session:S.")] = ()
    type: Annotated[Words, Parameter(help="A message type, e.g. decision_log.")] = ()
    tool: Annotated[Words, Parameter(help="The tool that is called.")] = ()
    cluster: Annotated[Words, Parameter(help="The sender's cluster.")] = ()
    quorum: Annotated[int, Parameter(help="Of hold: how many people must approve.")] = 1
    deadline: Annotated[int | None, Parameter(help="Of hold: seconds until it expires.")] = None
    on_expiry: Annotated[Literal["deny", "approve"], Parameter(help="Of hold: what happens then.")] = "deny"

    def body(self, effect: Effect) -> dict[str, Any]:
        words = {
            "sender": self.sender,
            "recipient": self.recipient,
            "message_type": self.type,
            "tool": self.tool,
            "cluster": self.cluster,
        }
        return {
            "effect": effect,
            "match": {name: given for name, given in words.items() if given},
            "quorum": self.quorum,
            "deadline_s": self.deadline,
            "on_expiry": self.on_expiry,
        }


ALL = Rule()


@policy.command(name="list")
def list_rules(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """The rules in their order; deny wins over hold, hold over allow."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", "/v1/policies")
    if json:
        show_json(answer)
        return
    shown = [
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
    show_table(("NO", "RULE", "EFFECT", "MATCHES", "GATE", "NOTE"), shown, "there are no rules")
    note(f"what no rule speaks of: {answer['default']}")


@policy.command(name="add")
def add_rule(
    effect: Effect,
    *,
    rule: Rule = ALL,
    position: Annotated[int | None, Parameter(help="1 is first; without it, last.")] = None,
    note: Annotated[str, Parameter(help="Why; it is shown in the list.")] = "",
    force: Annotated[
        bool, Parameter(negative=(), help="Even if then no agent can take a step any more.")
    ] = False,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Add a rule; it counts for the next message. Try it before with `observatory policy dry-run`."""
    body = rule.body(effect) | {"position": position, "note": note}
    with hand(gateway, json) as door:
        if effect == "deny" or (effect == "hold" and not body["match"]):
            confirm(f"{effect.capitalize()} {_matches(body['match'])} from now on?", yes)
        answer = _locked(door, "POST", "/v1/policies", body, force)
    tell(answer, json, f"{answer['rule_id']} is rule {answer['position']}: {_rule_line(answer)}")


@policy.command(name="remove")
def remove_rule(
    rule: str,
    *,
    force: Annotated[bool, Parameter(negative=(), help="Even if then nothing is allowed any more.")] = False,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Remove a rule (its id, or its number in the list); the record keeps it."""
    with hand(gateway, json) as door:
        found = one_of(door.ask("GET", "/v1/policies")["items"], rule, ("position", "rule_id"), RULES)
        confirm(f"Remove the rule {_rule_line(found)}?", yes)
        answer = _locked(door, "DELETE", path_of("policies", found["rule_id"]), None, force)
    tell(answer, json, f"{found['rule_id']} rules no more")


@policy.command(name="dry-run")
def dry_run(
    effect: Effect,
    *,
    rule: Rule = ALL,
    minutes: Annotated[int, Parameter(help="How far back to look.")] = 60,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """What a rule would have denied or held in the last minutes; it changes nothing."""
    with hand(gateway, json) as door:
        body = {"rule": rule.body(effect), "minutes": minutes}
        answer = door.ask("POST", "/v1/policies/dry-run", body)
    if json:
        show_json(answer)
        return
    capped = " (the newest; there were more)" if answer["capped"] else ""
    say(
        f"of {answer['looked_at']:,} messages{capped} in the last {minutes} minutes: "
        f"{answer['denied']:,} denied, {answer['held']:,} held"
    )
    if answer["by_agent"]:
        shown = [(row["agent_id"], row["denied"], row["held"]) for row in answer["by_agent"]]
        show_table(("AGENT", "DENIED", "HELD"), shown)


@budget.command(name="list")
def list_budgets(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """Caps and what is spent of them."""
    with hand(gateway, json) as door:
        rows = list(door.items("/v1/budgets"))
    if json:
        show_json(rows)
        return
    shown = [
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
    show_table(columns, shown, "there are no budgets")


@budget.command(name="set")
def set_budget(
    scope: Literal["tenant", "cluster", "session", "agent"],
    target: Annotated[str | None, Parameter(help="Which one; * gives each session or agent its own.")] = None,
    *,
    soft: Annotated[float | None, Parameter(help="Beyond it a person must look.")] = None,
    hard: Annotated[float | None, Parameter(help="Beyond it messages are refused.")] = None,
    period: Literal["none", "daily", "monthly"] = "none",
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Set a budget, or give it new caps; what was spent stays."""
    if soft is None and hard is None:
        raise Misused("give --soft, --hard or both; to end a budget: `observatory budget remove`")
    if not all(math.isfinite(cap) for cap in (soft, hard) if cap is not None):
        raise Misused("a cap is a finite amount")
    body = {"scope": scope, "target": target, "soft": soft, "hard": hard, "period": period}
    with hand(gateway, json) as door:
        answer = door.ask("PUT", "/v1/budgets", body)
    tell(answer, json, f"{answer['budget_id']}: {_caps(answer)}, {answer['spent']} spent so far")


@budget.command(name="remove")
def remove_budget(id_: str, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """Remove a budget: nothing caps that spending any more. The record keeps it."""
    with hand(gateway, json) as door:
        found = one_of(list(door.items("/v1/budgets")), id_, ("budget_id",), BUDGETS)
        confirm(f"Remove the budget {found['budget_id']} ({_caps(found)})?", yes)
        answer = door.ask("DELETE", path_of("budgets", found["budget_id"]))
    tell(answer, json, f"{found['budget_id']} caps no more")


def _locked(door: Api, method: str, path: str, body: dict[str, Any] | None, force: bool) -> Any:
    """The gateway refuses what would leave no agent a step, unless it is told that this is meant."""
    try:
        if body is None:
            return door.ask(method, path, confirm="true" if force else None)
        return door.ask(method, path, body | {"confirm": force})
    except GatewayRefused as refusal:
        if refusal.reason == LOCKS_OUT:
            refusal.args = (f"{refusal} (here with --force)",)
        raise


def _matches(match: dict[str, Any]) -> str:
    given = [f"{name} {' or '.join(words)}" for name, words in match.items() if words]
    return ", ".join(given) or "everything"


def _gate(row: dict[str, Any]) -> str:
    if row["effect"] != "hold":
        return ""
    told = f"{row['quorum']} approve"
    return told if row["deadline_s"] is None else f"{told}, {row['deadline_s']} s, then {row['on_expiry']}"


def _rule_line(row: dict[str, Any]) -> str:
    return f"{row['effect']} {_matches(row['match'])}"


def _caps(row: dict[str, Any]) -> str:
    caps = [f"{name} {row[name]}" for name in ("soft", "hard") if row[name] is not None]
    period = "" if row["period"] == "none" else f" {row['period']}"
    return f"{row['scope']} {row['target']}: {', '.join(caps)}{period}"
