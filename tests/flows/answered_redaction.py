"""One of each answer of the doors of redaction and retention, good and refused: (operation, answer)."""

from __future__ import annotations

from tests.flows.answered import Answers, Json
from tests.flows.tenant import Tenant
from tests.samples import decision_log


def redacted(own: Tenant) -> Answers:
    """A rule from trial to end, then orders to shred; of a tenant whose rules bind nobody else."""
    http, rule = own.http("admin"), {"type": "pattern", "name": "acme_no", "pattern": "ACME-[0-9]{6}"}
    yield "try_redaction", http.post("/v1/redaction/dry-run", json={"message": decision_log(), "rule": rule})
    yield "try_redaction", http.post("/v1/redaction/dry-run", json={"message": {}})
    for spoilt in (rule | {"pattern": "(a+)+"}, rule | {"type": "x"}):
        yield "try_redaction", http.post("/v1/redaction/dry-run", json={"message": {}, "rule": spoilt})
        yield "add_redaction", http.post("/v1/redaction", json=spoilt)
    made = http.post("/v1/redaction", json=rule)
    yield "add_redaction", made
    yield "add_redaction", http.post("/v1/redaction", json=rule)
    yield "list_redaction", http.get("/v1/redaction")
    yield "list_redaction", own.http("operator").get("/v1/redaction")
    sent = own.send(decision_log(cognition={"intent": "order ACME-123456"})).json()
    for _ in ("in force", "gone"):
        yield "remove_redaction", http.delete(f"/v1/redaction/{made.json()['rule_id']}")
    for body in ({"days": 30, "thoughts": True}, {"days": None}, {"days": 0}, {}):
        yield "put_retention", http.put("/v1/retention", json=body)
    yield "get_retention", http.get("/v1/retention")
    message_id, session_id = sent["message_id"], sent["session_id"]
    order: Json = {"reason": "fits", "confirm": message_id, "message_id": message_id}
    for wrong in (order | {"confirm": "x"}, order, order, order | {"message_id": "none"}, {"reason": ""}):
        yield "shred_message", http.post("/v1/messages/shred", json=wrong)
    for named, confirm in ((session_id, "x"), (session_id, session_id), ("none", "none"), (session_id, None)):
        order = {"reason": "fits", "confirm": confirm}
        yield "shred_session", http.post(f"/v1/sessions/{named}/shred", json=order)
    thought = {"task_id": "fits", "type": "plan", "content": {"trajectory": "fits"}}
    here = own.http("agent").post("/v1/thoughts", json=thought).json()["session_id"]
    for named, confirm in ((here, "x"), (here, here), (here, here), ("none", "none"), (here, None)):
        order = {"reason": "fits", "confirm": confirm}
        yield "shred_thoughts", http.post(f"/v1/sessions/{named}/thoughts/shred", json=order)
    yield "session_thoughts", http.get(f"/v1/sessions/{here}/thoughts")
    yield "verify_thoughts", http.post(f"/v1/sessions/{here}/thoughts/verify")
    yield "get_message", http.get(f"/v1/messages/{sent['message_id']}")
    yield "get_message", http.get(f"/v1/messages/{sent['message_id']}?raw=true")
    yield "list_messages", http.get("/v1/messages")
