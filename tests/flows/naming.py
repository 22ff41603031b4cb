"""Every way in which a request can name something of another tenant: in its path, its body, its question."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

from tests.flows.two_tenants import BODIES, TwoTenants
from tests.samples import envelope

Json = dict[str, Any]


def named_in_path(deployment: TwoTenants, path: str) -> Iterator[tuple[str, str]]:
    """The path with an id of theirs, and with one of its form that is nowhere; other ids in it are ours.

    Of a path with several, all of theirs are tried together as well.
    """

    def nowhere(known: str) -> str:
        shape = re.sub(r"[0-9a-f]{8}-?[0-9a-f]{4}-?.*", lambda _: str(uuid.uuid4()), known)
        return shape if shape != known else f"nobody{uuid.uuid4().hex}"

    names = re.findall(r"\{(\w+)\}", path)
    tries = [{name: known} for name in names for known in deployment.ids[name]]
    tries += [{name: deployment.ids[name][0] for name in names}] if len(names) > 1 else []
    for theirs in tries:
        none = {name: nowhere(known) for name, known in theirs.items()}
        known, unknown = (path.format_map(deployment.mine | ids) for ids in (theirs, none))
        yield known, unknown


def named_in_bodies(ids: Json, ours: Json, me: str) -> Iterator[tuple[str, str, Json]]:
    """Commands in a session of our own that name an agent, a message, a user, a rule, a decision, a scope."""
    session_id, fact = ours["session_id"], f"/v1/facts/fct_{ours['sequence_number']}-0"
    subject = {"subject": f"the {ids['name']} limit", "value": "500 EUR", "confirm": True}
    for scope in (f"cluster:{ids['name']}", f"session:{ids['session_id']}", f"session:{session_id}"):
        yield "POST", "/v1/drift/reconcile", subject | {"scope": scope}
    for agent_id in (ids["name"], ids["entity_id"]):
        body = {"correction": "ours", "agents": [agent_id], "confirm": True}
        yield "POST", f"{fact}/quarantine", body
    path, ours = f"/v1/sessions/{session_id}", {"agent_id": "homebody", "new_content": {}}
    for agent_id in (ids["name"], ids["entity_id"]):
        for command in ("pause", "unpause", "inject", "cancel", "approve", "reject", "edit"):
            yield "POST", f"{path}/{command}", BODIES[command] | {"agent_id": agent_id}
        yield "POST", f"{path}/leave", {"agent_id": agent_id}
    for ident in (ids["message_id"], ids["step_id"]):
        for command in ("approve", "reject", "edit"):
            yield "POST", f"{path}/{command}", ours | {"message_id": ident}
        yield "POST", f"{path}/rewrite", ours | {"original_message_id": ident}
    yield "POST", "/v1/agents", {"agent_id": "homebody", "owner": ids["user_id"]}
    yield "PUT", "/v1/policies/order", {"order": [ids["rule_id"]]}
    rule = {"name": "ours", "condition": "breaker", "target": "ours", "endpoint_ids": [ids["endpoint_id"]]}
    yield "POST", "/v1/alert-rules", rule
    yield "POST", "/v1/scaling-triggers", rule | {"direction": "up"}
    thought = {"task_id": "ours", "type": "plan", "content": {"trajectory": "ours"}}
    yield "POST", "/v1/thoughts", thought | {"references": [ids["record_id"]]}
    yield "POST", "/v1/thoughts", thought | {"audit_event_ids": [ids["audit_event_id"]]}
    begun = {"intent": "ours", "predecessor_session_id": ids["session_id"]}
    yield "POST", "/v1/thought-sessions", begun
    person, answer = {"entity_id": me, "entity_type": "user"}, {"decision_id": ids["decision_id"]}
    yield "POST", "/v1/messages", envelope("decision_response", sender=person, payload=answer)


def named_in_queries(ids: Json, mine: Json) -> Iterator[tuple[str, Json]]:
    """Questions that name an agent, a session, a step, a cluster, a type or words."""
    for agent in (ids["name"], ids["entity_id"]):
        for path in ("facts", "memory", "costs/gaps"):
            yield path, {"agent": agent}
        yield "memory", {"agent": agent, "session": mine["session_id"]}
        yield "search", {"q": f"agent:{agent}"}
    session = ids["session_id"]
    for path in ("facts", "memory", "costs/gaps", "drift"):
        yield path, {"session": session}
    yield "search", {"q": f"session:{session}"}
    for left, right in ((session, mine["session_id"]), (mine["session_id"], session), (session, session)):
        yield "compare", {"left": left, "right": right}
    for step in (ids["step"], ids["message_id"]):
        for whose in ({"agent": "homebody"}, {"session": mine["session_id"]}, {"session": session}):
            yield "memory", whose | {"step": step}
        for door in ("blast", "causes"):
            yield f"steps/{step}/{door}", {"session": session}
            yield f"steps/{step}/{door}", {"session": mine["session_id"]}
    yield "facts", {"text": f"The {ids['name']} limit is 500 EUR"}
    for path, field in (("facts", "q"), ("annotations", "label"), ("drift", "cluster")):
        yield path, {field: ids["name"]}
    for mode in ("text", "hybrid"):
        yield "search", {"q": f'"{ids["name"]}"', "mode": mode}
    yield "search", {"q": ids["name"], "mode": "text", "group": "agent"}
    for field in ("tool", "type", "cluster", "model"):
        yield "search", {"q": f"{field}:{ids['name']}", "mode": "text"}
