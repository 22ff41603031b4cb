"""One of each answer of the doors of certificates: (operation, answer) for whoever compares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Answers = Iterator[tuple[str, Any]]


def certified(http: Any, name: str) -> Answers:
    """Of an agent that is known: bound, refused for every reason, and let go."""
    path = f"/v1/agents/{name}/certificate"
    yield "list_certificates", http.get("/v1/certificates")
    yield "get_agent_certificate", http.get(path)
    yield "get_agent_certificate", http.get("/v1/agents/nobody-at-all/certificate")
    yield "bind_agent_certificate", http.put(path, json={"kind": "dns", "value": "a.example"})
    yield "bind_agent_certificate", http.put(path, json={"kind": "dns", "value": "*"})
    yield "bind_agent_certificate", http.put(path, json={"kind": "name", "value": "a"})
    yield "get_agent_certificate", http.get(path)
    yield "unbind_agent_certificate", http.delete(path)
    yield "unbind_agent_certificate", http.delete("/v1/agents/nobody-at-all/certificate")
