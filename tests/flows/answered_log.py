"""One of each answer of the log's doors, good and refused: (operation, answer) for whoever compares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log
from tests.waiting import until

Answers = Iterator[tuple[str, Any]]


def proven(own: Tenant) -> Answers:
    """Of a tenant with something in its log."""
    http = own.http("admin")
    own.send(decision_log())
    until(lambda: http.get("/v1/audit/log").json()["state"] == "signed")
    event_id = http.get("/v1/audit/tenant").json()["items"][0]["audit_event_id"]
    yield "audit_log", http.get("/v1/audit/log")
    yield "audit_proof", http.get(f"/v1/audit/proof/{event_id}")
    yield "audit_proof", http.get(f"/v1/audit/proof/{event_id}?format=tlog-proof")
    yield "audit_proof", http.get(f"/v1/audit/proof/{event_id}?format=xml")
    yield "audit_proof", http.get("/v1/audit/proof/evt_none")
    yield "audit_consistency", http.get("/v1/audit/consistency?from=1")
    yield "audit_consistency", http.get("/v1/audit/consistency?from=1&to=2")
    yield "audit_consistency", http.get("/v1/audit/consistency?from=2&to=1")
    yield "audit_consistency", http.get("/v1/audit/consistency")
    yield "audit_records", http.get("/v1/audit/records?limit=2")
    yield "audit_records", http.get("/v1/audit/records?limit=0")
    yield "list_checkpoints", http.get("/v1/audit/checkpoints?limit=1")
    yield "list_checkpoints", http.get("/v1/audit/checkpoints?over=1")
    yield "list_checkpoints", http.get("/v1/audit/checkpoints?cursor=none")
    log = f"/v1/log/{own.tenant_id}"
    yield "log_checkpoint", http.get(f"{log}/checkpoint")
    yield "log_checkpoint", http.get("/v1/log/tnt_none/checkpoint")
    for name in ("tile/0/000.p/1", "tile/entries/000.p/1", "tile/0/001", "tile/9/nonsense"):
        yield "log_tile", http.get(f"{log}/{name}")
    yield "rotate_log_key", http.post("/v1/audit/log/rotate")


def followed(server: Server) -> Answers:
    """A new key, by who may."""
    yield "rotate_log_key", server.http("admin").post("/v1/audit/log/rotate")
