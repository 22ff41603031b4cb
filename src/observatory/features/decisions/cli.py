"""`observatory decisions`: questions agents ask people, and the answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions
from observatory.cli.prompts import Json, Note, api_session, one_of, pairs_of, path_of, print_result, when
from observatory.cli.terminal import note, show_json, show_table

State = Literal["pending", "answered", "expired", "cancelled", "executing", "succeeded", "failed", "all"]
RULES = "/v1/settings/decisions"
RULE_NAMES = ("auto_risk", "auto_needs_default", "min_deadline_s")
LISTING = "`observatory decisions list`"

decisions = App(name="decisions", help="Decisions agents request from people: list, respond, cancel, rules.")


@decisions.command(name="list")
def list_decisions(
    *,
    state: State = "pending",
    user: Annotated[str | None, Parameter(help="Only pending ones addressed to this user (usr_…).")] = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Decisions in a state, newest first, with their options."""
    with api_session(gateway, json) as api:
        if user is not None:
            rows = list(api.items("/v1/decisions/pending", user_id=user))
        else:
            rows = list(api.items("/v1/decisions", state=None if state == "all" else state))
    if json:
        show_json(rows)
        return
    rows_shown = [
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
    columns = ("DECISION", "STATE", "AGENT", "TITLE", "OPTIONS", "RISK", "DEADLINE", "USER")
    show_table(columns, rows_shown, "No pending decisions" if state == "pending" else "No decisions")


@decisions.command(name="respond")
def respond(
    decision: str, option: str, *, note: Note = None, json: Json = False, gateway: GatewayOptions = ANY
) -> None:
    """Choose one of a decision's options; the first valid answer wins."""
    with api_session(gateway, json) as api:
        decision_id = _decision_id(api, decision)
        body = {"selected_option_id": option, "respondent_note": note}
        answer = api.ask("POST", path_of("decisions", decision_id, "respond"), body)
    print_result(answer, json, f"{decision_id} is {answer['state']}: {option}")


@decisions.command(name="cancel")
def cancel(decision: str, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Cancel a pending decision; its agent is notified."""
    with api_session(gateway, json) as api:
        decision_id = _decision_id(api, decision)
        answer = api.ask("POST", path_of("decisions", decision_id, "cancel"))
    print_result(answer, json, f"{decision_id} is {answer['state']}")


@decisions.command(name="rules")
def rules(
    *settings: Annotated[str, Parameter(help="name=value, e.g. auto_risk=none; name=default.")],
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """What the gateway may decide at a deadline; with `name=value`, change it for every later request."""
    requested = pairs_of(settings, "auto_risk=none")
    body = {name: None if value == "default" else value for name, value in requested.items()}
    with api_session(gateway, json) as api:
        answer = api.ask("PUT", RULES, body) if body else api.ask("GET", RULES)
    if json:
        show_json(answer)
        return
    show_table(("SETTING", "VALUE"), [(name, str(answer[name]).lower()) for name in RULE_NAMES])
    by = answer["updated_by"]
    note("these are the defaults" if by is None else f"set by {by} at {answer['updated_at']}")


def _decision_id(api: GatewayApi, text: str) -> str:
    """The id of a pending decision by its prefix; any other text is passed on unchanged for the gateway to
    check."""
    rows = list(api.items("/v1/decisions/pending"))
    if not any(str(row["decision_id"]).startswith(text) for row in rows):
        return text
    return str(one_of(rows, text, ("decision_id",), LISTING)["decision_id"])


def _option(option: dict[str, Any], row: dict[str, Any]) -> str:
    text = str(option["option_id"])
    if option.get("label") and option["label"] != text:
        text += f" ({option['label']})"
    return f"{text}*" if row["selected_option_id"] == option["option_id"] else text
