"""Sentences about kill switches for the CLI: what each stops, and what a release means."""

from __future__ import annotations

from typing import Any

from observatory.cli.gateway_client import GatewayApi, GatewayRefused
from observatory.cli.prompts import path_of


def engaged(client: GatewayApi) -> list[dict[str, Any]]:
    return [row for row in client.ask("GET", "/v1/kill-switch")["items"] if row["state"] == "engaged"]


def scope_of(row: dict[str, Any]) -> str:
    return "everything" if row["scope"] == "global" else f"{row['scope']} {row['target']}"


def stopped_by(client: GatewayApi, agent_id: str) -> str | None:
    """A sentence about the kill switch that stops this agent, if any."""
    rows = engaged(client)
    if not rows:
        return None
    try:
        agent = client.ask("GET", path_of("agents", agent_id))
    except GatewayRefused:
        agent = {}
    names = {
        "global": (None,),
        "class": (agent.get("agent_type"),),
        "cluster": (agent.get("cluster_id"),),
        "agent": (agent_id, agent.get("agent_id"), agent.get("entity_id")),
    }
    for row in rows:
        if row["target"] in names[row["scope"]]:
            return f"{row['kill_id']} stops {scope_of(row)}"
    return None


def release_sentence(row: dict[str, Any], others: list[dict[str, Any]]) -> str:
    """A sentence about a release, given what is still engaged."""
    others = [other for other in others if other["kill_id"] != row["kill_id"]]
    scope, same = scope_of(row), (row["scope"], row["target"])
    whole = [
        other for other in others if other["scope"] == "global" or (other["scope"], other["target"]) == same
    ]
    if whole:
        return f"{scope} is still stopped by {', '.join(other['kill_id'] for other in whole)}"
    # Clusters and classes overlap; two clusters, or two classes, do not.
    parts = [other for other in others if other["scope"] != row["scope"]]
    held = f"{row['held']} held {'message' if row['held'] == 1 else 'messages'}"
    result = f"{scope} is released; {held} will be forwarded in stages"
    if parts:
        result += ", except what " + ", ".join(
            f"{other['kill_id']} stops ({scope_of(other)})" for other in parts
        )
    return result
