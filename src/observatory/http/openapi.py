"""One OpenAPI document: Litestar's routes, the raw routes it does not know, and what each answers.

Response bodies are described by the very structs that are encoded; a test compares the raw routes with
the document. `documents()` is what is served under `/schemas/` and written into `schemas/`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from litestar import Litestar

from observatory.features.hooks.types import HOOK_DOORS
from observatory.features.otlp.counters import operation_of
from observatory.features.transparency.types import LOG_PLAIN
from observatory.features.transparency.types_peers import OFFERED, PEER_PLAIN, WITNESS_DOORS
from observatory.features.verification.routes import VerifyAnswer
from observatory.http.shapes import ANSWERS
from observatory.ledger.witness import SIZE_TYPE
from observatory.protocol import schemas
from observatory.protocol.answers import Accepted, Invalid, Refused, Rejected
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import AnyEnvelope

REF = "#/components/schemas/{name}"
# What else a command may answer when it is heard, beside its usual code.
ALSO_GOOD = {
    "register_agent": ("200", "It was known; what is new was noted"),
    "pause": ("200", "It was paused already"),
    "approve": ("202", "Counted; more people must approve"),
    "edit": ("202", "Counted; more people must approve"),
    "respond_decision": ("202", "The answer is held"),
    "mark_fact_false": ("200", "It was marked already"),
    "quarantine_fact": ("200", "What would happen, or all of it was done before"),
    "reconcile_drift": ("200", "All of them were told before"),
    "add_peer": ("200", "It was known already"),
}
# They name an agent, a session or a step by a parameter of the query.
NAMING = ("compare_sessions", "list_facts", "read_memory", "drift", "start_thought_session", "record_thought")
PLAIN = LOG_PLAIN | PEER_PLAIN
BROKEN_LOG = ("audit_proof", "audit_consistency", "list_checkpoints", "log_tile", "session_evidence")
# Their content is a message, judged as one.
JUDGED = ("rewrite", "edit", "respond_decision")


@cache
def documents(app: Litestar) -> dict[str, dict[str, Any]]:
    """File name → document, for every schema there is."""
    named = {f"{name}.json": document for name, document in schemas.documents().items()}
    return named | {"openapi.json": openapi(app)}


def openapi(app: Litestar) -> dict[str, Any]:
    document: dict[str, Any] = app.openapi_schema.to_schema()
    answers = [struct for name in ANSWERS for struct in _structs(name)]
    types = [Accepted, Rejected, Refused, VerifyAnswer, DecisionLog, AnyEnvelope, Invalid, *answers]
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
                _describe(operation, known)
    message = {"oneOf": [known[DecisionLog], known[AnyEnvelope]]}
    document["paths"].setdefault("/v1/messages", {})["post"] = _ingest(message, known)
    for signal in ("traces", "logs"):
        document["paths"].setdefault(f"/v1/{signal}", {})["post"] = operation_of(signal)
    document["paths"] = dict(sorted(document["paths"].items()))
    return document


def _structs(name: str) -> tuple[Any, ...]:
    """What an operation answers when it is heard: one struct, or any of several."""
    found = ANSWERS[name]
    return found if isinstance(found, tuple) else (found,)


def _describe(operation: dict[str, Any], known: dict[Any, Any]) -> None:
    name = operation["operationId"]
    public = name in ("healthz", "readyz", *WITNESS_DOORS, *HOOK_DOORS)
    good = next(code for code in operation["responses"] if code.startswith("2"))
    responses: dict[str, Any] = {good: operation["responses"][good]}
    if name in ANSWERS:
        shapes = [known[struct] for struct in _structs(name)]
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
    if name in PLAIN:
        content = responses[good]["content"] if name in ANSWERS else {}
        content |= {kind: {"schema": {"type": "string", "format": "binary"}} for kind in PLAIN[name]}
        responses[good] = {"description": operation.get("summary", ""), "content": content}
    refused = {"application/json": {"schema": known[Refused]}}
    codes = {"400": "Not valid"} if operation.get("parameters") or "requestBody" in operation else {}
    if "requestBody" in operation:
        codes |= {
            "409": "In conflict with what is there",
            "413": "Too large",
            "415": "Not JSON",
            "422": "Not valid",
        }
    if not public:
        codes |= {"401": "No valid key", "403": "Not allowed"}
        codes |= {"429": "The queue is full; see Retry-After", "503": "The store cannot be reached"}
        if name in ("create_key", "create_login"):
            codes["404"] = "There is no such user"
        if name == "try_hook":
            codes["404"] = "There is no such hook"
        if name == "shred_message":
            codes["404"] = "There is no such message"
        if name in NAMING:
            codes["404"] = "There is no such agent, session or step"
        if "{" in name or any(p.get("in") == "path" for p in operation.get("parameters", [])):
            codes |= {"404": "There is no such thing", "409": "In conflict with what is there"}
        if name in ("get_message", "get_rewrite", "rewrite", "edit"):
            codes["410"] = "Shredded by order"
        if name in ("audit_verify", "audit_consistency"):
            codes["422"] = "The range is not one"
        if name in ("plan_export", "export_trail"):
            codes["409"] = "There is nothing to export"
        if name == "branch_costs":
            codes["404"] = "There is no such session"
        if name in ("audit_verify", "audit_consistency", "rotate_log_key"):
            codes["409"] = "The log is not signed so far"
        if name == "resign_scheduler":
            codes["409"] = "This gateway does not lead"
        if name in BROKEN_LOG:
            codes["500"] = "The stored log is broken"
    else:
        operation["security"] = []
        if name in HOOK_DOORS:
            codes |= {"401": "The signature is missing or not valid", "404": "There is no such hook"}
            codes |= {"413": "Too large", "415": "Not the bytes that were signed", "422": "Not mapped"}
            codes["408"] = "The body did not come in time"
            codes |= {"429": "Called too often; see Retry-After", "503": "Nothing can be stored now"}
            content = responses[good]["content"]
            responses["200"] = {"description": "Answered: a ping, or a challenge", "content": content}
            any_body = {"schema": {}, "example": {"action": "opened"}}
            operation["requestBody"] = {"required": True, "content": {"application/json": any_body}}
        if name == "readyz":
            codes["503"] = "Nothing can be stored now"
        if name in WITNESS_DOORS:
            codes |= {"404": "No such log is known", "429": "Asked too often"}
        if name in OFFERED:
            codes |= {"403": "No known key signed it", "413": "Too large", "422": "The proof does not hold"}
            codes["503"] = "Nothing can be signed or stored now"
    for code, text in codes.items():
        responses[code] = {"description": text, "content": refused}
    if name in OFFERED:
        plain = {"schema": {"type": "string"}}
        operation["requestBody"] = {"required": True, "content": {"text/plain": plain}}
        told = "The old size is not what was cosigned last, which is answered"
        responses["409"] = {"description": told, "content": {SIZE_TYPE: plain}}
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
        """Of the request as a whole, or of the one message in it."""
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
            "400": either("Not JSON, or not the gzip it says"),
            "401": answer("No valid key", Refused),
            "402": answer("A hard cap is reached", Refused),
            "403": answer("Not allowed, or denied by policy", Refused),
            "404": answer("An answer to a decision there is not", Refused),
            "409": answer("The id is taken by other content", Refused),
            "413": either("Too large"),
            "415": answer("Not a content type or encoding that is taken", Refused),
            "422": answer("Breaks the schema; all faults are listed", Rejected),
            "429": answer("The queue is full; see Retry-After", Refused),
            "503": answer("Nothing can be made durable now", Refused),
        },
    }
