"""`observatory agents`: who is known and how it is, and a pause of all an agent does."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Gateway
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import Json, Note, hand, path_of, tell
from observatory.features.sessions.cli_lists import Limit

Agent = Annotated[str, Parameter(help="Its name or entity id.")]

agents = App(name="agents", help="Agents of the tenant: list, pause everywhere, unpause everywhere.")


@agents.default
@agents.command(name="list")
def list_agents(*, limit: Limit = 100, json: Json = False, gateway: Gateway = ANY) -> None:
    """Agents, last heard first, with their state and why."""
    with hand(gateway, json) as door:
        rows = list(islice(door.items("/v1/agents"), max(limit, 0)))
    columns: dict[str, Cell] = {
        "AGENT": "agent_id",
        "TYPE": "agent_type",
        "CLUSTER": "cluster_id",
        "STATE": "state",
        "WHY": "state_reason",
        "PAUSED": at("paused_at"),
        "BY": "paused_by",
    }
    show_rows(rows, json, columns, "no agent is known yet")


@agents.command(name="pause")
def pause(agent: Agent, *, note: Note = None, json: Json = False, gateway: Gateway = ANY) -> None:
    """Hold all an agent sends, in every session, also those that begin later, until it is unpaused."""
    with hand(gateway, json) as door:
        answer = door.ask("POST", path_of("agents", agent, "pause"), {"note": note})
    state = "was paused everywhere already" if answer["state"] == "already_paused" else "is paused everywhere"
    tell(answer, json, f"{answer['agent_id']} {state}; to lift it: observatory agents unpause {agent}")


@agents.command(name="unpause")
def unpause(agent: Agent, *, note: Note = None, json: Json = False, gateway: Gateway = ANY) -> None:
    """Lift an agent's pause everywhere; what was held is forwarded in order."""
    with hand(gateway, json) as door:
        answer = door.ask("POST", path_of("agents", agent, "unpause"), {"note": note})
    released = sum(one["released"] or 0 for one in answer["sessions"])
    tell(answer, json, f"{answer['agent_id']} goes on; held messages forwarded: {released}")
