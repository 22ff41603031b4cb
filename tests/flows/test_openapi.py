"""The published contracts: every served route is described, every answer fits, every file is fresh."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from litestar.routes import HTTPRoute

from observatory.features import parts
from observatory.features.hooks.types import HOOK_OPERATIONS
from observatory.features.otlp.routes import PATHS as OTLP
from observatory.features.transparency.types_peers import PLAIN_BODY_OPERATIONS, WITNESS_OPERATIONS
from observatory.http.app import litestar_app
from observatory.http.web_ui import ROUTES
from tests.flows import (
    answered,
    answered_alerts,
    answered_certificates,
    answered_export,
    answered_federation,
    answered_hooks,
    answered_insight,
    answered_log,
    answered_redaction,
    answered_schedule,
    answered_thoughts,
    answered_webhooks,
)
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import MESSAGE_TYPES, decision_log, envelope, full_decision_log

Json = dict[str, Any]
FOLDER = Path(__file__).parents[2] / "schemas"
# Pages for people, and the way in: not part of the programming interface.
# OTLP has its receivers pass over members they do not know; what it refuses has tests of its own.
OTLP_DOORS = ("otlp_traces", "otlp_logs")
PAGES = {
    "/docs",
    "/pages/{name}",
    "/schemas/{name}",
    "/login",
    "/logout",
    "/assets/{name}",
    "/favicon.svg",
    "/licenses",
}

WINDOWS = {re.sub(r":\w+", "", route) for route in ROUTES}


@pytest.fixture(scope="module")
def document(server: Server) -> Json:
    found: Json = server.http("nobody").get("/schemas/openapi.json").json()
    return found


def test_every_served_route_is_in_the_document(document: Json) -> None:
    """S50: Litestar's own routes and the raw ones beside it; nothing is described that is not there."""
    routes = [
        route
        for route in litestar_app(None, [part.FEATURE for part in parts("feature")]).routes
        if isinstance(route, HTTPRoute)
    ]
    served = {
        (re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path), method.lower())
        for route in routes
        for method in route.methods - {"OPTIONS", "HEAD"}
        if not route.path.startswith("/internal-openapi")  # answers 404, see test_before_trust
    }
    served |= {(path, "post") for path in ("/v1/messages", *OTLP)}
    described = {(path, method) for path, methods in document["paths"].items() for method in methods}
    assert {path for path, _ in served - described} == PAGES | WINDOWS
    assert described <= served
    for socket in ("/v1/live", "/v1/ingest", "/v1/agents/{agent_id}/channel"):
        assert socket in document["info"]["description"]


def test_every_operation_has_an_id_a_summary_and_its_refusals(document: Json) -> None:
    """S2: each refusal has one shape."""
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    names = [one["operationId"] for one in operations]
    assert len(names) == len(set(names))
    for one in operations:
        assert one["summary"], one["operationId"]
        needs_key = one.get("security") != []
        is_hook = one["operationId"] in HOOK_OPERATIONS  # signed by who calls, and refused so
        assert ("401" in one["responses"]) == (needs_key or is_hook), one["operationId"]
        assert needs_key or one["operationId"] in ("healthz", "readyz", *WITNESS_OPERATIONS, *HOOK_OPERATIONS)


