"""Agents at work, for flow tests of the map and of costs: steps with a place, a parent and a price."""

from __future__ import annotations

import uuid
from typing import Any

from tests.flows.graphs import send
from tests.flows.server import Server
from tests.samples import decision_log

Json = dict[str, Any]
EU, ASIA, OWN = "aws-eu-central-1-mesh-04", "gcp-asia-southeast1", "onprem-zrh"


def work(agent: str, *parents: str, session: str = "ses-map", **more: Any) -> Json:
    """A step whose name is a UUID of its own; its parents by theirs."""
    delta = {"tokens_consumed": 100, "added_to_memory": None, "cumulative_session_cost": None}
    return decision_log(
        meta={
            "session_id": session,
            "step_id": str(uuid.uuid4()),
            "parent_step_id": parents[0] if parents else None,
            "parent_step_ids": list(parents[1:]),
            "cluster_id": more.get("cluster", EU),
        },
        identity={"agent_id": agent, "agent_type": more.get("kind", "writer"), "model": more.get("model")},
        cognition={"intent": more.get("intent", f"what {agent} wants {uuid.uuid4()}")},
        action={"status": more.get("status", "success"), "tool_call": more.get("tool", "search")},
        state_delta=delta | more.get("delta", {}),
        control={"hitl_required": more.get("hitl", False), "is_terminal": False},
    )


def did(server: Server, agent: str, *parents: str, **more: Any) -> str:
    """Sent and accepted; the step's name."""
    message = work(agent, *parents, **more)
    send(server, message)
    return str(message["meta"]["step_id"])
