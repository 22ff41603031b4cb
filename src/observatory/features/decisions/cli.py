"""`observatory decisions`: what agents ask people, and the answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway
from observatory.cli.prompts import Json, Note, hand, one_of, pairs_of, path_of, tell, when
from observatory.cli.terminal import note, show_json, show_table

State = Literal["pending", "answered", "expired", "cancelled", "executing", "succeeded", "failed", "all"]
RULES = "/v1/settings/decisions"
RULE_NAMES = ("auto_risk", "auto_needs_default", "min_deadline_s")
LISTING = "`observatory decisions list`"

decisions = App(name="decisions", help="What agents ask people: list, respond, cancel, rules.")


@decisions.command(name="list")
def list_decisions(
    *,
    state: State = "pending",
    user: Annotated[str | None, Parameter(help="Only of this user (usr_…), of the pending ones.")] = None,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """What waits for a person, newest first, with the options that can be chosen."""
    with hand(gateway, json) as door:
        if user is not None:
            rows = list(door.items("/v1/decisions/pending", user_id=user))
        else:
            rows = list(door.items("/v1/decisions", state=None if state == "all" else state))
    if json:
        show_json(rows)
        return
    shown = [
        (
            row["decision_id"],
            row["state"],
            row["agent_id"],
            row["title"] or "(shredded)",
            ", ".join(_option(option, row) for option in row["options"]),
            row["risk"],
            when(row["deadline"]),
            row["user_id"],
        )
        for row in rows
    ]
    columns = ("DECISION", "STATE", "AGENT", "TITLE", "OPTIONS", "RISK", "DEADLINE", "OF")
    show_table(columns, shown, "nothing waits for an answer" if state == "pending" else "no such decision")


@decisions.command(name="respond")
def respond(
    decision: str, option: str, *, note: Note = None, json: Json = False, gateway: Gateway = ANY
) -> None:
    """Choose one of a decision's options; the first valid answer wins."""
    with hand(gateway, json) as door:
        decision_id = _meant(door, decision)
        body = {"selected_option_id": option, "respondent_note": note}
        answer = door.ask("POST", path_of("decisions", decision_id, "respond"), body)
    tell(answer, json, f"{decision_id} is {answer['state']}: {option}")


@decisions.command(name="cancel")
def cancel(decision: str, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Take a pending decision back; its agent is told."""
    with hand(gateway, json) as door:
        decision_id = _meant(door, decision)
        answer = door.ask("POST", path_of("decisions", decision_id, "cancel"))
    tell(answer, json, f"{decision_id} is {answer['state']}")


@decisions.command(name="rules")
def rules(
    *settings: Annotated[str, Parameter(help="name=value, e.g. auto_risk=none; name=default.")],
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """What the gateway may decide at a deadline; with `name=value` it is changed, for every later request."""
    asked = pairs_of(settings, "auto_risk=none")
    body = {name: None if value == "default" else value for name, value in asked.items()}
    with hand(gateway, json) as door:
        answer = door.ask("PUT", RULES, body) if body else door.ask("GET", RULES)
    if json:
        show_json(answer)
        return
    show_table(("SETTING", "VALUE"), [(name, str(answer[name]).lower()) for name in RULE_NAMES])
    by = answer["updated_by"]
    note("these are the defaults" if by is None else f"set by {by} at {answer['updated_at']}")


def _meant(door: Api, text: str) -> str:
    """A pending one by the beginning of its id; any other by its whole id, for the gateway to judge."""
    rows = list(door.items("/v1/decisions/pending"))
    if not any(str(row["decision_id"]).startswith(text) for row in rows):
        return text
    return str(one_of(rows, text, ("decision_id",), LISTING)["decision_id"])


def _option(option: dict[str, Any], row: dict[str, Any]) -> str:
    told = str(option["option_id"])
    if option.get("label") and option["label"] != told:
        told += f" ({option['label']})"
    return f"{told}*" if row["selected_option_id"] == option["option_id"] else told
