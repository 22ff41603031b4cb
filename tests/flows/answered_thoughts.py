"""One of each answer of the decision trail's doors, good and refused: (operation, answer)."""

from __future__ import annotations

import uuid

from tests.flows.answered import Answers, Json
from tests.flows.server import Server

CONTENT: dict[str, Json] = {
    "plan": {"trajectory": "look, decide, tell"},
    "analysis": {"observation": "tests are green ✓", "count": 3, "score": 0.8},
    "decision": {"choice": "ship", "alternatives": ["wait"], "why": "nothing speaks against it"},
    "reflection": {"happened": "shipped", "proved": ["3/3 nodes"], "uncertain": "load at night"},
}


def thought_of(kind: str, task_id: str = "tsk_1", **more: object) -> Json:
    return {"task_id": task_id, "type": kind, "content": CONTENT[kind]} | more


def thought(server: Server) -> Answers:
    """A session from its start to its end, and what is refused on the way."""
    http, session = server.http("agent"), str(uuid.uuid4())
    path, begun = f"/v1/sessions/{session}", {"intent": "Ship it", "session_id": session, "task_id": "tsk_1"}
    for body in (begun, begun, begun | {"intent": "x"}, {}, begun | {"predecessor_session_id": "none"}):
        yield "start_thought_session", http.post("/v1/thought-sessions", json=body)
    event = http.post(f"{path}/thoughts", json=thought_of("plan"))
    yield "record_session_thought", event
    named = {"references": [event.json()["record_id"]], "audit_event_ids": [event.json()["audit_event_id"]]}
    there = thought_of("decision", session_id=session) | named
    yield "record_thought", http.post("/v1/thoughts", json=there)
    yield "record_thought", http.post("/v1/thoughts", json=thought_of("plan", str(uuid.uuid4())))
    for wrong in (
        thought_of("plan") | {"type": "informational"},
        thought_of("plan") | {"content": {"trajectory": 1.5}},
        thought_of("plan") | {"content": {"trajectory": "x" * 70_000}},
        thought_of("plan") | {"references": ["none"]},
        thought_of("plan") | {"audit_event_ids": ["evt_none"]},
        thought_of("plan") | {"agent_id": "x", "record_id": "/"},
        {},
    ):
        yield "record_session_thought", http.post(f"{path}/thoughts", json=wrong)
        yield "record_thought", http.post("/v1/thoughts", json=wrong | {"session_id": session})
    for _ in ("too early", "in time", "again"):
        yield "seal_session", http.post(f"{path}/seal")
        yield "end_thoughts", http.post(f"{path}/thoughts/end")
        yield "session_seal", http.get(f"{path}/seal")
        yield "thought_proof", http.get(f"{path}/thoughts/{event.json()['record_id']}/proof")
        yield "verify_thoughts", http.post(f"{path}/thoughts/verify")
        yield "record_session_thought", http.post(f"{path}/thoughts", json=thought_of("reflection"))
    yield "thought_proof", http.get(f"{path}/thoughts/none/proof")
    for operation, method, place in (
        ("verify_thoughts", "POST", "thoughts/verify"),
        ("seal_session", "POST", "seal"),
        ("session_seal", "GET", "seal"),
        ("end_thoughts", "POST", "thoughts/end"),
        ("session_thoughts", "GET", "thoughts"),
    ):
        yield operation, http.request(method, f"/v1/sessions/none/{place}")
    for query in ("", "?limit=1", "?start=1&limit=1", "?start=99", "?start=-1"):
        yield "session_thoughts", http.get(f"{path}/thoughts{query}")
    for query in ("", "?limit=1", "?cursor=nonsense"):
        yield "list_thought_sessions", server.http("viewer").get(f"/v1/thought-sessions{query}")
