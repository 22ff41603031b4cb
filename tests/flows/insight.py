"""Waiting for insight in flow tests: what is committed is folded a moment later, by another process."""

from __future__ import annotations

from typing import Any

from tests.flows.server import Server
from tests.waiting import until


def status(server: Server) -> dict[str, Any]:
    answer = server.http("admin").get("/v1/insight/status")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def settled(server: Server) -> dict[str, Any]:
    """Once everything that was committed before this call is folded; the status then."""
    head = status(server)["head"]

    def look() -> dict[str, Any]:
        found = status(server)
        return found if found["cursor"] >= head else {}

    return until(look)
