"""The OpenAPI document: Litestar's routes, the raw routes it does not know, and the responses of each.

Response bodies are described by the very structs that are encoded; a test compares the raw routes with
the document. `documents()` is what is served under `/schemas/` and written into `schemas/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
from litestar import Litestar

from observatory.http.feature import Feature
from observatory.http.health import Health
from observatory.ledger.witness import SIZE_TYPE
from observatory.protocol import schemas
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import AnyEnvelope
from observatory.protocol.responses import Accepted, Invalid, Refused, Rejected

REF = "#/components/schemas/{name}"
# A second success code of a command.
ALSO_GOOD = {
    "register_agent": ("200", "Registered before; new details were stored"),
    "pause": ("200", "Already paused"),
    "approve": ("202", "Counted; more approvals are required"),
    "edit": ("202", "Counted; more approvals are required"),
    "respond_decision": ("202", "The answer is held"),
    "mark_fact_false": ("200", "Already marked"),
    "quarantine_fact": ("200", "A preview, or everything was done before"),
    "reconcile_drift": ("200", "All agents were notified before"),
    "add_peer": ("200", "Already known"),
}
# They name an agent, a session or a step in a query parameter.
NAMING = ("compare_sessions", "list_facts", "read_memory", "drift", "start_thought_session", "record_thought")
BROKEN_LOG = ("audit_proof", "audit_consistency", "list_checkpoints", "log_tile", "session_evidence")
# Their content is a message, validated as one.
JUDGED = ("rewrite", "edit", "respond_decision")


@cache
def documents(app: Litestar) -> dict[str, dict[str, Any]]:
    """File name → document, for every schema."""
    named = {f"{name}.json": document for name, document in schemas.documents().items()}
    return named | {"openapi.json": openapi(app, app.state["features"])}


class Registered:
    """What all features say of their operations."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self.answers: dict[str, Any] = {"healthz": Health, "readyz": Health}
        self.content_types: dict[str, tuple[str, ...]] = {}
        self.operations: dict[str, dict[str, Any]] = {}
        for feature in features:
            self.answers |= feature.answers
            self.content_types |= feature.content_types
            self.operations |= feature.operations
        self.hooks = {name for feature in features for name in feature.hook_operations}
        self.witness = {name for feature in features for name in feature.witness_operations}
        self.notes = {name for feature in features for name in feature.note_operations}

    def structs(self, name: str) -> tuple[Any, ...]:
        """What an operation answers: one struct, or any of several."""
        found = self.answers[name]
        return found if isinstance(found, tuple) else (found,)


