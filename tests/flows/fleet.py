"""Words for flow tests about agents among agents: send, listen, acknowledge, wait until it is true."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from tests.flows.server import Server
from tests.samples import decision_log

Json = dict[str, Any]
T = TypeVar("T")
DEADLINE_S = 20.0


def named(prefix: str = "agent") -> str:
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def say(
    server: Server,
    agent: str,
    recipient: str | None = None,
    *,
    kind: str = "",
    session: str = "",
    cluster: str | None = None,
    status: str = "success",
    **identity: Any,
) -> Json:
    """One step of an agent; the gateway's answer."""
    sent = decision_log(
        meta={
            "step_id": str(uuid.uuid4()),
            "session_id": session or f"ses-{agent}",
            "cluster_id": cluster,
            "parent_step_id": None,
        },
        identity={"agent_id": agent, "agent_type": kind or "sender", "recipient": recipient, **identity},
        action={"status": status},
    )
    answer = server.send(sent)
    assert answer.status_code == 202, answer.text
    found: Json = answer.json()
    return found


def beat(server: Server, agent: str, role: str = "agent", **more: Any) -> Json:
    body = {"type": "heartbeat", "agent_id": agent, **more}
    answer = server.http(role).post("/v1/heartbeat", json=body)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def agent_of(server: Server, agent: str) -> Json:
    found: Json = server.http("operator").get(f"/v1/agents/{agent}").json()
    return found


def inbox(server: Server, agent: str, wait: float = 0) -> list[Json]:
    answer = server.http("agent").get(f"/v1/agents/{agent}/inbox", params={"wait": wait})
    assert answer.status_code == 200, answer.text
    items: list[Json] = answer.json()["items"]
    return [item for item in items if item["kind"] == "message"]


def ack(server: Server, agent: str, *items: Json) -> None:
    ids = [item["delivery_id"] for item in items]
    answer = server.http("agent").post(f"/v1/agents/{agent}/inbox/ack", json={"ids": ids})
    assert answer.status_code == 200 and answer.json()["acked"] == ids, answer.text


def received(server: Server, event_type: str, **body: Any) -> list[Json]:
    """Events of this name whose body says this, newest first."""
    items = server.http("operator").get("/v1/audit/tenant", params={"limit": 1_000}).json()["items"]
    return [
        item
        for item in items
        if item["body"]["event_type"] == event_type
        and all(item["body"].get(name) == value for name, value in body.items())
    ]


def until(look: Callable[[], T], deadline_s: float = DEADLINE_S) -> T:
    """The first true thing that is seen; fails when none is in time."""
    end = time.monotonic() + deadline_s
    while not (found := look()):
        assert time.monotonic() < end, "it did not come to pass in time"
        time.sleep(0.05)
    return found
