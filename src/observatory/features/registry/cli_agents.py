"""`observatory agents`: list agents with their state; pause or resume an agent in every session."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayOptions
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import Json, Limit, Note, api_session, path_of, print_result

Agent = Annotated[str, Parameter(help="Its name or entity id.")]

agents = App(name="agents", help="Agents of the tenant: list, pause everywhere, unpause everywhere.")


@agents.default
@agents.command(name="list")
def list_agents(*, limit: Limit = 100, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List agents, the most recently active first, with their state and its reason."""
    with api_session(gateway, json) as client:
        rows = list(islice(client.items("/v1/agents"), max(limit, 0)))
    columns: dict[str, Cell] = {
        "AGENT": "agent_id",
        "TYPE": "agent_type",
        "CLUSTER": "cluster_id",
        "STATE": "state",
        "WHY": "state_reason",
        "PAUSED": at("paused_at"),
        "BY": "paused_by",
    }
    show_rows(rows, json, columns, "no agents yet")


@agents.command(name="pause")
def pause(agent: Agent, *, note: Note = None, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Hold everything an agent sends, in every session, also in later ones, until it is unpaused."""
    with api_session(gateway, json) as client:
        answer = client.ask("POST", path_of("agents", agent, "pause"), {"note": note})
    state = "was already paused everywhere" if answer["state"] == "already_paused" else "is paused everywhere"
    print_result(
        answer, json, f"{answer['agent_id']} {state}; to resume it: observatory agents unpause {agent}"
    )


@agents.command(name="unpause")
def unpause(agent: Agent, *, note: Note = None, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Resume an agent everywhere; held messages are forwarded in order."""
    with api_session(gateway, json) as client:
        answer = client.ask("POST", path_of("agents", agent, "unpause"), {"note": note})
    released = sum(one["released"] or 0 for one in answer["sessions"])
    print_result(answer, json, f"{answer['agent_id']} is running; held messages forwarded: {released}")