@pytest.mark.req(50)
def test_the_served_schemas_are_the_files_of_the_repository(server: Server) -> None:
    """S1: stale is red; `make schemas` writes them anew."""
    files = {path.name: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
    assert {"openapi.json", "decision_log.json", "envelope.json", "audit_event.json"} <= set(files)
    for name, content in files.items():
        assert server.http("nobody").get(f"/schemas/{name}").json() == content, name
    listed = server.http("nobody").get("/schemas/none.json")
    assert listed.status_code == 404
    assert set(re.findall(r"\w+\.json", listed.text)) == set(files)


@pytest.mark.req(44, 50, 231)
def test_the_published_schema_and_the_gateway_agree(server: Server) -> None:
    """S1: what an agent can check before it sends is what the gateway checks."""
    http = server.http("nobody")
    logs = checked(http.get("/schemas/decision_log.json").json())
    for sent in (decision_log(), full_decision_log(), decision_log(cognition=None)):
        logs.validate(sent)
        assert server.send(sent).status_code == 202
    for spoilt in (
        {},
        decision_log(action={"status": "done"}),
        decision_log(cognition={"confidence_score": 2}),
        decision_log(meta={"trace_id": "x"}),
        decision_log(meta={"timestamp": "2026-02-16T14:32:00"}),
        decision_log(identity={"capability_version": "new"}),
    ):
        assert not logs.is_valid(spoilt)
        assert server.send(spoilt).status_code == 422
    envelopes = checked(http.get("/schemas/envelope.json").json())
    for kind in MESSAGE_TYPES:
        envelopes.validate(envelope(kind))
        assert not envelopes.is_valid(envelope(kind, priority="x"))


def checked(schema: Json) -> jsonschema.Draft202012Validator:
    """A validator of a schema that is one: looked at once, and not again for each of its instances."""
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def fits(document: Json, operation: str, answer: Any) -> None:
    """The body is what the document says of this operation and code."""
    described = next(
        one
        for methods in document["paths"].values()
        for one in methods.values()
        if one["operationId"] == operation
    )
    response = described["responses"].get(str(answer.status_code))
    assert response is not None, f"{operation} answers {answer.status_code}, which is not described"
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in response["content"], f"{operation} answers {answer.status_code} with {kind}"
    if kind == "application/json":
        schema = {"components": document["components"], **response["content"][kind]["schema"]}
        jsonschema.Draft202012Validator(schema).validate(answer.json())


def test_every_schema_of_the_document_is_one(document: Json) -> None:
    """So that whatever fits one of them below really fits something."""
    answers = [
        content["schema"]
        for methods in document["paths"].values()
        for operation in methods.values()
        for response in operation["responses"].values()
        for kind, content in response.get("content", {}).items()
        if kind == "application/json"
    ]
    parts = document["components"]["schemas"]
    assert len(answers) > 300 and len(parts) > 100
    for schema in {json.dumps(one): one for one in [*answers, *parts.values()]}.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def closed(document: Json) -> Json:
    """The document where what is not described is not there: no answer says more than its struct."""

    def close(part: Any) -> Any:
        if isinstance(part, list):
            return [close(one) for one in part]
        if not isinstance(part, dict):
            return part
        made = {name: close(one) for name, one in part.items()}
        if isinstance(part.get("properties"), dict) and part.get("type") == "object":
            made.setdefault("additionalProperties", False)
        return made

    found: Json = close(document)
    return found


@pytest.fixture
def own(server: Server, tmp_path: Path) -> Iterator[Tenant]:
    made = Tenant(server, tmp_path / "own")
    yield made
    made.stop()


def test_answers_fit_the_document(server: Server, own: Tenant, document: Json) -> None:
    """S43, S45: one of each operation, good and refused; and nothing is told that is not described."""
    http, name = server.http("admin"), f"fit-{uuid.uuid4()}"
    first = server.send(decision_log(identity={"agent_id": name})).json()
    user = http.post("/v1/users", json={"name": name, "role": "viewer"})
    key = http.post("/v1/keys", json={"role": "viewer", "user_id": user.json()["user_id"]})
    versions = {"agent_type": name, "versions": [{"version": "1.0.0", "status": "current"}]}
    stranger = {"authorization": "Bearer obs_nobody"}
    answers: list[tuple[str, Any]] = [
        ("send_messages", server.send(decision_log())),
        ("send_messages", server.send(b"{}")),
        ("send_messages", server.send(b"nonsense")),
        ("send_messages", http.post("/v1/messages", content=b"x", headers={"content-type": "text/plain"})),
        ("send_messages", http.post("/v1/messages", json={}, headers=stranger)),
        ("send_messages", server.send(b'"' + b"x" * (1 << 20) + b'"')),
        ("list_messages", http.get("/v1/messages")),
        ("list_messages", http.get("/v1/messages?limit=0")),
        ("list_messages", http.get("/v1/messages", headers=stranger)),
        ("get_message", http.get(f"/v1/messages/{first['message_id']}")),
        ("get_message", http.get("/v1/messages/none")),
        ("audit_trace", http.get(f"/v1/audit/trace/{first['session_id']}")),
        ("session_evidence", http.get(f"/v1/sessions/{first['session_id']}/evidence")),
        ("plan_export", http.get("/v1/audit/export/plan")),
        ("plan_export", http.get("/v1/audit/export/plan?from=99999999")),
        (
            "plan_export",
            http.get("/v1/audit/export/plan?since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z"),
        ),
        ("export_trail", http.get("/v1/audit/export?to=1")),
        ("export_trail", http.get("/v1/audit/export?from=x")),
        ("list_violations", http.get("/v1/violations")),
        ("list_violations", http.get("/v1/violations?since=yesterday")),
        ("branch_costs", http.get("/v1/costs/branches")),
        ("branch_costs", http.get("/v1/costs/branches?session=none")),
        ("audit_tenant", http.get("/v1/audit/tenant")),
        ("audit_entity", http.get(f"/v1/audit/entity/{name}")),
        ("audit_verify", http.post("/v1/audit/verify", json={})),
        ("audit_verify", http.post("/v1/audit/verify", json={"from_sequence": 5, "to_sequence": 1})),
        ("list_agents", http.get("/v1/agents")),
        ("get_agent", http.get(f"/v1/agents/{name}")),
        ("list_sessions", http.get("/v1/sessions")),
        ("get_session", http.get(f"/v1/sessions/{first['session_id']}")),
        ("get_session", http.get("/v1/sessions/none")),
        ("put_versions", http.put("/v1/versions", json=versions)),
        ("put_versions", http.put("/v1/versions", json={"agent_type": name})),
        ("list_versions", http.get("/v1/versions")),
        ("list_tenants", http.get("/v1/tenants")),
        ("create_tenant", http.post("/v1/tenants", json={"display_name": name})),
        ("create_tenant", http.post("/v1/tenants", json={"display_name": "x", "tenant_id": "tnt_default"})),
        ("list_users", http.get("/v1/users")),
        ("list_people", http.get("/v1/people")),
        ("create_user", user),
        ("create_user", http.post("/v1/users", json={"name": name, "role": "viewer"})),
        ("list_keys", http.get("/v1/keys")),
        ("create_key", key),
        ("create_key", server.http("viewer").post("/v1/keys", json={"role": "agent"})),
        ("revoke_key", http.delete(f"/v1/keys/{key.json()['key_id']}")),
        ("revoke_key", http.delete("/v1/keys/none")),
        ("create_key", http.post("/v1/keys", json={"role": "viewer", "user_id": "usr_none"})),
        *answered.registered_and_routed(http, name, first["session_id"]),
        *answered_certificates.certified(http, name),
        *answered.stopped_and_instructed(http, name, user.json()["user_id"]),
        ("send_messages", server.send(decision_log(identity={"agent_id": "teller", "recipient": name}))),
        *answered.listened(http, name),
        *answered.ruled(server, name),
        *answered.intervened(server, name),
        *answered.answered_at_gates(server, name),
        *answered.decided(server),
        *answered.mapped_and_priced(http, name, first["session_id"]),
        *answered_log.proven(own),
        *answered_log.followed(server),
        *answered_federation.federated(own),
        *answered_export.exported(own),
        *answered_hooks.hooked(own),
        *answered_webhooks.told_outside(own),
        *answered_schedule.scheduled(own),
        *answered_schedule.stepped_back(server),
        *answered_alerts.watched(own),
        *answered_insight.drilled_down(own),
        *answered_insight.drilled_into_every_type(own),
        *answered_insight.alarmed(own),
        *answered_insight.believed(own),
        *answered_insight.looked_for(own),
        *answered_insight.spent(own),
        *answered_insight.windowed(own),
        *answered_thoughts.thought(own),
        *answered_redaction.redacted(own),
        ("disable_user", http.post(f"/v1/users/{user.json()['user_id']}/disable")),
        ("create_login", http.post("/v1/logins", json={})),
        ("create_login", http.post("/v1/logins", json={"user_id": "usr_none"})),
        ("list_logins", signed_in := http.get("/v1/logins")),
        ("end_login", http.delete(f"/v1/logins/{signed_in.json()['items'][0]['login_id']}")),
        ("end_login", http.delete("/v1/logins/log_none")),
        ("metrics", http.get("/metrics")),
        ("whoami", http.get("/v1/whoami")),
        ("healthz", http.get("/healthz")),
        ("readyz", http.get("/readyz")),
    ]
    whole = closed(document)
    for operation, answer in answers:
        fits(whole, operation, answer)
    described = {one["operationId"]: one for paths in document["paths"].values() for one in paths.values()}
    good = {operation for operation, answer in answers if answer.status_code < 300}
    bad = {operation for operation, answer in answers if answer.status_code >= 400}
    assert good == set(described)
    assert {name for name, one in described.items() if "requestBody" in one} <= bad


def test_metrics_are_told_in_prometheus_text(server: Server) -> None:
    """S50: to whoever may read; without a name of a tenant or an agent."""
    server.send(decision_log(identity={"agent_id": "unmeasured"}))
    text = server.http("viewer").get("/metrics").text
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(found["observatory_committed_total"]) > 0
    assert float(found['observatory_message_responses_total{code="202"}']) > 0
    assert "unmeasured" not in text and "tnt_" not in text


def test_the_doors_beside_ingest_survive_nonsense(server: Server, document: Json) -> None:
    """S2: a command with a body that is none is refused with a sentence, and never an error of ours."""
    http = server.http("admin")
    commands = [
        (method.upper(), re.sub(r"\{\w+\}", "none", path))
        for path, methods in document["paths"].items()
        for method, one in methods.items()
        if "requestBody" in one
        and one["operationId"] not in ("send_messages", *OTLP_DOORS, *PLAIN_BODY_OPERATIONS, *HOOK_OPERATIONS)
    ]
    assert len(commands) >= 25
    bodies = (b"", b"nonsense", b"[]", b"null", b"7", b"\xff", b"[" * 100_000, b'{"role": "\\ud800"}')
    for method, path in commands:
        for body in (*bodies, b'{"agent_id": "a", "agent_id": "b"}'):
            answer = http.request(method, path, content=body, headers={"content-type": "application/json"})
            assert answer.status_code in (400, 422), (path, body[:20], answer.text)
            assert answer.json()["status"] == "refused"
        plain = http.request(method, path, content=b"{}", headers={"content-type": "text/plain"})
        assert plain.status_code == 415, path
    for path in ("/v1/sessions/a%00b", "/v1/messages?state=%00", "/v1/agents/%00", "/login?token=%00"):
        assert http.get(path).status_code == 400
    too_much = http.post("/v1/keys", content=b'"' + b"x" * (2 << 20) + b'"')
    assert too_much.status_code == 413
