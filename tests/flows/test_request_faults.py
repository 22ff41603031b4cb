"""Operators' requests name every fault with its path and what is allowed there, at every route."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from litestar.routes import HTTPRoute
from msgspec import inspect as kinds

from observatory.features import parts
from observatory.http.app import litestar_app
from observatory.http.bodies import shape_of
from tests.flows.server import Server

CANARY = "canary-28f1"


def routes_with_a_body() -> Iterator[tuple[str, str, Any]]:
    for route in litestar_app(None, [part.FEATURE for part in parts("feature")]).routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                shape = shape_of(handler)
                for method in sorted(handler.http_methods & {"POST", "PUT", "PATCH"}):
                    if shape is not None:
                        yield method, re.sub(r"\{\w+:\w+\}", "x", route.path), shape


ROUTES = list(routes_with_a_body())


def plain(rule: kinds.Type) -> kinds.Type:
    while isinstance(rule, kinds.Metadata):
        rule = rule.type
    return rule


def wrong(rule: kinds.Type) -> Any:
    """A value of a kind that this rule does not take; None where it takes any."""
    choices = [plain(one) for one in rule.types] if isinstance(rule, kinds.UnionType) else [plain(rule)]
    if any(isinstance(one, kinds.AnyType) for one in choices):
        return None
    takes_text = any(isinstance(one, kinds.StrType | kinds.LiteralType) for one in choices)
    takes_list = any(isinstance(one, kinds.ListType | kinds.VarTupleType) for one in choices)
    if takes_text:
        return [CANARY]
    return {CANARY: CANARY} if takes_list else CANARY


@pytest.mark.parametrize(("method", "path", "shape"), ROUTES, ids=[f"{m} {p}" for m, p, _ in ROUTES])
def test_a_request_with_wrong_types_is_told_every_fault_and_its_path_s1240(
    server: Server, method: str, path: str, shape: Any
) -> None:
    """S1240: at every route with a body; neither a value nor the name of an unknown member is told."""
    rule = kinds.type_info(shape)
    http = server.http("admin")
    if not isinstance(rule, kinds.StructType):  # a part of the settings, judged as such
        answer = http.request(method, path, json={CANARY: 1})
        assert answer.status_code == 422 and CANARY not in answer.text
        assert {"$"} == {fault["path"] for fault in answer.json()["faults"]}
        return
    body = {field.encode_name: wrong(plain(field.type)) for field in rule.fields}
    answer = http.request(method, path, json=body | {CANARY: CANARY})
    assert answer.status_code == 422, answer.text
    received = answer.json()
    assert {fault["path"] for fault in received["faults"]} - {"$"} == {
        name for name, value in body.items() if value is not None
    }
    assert all(
        fault["problem"].startswith(("must ", "has an unknown member", "unknown setting"))
        for fault in received["faults"]
    )
    assert received["status"] == "refused" and received["reason"] == "bad_request"
    assert all(f"{fault['path']}: {fault['problem']}" in received["detail"] for fault in received["faults"])
    assert CANARY not in answer.text
    empty = http.request(method, path)
    assert (empty.status_code, empty.json()["faults"][0]["path"]) == (422, "$")


CASES: list[tuple[str, str, Any, int, dict[str, str]]] = [
    (
        "POST",
        "/v1/keys",
        {"role": CANARY, "label": "\x01", "scopes": "read"},
        422,
        {
            "role": "must be one of admin, agent, approver, auditor, operator, viewer",
            "label": "must be 1 to 128 characters without control characters",
            "scopes": "must be an array",
        },
    ),
    (
        "POST",
        "/v1/jobs",
        {"name": "n", "intent": "i", "target": {"kind": CANARY}, "jitter_s": -1},
        422,
        {
            "target.kind": "must be one of",
            "target.name": "is missing: this field is required",
            "jitter_s": "must be an integer from 0 to 86400",
        },
    ),
    (
        "POST",
        "/v1/webhooks/out",
        {"name": "n", "url": "https://x", "events": ["a", 5], "filters": {CANARY: CANARY}},
        422,
        {"events[1]": "must be text", "filters[0]": "must be an array"},
    ),
    (
        "POST",
        "/v1/keys",
        {"role": "agent", "agent": CANARY, "scope": CANARY},
        422,
        {"$": "has an unknown member; the members are role, label"},
    ),
    (
        "POST",
        "/v1/keys",
        {"role": "agent", "label": f"{CANARY}\0"},
        400,
        {"label": "without control characters"},
    ),
    ("POST", "/v1/keys", [CANARY], 422, {"$": "must be an object"}),
    (
        "POST",
        "/v1/keys",
        {"role": CANARY, "scopes": ["send", CANARY], "expires_at": CANARY},
        422,
        {"role": "one of", "scopes[1]": "must be one of admin, approve", "expires_at": "RFC 3339"},
    ),
    (
        "POST",
        "/v1/webhooks/out",
        {
            "name": "a",
            "url": "https://a.example/",
            "events": ["message_held", CANARY],
            "filters": {CANARY: [], "severity": [CANARY]},
        },
        422,
        {"events[1]": "events.md", "filters[0]": "one of agent", "filters.severity[0]": "one of DEBUG"},
    ),
    (
        "PUT",
        "/v1/budgets",
        {"scope": CANARY, "hard": -1, "period": CANARY},
        422,
        {"scope": "must be one of agent", "hard": "from 0 to", "period": "must be one of daily"},
    ),
    (
        "PUT",
        "/v1/settings/detectors",
        {CANARY: 1, "n_min": 0},
        422,
        {"$": "unknown setting", "n_min": "must"},
    ),
    ("GET", "/v1/messages?limit=100000", None, 400, {"limit": "must be an integer from 1 to 1000"}),
    ("GET", f"/v1/fleet/throughput?window={CANARY}", None, 400, {"window": "must be one of 1h, 60s"}),
    ("GET", "/v1/audit/consistency", None, 400, {"from": "is missing: this parameter is required"}),
    ("GET", f"/v1/audit/consistency?from={CANARY}", None, 400, {"from": "must be an integer from 1 to"}),
]


@pytest.mark.parametrize(("method", "path", "body", "code", "faults"), CASES)
def test_a_fault_says_what_is_allowed_there_s1240(
    server: Server, method: str, path: str, body: Any, code: int, faults: dict[str, str]
) -> None:
    """S1240, S1241: nested members by their path, allowed values, and unknown members refused unnamed."""
    answer = server.http("admin").request(method, path, json=body)
    assert answer.status_code == code, answer.text
    received = {fault["path"]: fault["problem"] for fault in answer.json()["faults"]}
    assert received.keys() == faults.keys(), received
    assert all(words in received[path] for path, words in faults.items()), received
    assert CANARY not in answer.text


def test_a_misspelt_member_makes_no_key_s1241(server: Server) -> None:
    """S1241: an unbound key of every scope was the answer to `agent` and `scope`."""
    http = server.http("admin")
    before = len(http.get("/v1/keys").json()["items"])
    misspelt = {"role": "agent", "agent": "a", "scope": ["send"]}
    assert http.post("/v1/keys", json=misspelt).status_code == 422
    assert len(http.get("/v1/keys").json()["items"]) == before