def openapi(app: Litestar, features: Sequence[Feature]) -> dict[str, Any]:
    document: dict[str, Any] = app.openapi_schema.to_schema()
    registered = Registered(features)
    answers = [struct for name in registered.answers for struct in registered.structs(name)]
    types = [Accepted, Rejected, Refused, DecisionLog, AnyEnvelope, Invalid, *answers]
    references, components = msgspec.json.schema_components(types, ref_template=REF)
    known = dict(zip(types, references, strict=True))
    document.setdefault("components", {}).setdefault("schemas", {}).update(components)
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"key": []}]
    document["info"]["description"] = (
        "Validate, govern and archive what agents decide. Lists answer `{items, next_cursor}`; every "
        "refusal answers `{status, reason, detail}`. Sockets: `WS /v1/live`, `WS /v1/ingest`, "
        "`WS /v1/agents/{agent_id}/channel`. MCP: `POST /mcp`."
    )
    for path in document["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict) and "operationId" in operation:
                _describe(operation, known, registered)
    message = {"oneOf": [known[DecisionLog], known[AnyEnvelope]]}
    document["paths"].setdefault("/v1/messages", {})["post"] = _ingest(message, known)
    for path, operation in registered.operations.items():
        document["paths"].setdefault(path, {})["post"] = operation
    document["paths"] = dict(sorted(document["paths"].items()))
    return document


def _describe(operation: dict[str, Any], known: dict[Any, Any], registered: Registered) -> None:
    name = operation["operationId"]
    public = name in ("healthz", "readyz", *registered.witness, *registered.hooks)
    good = next(code for code in operation["responses"] if code.startswith("2"))
    responses: dict[str, Any] = {good: operation["responses"][good]}
    if name in registered.answers:
        shapes = [known[struct] for struct in registered.structs(name)]
        content = {"application/json": {"schema": shapes[0] if len(shapes) == 1 else {"anyOf": shapes}}}
        if name == "get_message":
            content["application/octet-stream"] = {"schema": {"type": "string", "format": "binary"}}
        if name == "read_inbox":
            content["text/event-stream"] = {"schema": {"type": "string"}}
        responses[good] = {"description": operation.get("summary", ""), "content": content}
        if name in ALSO_GOOD:
            code, text = ALSO_GOOD[name]
            responses[code] = {"description": text, "content": content}
    if name == "get_rewrite":
        content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        responses[good] = {"description": operation.get("summary", ""), "content": content}
    if name == "session_evidence":
        content = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}
        responses[good] = {"description": operation.get("summary", ""), "content": content}
    if name == "export_trail":
        content = {"application/x-ndjson": {"schema": {"type": "string", "format": "binary"}}}
        responses[good] = {"description": operation.get("summary", ""), "content": content}
    if name in registered.content_types:
        content = responses[good]["content"] if name in registered.answers else {}
        content |= {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in registered.content_types[name]
        }
        responses[good] = {"description": operation.get("summary", ""), "content": content}
    refused = {"application/json": {"schema": known[Refused]}}
    codes = {"400": "Not valid"} if operation.get("parameters") or "requestBody" in operation else {}
    if "requestBody" in operation:
        codes |= {
            "409": "Conflicts with the current state",
            "413": "Too large",
            "415": "Not JSON",
            "422": "Not valid",
        }
    if not public:
        codes |= {"401": "No valid key", "403": "Not allowed"}
        codes |= {"429": "The queue is full; see Retry-After", "503": "The store cannot be reached"}
        if name in ("create_key", "create_login"):
            codes["404"] = "User not found"
        if name == "try_hook":
            codes["404"] = "Hook not found"
        if name == "shred_message":
            codes["404"] = "Message not found"
        if name in NAMING:
            codes["404"] = "Agent, session or step not found"
        if "{" in name or any(p.get("in") == "path" for p in operation.get("parameters", [])):
            codes |= {"404": "Not found", "409": "Conflicts with the current state"}
        if name in ("get_message", "get_rewrite", "rewrite", "edit"):
            codes["410"] = "Shredded by order"
        if name in ("audit_verify", "audit_consistency"):
            codes["422"] = "Not a valid range"
        if name in ("plan_export", "export_trail"):
            codes["409"] = "There is nothing to export"
        if name == "branch_costs":
            codes["404"] = "Session not found"
        if name in ("audit_verify", "audit_consistency", "rotate_log_key"):
            codes["409"] = "The log is not signed that far"
        if name == "resign_scheduler":
            codes["409"] = "This gateway is not the leader"
        if name in BROKEN_LOG:
            codes["500"] = "The stored log is broken"
    else:
        operation["security"] = []
        if name in registered.hooks:
            codes |= {"401": "The signature is missing or not valid", "404": "There is no such hook"}
            codes |= {"413": "Too large", "415": "Not the bytes that were signed", "422": "Not mapped"}
            codes["408"] = "The body did not arrive in time"
            codes |= {"429": "Rate limited; see Retry-After", "503": "Nothing can be stored now"}
            content = responses[good]["content"]
            responses["200"] = {"description": "Answered: a ping, or a challenge", "content": content}
            any_body = {"schema": {}, "example": {"action": "opened"}}
            operation["requestBody"] = {"required": True, "content": {"application/json": any_body}}
        if name == "readyz":
            codes["503"] = "Nothing can be stored now"
        if name in registered.witness:
            codes |= {"404": "No such log is known", "429": "Asked too often"}
        if name in registered.notes:
            codes |= {"403": "No known key signed it", "413": "Too large", "422": "The proof does not hold"}
            codes["503"] = "Nothing can be signed or stored now"
    for code, text in codes.items():
        responses[code] = {"description": text, "content": refused}
    if name in registered.notes:
        plain = {"schema": {"type": "string"}}
        operation["requestBody"] = {"required": True, "content": {"text/plain": plain}}
        text = "The old size is not the size cosigned last, which is returned"
        responses["409"] = {"description": text, "content": {SIZE_TYPE: plain}}
    for code in () if public else codes.keys() & {"400", "422"}:
        shapes = [Invalid, Refused, *([Rejected] if name in JUDGED and code == "422" else [])]
        any_of = {"anyOf": [known[shape] for shape in shapes]}
        listed = {"application/json": {"schema": any_of}}
        responses[code] = {"description": "Not valid; all faults are listed", "content": listed}
    operation["responses"] = responses


def _ingest(message: dict[str, Any], known: dict[Any, Any]) -> dict[str, Any]:
    def answer(text: str, struct: Any) -> dict[str, Any]:
        return {"description": text, "content": {"application/json": {"schema": known[struct]}}}

    def either(text: str) -> dict[str, Any]:
        """A refusal of the request as a whole, or of the one message in it."""
        schema = {"oneOf": [known[Refused], known[Rejected]]}
        return {"description": text, "content": {"application/json": {"schema": schema}}}

    return {
        "operationId": "send_messages",
        "summary": "Send one message, or a batch as NDJSON",
        "tags": ["Ingest"],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": message},
                "application/x-ndjson": {"schema": {"type": "string", "description": "One message a line."}},
            },
        },
        "responses": {
            "200": {
                "description": "NDJSON: one answer a line, each with its `code`",
                "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
            },
            "202": answer("Durable", Accepted),
            "400": either("Not JSON, or not valid gzip"),
            "401": answer("No valid key", Refused),
            "402": answer("A hard cap is reached", Refused),
            "403": answer("Not allowed, or denied by policy", Refused),
            "404": answer("A response to an unknown decision", Refused),
            "409": answer("The id is in use with other content", Refused),
            "413": either("Too large"),
            "415": answer("Content type or encoding not supported", Refused),
            "422": answer("Breaks the schema; all faults are listed", Rejected),
            "429": answer("The queue is full; see Retry-After", Refused),
            "503": answer("Nothing can be made durable now", Refused),
        },
    }
