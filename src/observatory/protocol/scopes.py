"""The scope of a kill switch: a cluster, a class, or one agent by name or entity id, compared by spelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from observatory.protocol.identity import agent_entity_id
from observatory.protocol.spelling import are_same_name
from observatory.protocol.tenant_config import KillScope, KillState, KillSwitch

AGENT: Final = "agent"
# The agent column a scope is compared with; a global scope with none.
COLUMNS: Final = {"cluster": "cluster_id", "class": "agent_type", AGENT: "agent_id"}


def switch_of(tenant_id: str, kill_id: str, scope: KillScope, target: str, state: KillState) -> KillSwitch:
    entity_id = agent_entity_id(tenant_id, target) if scope == AGENT else None
    return KillSwitch(kill_id=kill_id, scope=scope, target=target, state=state, entity_id=entity_id)


def matches_target(tenant_id: str, column: str, value: str | None, target: str) -> bool:
    """Whether an agent's value in this column matches the target of a scope."""
    if value is None or column != COLUMNS[AGENT]:
        return are_same_name(value, target)
    return are_same_name(value, target) or agent_entity_id(tenant_id, value) == agent_entity_id(
        tenant_id, target
    )


def covers(switch: Mapping[str, Any], agent: Mapping[str, Any]) -> bool:
    """Whether a row of `kill_switches` has a row of `agents` in its scope."""
    if switch["scope"] == "global":
        return True
    column = COLUMNS[switch["scope"]]
    return matches_target(switch["tenant_id"], column, agent[column], switch["target"])
