"""Agents in pages of another origin: those named get answers they may read, and never by a cookie."""

from __future__ import annotations

from tests.flows.server import Server
from tests.samples import decision_log

NAMED, STRANGER = "https://agents.example", "https://evil.example"
ASKING = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}


def test_a_named_origin_is_answered_without_cookies_and_no_other_is_s923(tight_server: Server) -> None:
    """S923: the question before, the answer, a refusal; at agents' doors only."""
    nobody, agent = tight_server.http("nobody"), tight_server.http("agent")
    asked = nobody.options("/v1/messages", headers={"origin": NAMED, **ASKING})
    assert asked.status_code == 204 and not asked.content
    assert asked.headers["access-control-allow-origin"] == NAMED
    assert "authorization" in asked.headers["access-control-allow-headers"]
    for origin in (STRANGER, "null", "https://agents.example.evil.example", "https://ui.example"):
        refused = nobody.options("/v1/messages", headers={"origin": origin, **ASKING})
        assert "access-control-allow-origin" not in refused.headers, origin
        sent = agent.post("/v1/heartbeat", json={"agent_id": "page-1"}, headers={"origin": origin})
        assert sent.status_code == 200 and "access-control-allow-origin" not in sent.headers
        assert sent.headers["vary"] == "origin", "or a cache on the way would show it to those who are named"

    received = agent.post("/v1/messages", json=decision_log(), headers={"origin": NAMED})
    assert received.status_code == 202
    assert received.headers["access-control-allow-origin"] == NAMED
    assert received.headers["access-control-expose-headers"] == "retry-after"
    assert "access-control-allow-credentials" not in received.headers and received.headers["vary"] == "origin"
    shut_out = nobody.get("/v1/agents/page-1/inbox", headers={"origin": NAMED})
    assert (shut_out.status_code, shut_out.headers["access-control-allow-origin"]) == (401, NAMED)
    assert nobody.get("/v1/agents/page-1/inbox").headers["vary"] == "origin"
    assert "access-control-allow-origin" not in nobody.get("/healthz", headers={"origin": NAMED}).headers
