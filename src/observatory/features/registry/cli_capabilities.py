"""`observatory capabilities`: the capabilities and clusters that operators granted to agents (S1145)."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayOptions
from observatory.cli.prompts import Json, api_session, path_of, print_result
from observatory.cli.terminal import note, show_json, show_table

SETTING = "/v1/settings/routing"
Grants = Annotated[str, Parameter(help="Capabilities by name; a cluster as cluster:ID.")]

capabilities = App(name="capabilities", help="Which work agents get: list, grant, revoke, mode.")


@capabilities.command(name="list")
def list_capabilities(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List each agent with what it was granted and what it only requests."""
    with api_session(gateway, json) as client:
        rows = [row for row in client.items("/v1/agents") if row["granted"] or row["requested"]]
        mode = client.ask("GET", SETTING)["capabilities"]
    if json:
        members = ("agent_id", "entity_id", "capabilities", "granted", "requested")
        show_json([{name: row[name] for name in members} for row in rows])
        return
    lines = [(row["agent_id"], *(", ".join(row[one]) for one in ("granted", "requested"))) for row in rows]
    show_table(("AGENT", "GRANTED", "REQUESTED"), lines, "no grants and no requests")
    note(MEANING[mode])


MEANING = {
    "self": "capabilities: self. Agents get work for capabilities they register; `mode granted` changes that",
    "granted": "capabilities: granted. Agents get work only for the capabilities granted to them",
}


@capabilities.command(name="grant")
def grant(agent: str, *names: Grants, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Grant capabilities or clusters to an agent."""
    _change(agent, {"grant": list(names)}, json, gateway)


@capabilities.command(name="revoke")
def revoke(agent: str, *names: Grants, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Revoke grants: from the next message on the agent gets none of that work."""
    _change(agent, {"revoke": list(names)}, json, gateway)


@capabilities.command(name="mode")
def mode(
    word: Annotated[
        Literal["self", "granted"] | None,
        Parameter(help="self: agents that register the capability; granted: agents it was granted to."),
    ] = None,
    *,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Show which agents get work; with a value, change it from the next message on."""
    with api_session(gateway, json) as client:
        change = {} if word is None else {"capabilities": word}
        answer = client.ask("PUT", SETTING, change) if change else client.ask("GET", SETTING)
    print_result(answer, json, MEANING[answer["capabilities"]])


def _change(agent: str, body: dict[str, list[str]], json: bool, gateway: GatewayOptions) -> None:
    with api_session(gateway, json) as client:
        answer = client.ask("POST", path_of("agents", agent, "grants"), body)
    print_result(
        answer, json, f"{answer['agent_id']} gets work for: {', '.join(answer['granted']) or 'nothing'}"
    )
