"""Whom a kill-switch means: a cluster, a class, or one agent by its name or entity id, by how words read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from observatory.protocol.identity import agent_entity_id
from observatory.protocol.rulebook import KillScope, KillState, KillSwitch
from observatory.protocol.spelling import are_same

AGENT: Final = "agent"
# What of an agent a scope is compared with; a global one with nothing.
COLUMNS: Final = {"cluster": "cluster_id", "class": "agent_type", AGENT: "agent_id"}


def switch_of(tenant_id: str, kill_id: str, scope: KillScope, target: str, state: KillState) -> KillSwitch:
    entity_id = agent_entity_id(tenant_id, target) if scope == AGENT else None
    return KillSwitch(kill_id=kill_id, scope=scope, target=target, state=state, entity_id=entity_id)


def reads_as(tenant_id: str, column: str, value: str | None, target: str) -> bool:
    """Whether what an agent has in this column is what a scope names."""
    if value is None or column != COLUMNS[AGENT]:
        return are_same(value, target)
    return are_same(value, target) or agent_entity_id(tenant_id, value) == agent_entity_id(tenant_id, target)


def covers(switch: Mapping[str, Any], agent: Mapping[str, Any]) -> bool:
    """Whether a row of `kill_switches` has a row of `agents` in its scope."""
    if switch["scope"] == "global":
        return True
    column = COLUMNS[switch["scope"]]
    return reads_as(switch["tenant_id"], column, agent[column], switch["target"])
