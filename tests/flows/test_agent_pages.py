"""The list of agents comes in pages (B11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log


def test_agents_are_listed_in_pages_the_last_heard_first_s1190(server: Server, tmp_path: Path) -> None:
    """S1190: each once, in one order, whatever the size of a page; a filter leaves no page short."""
    tenant = Tenant(server, tmp_path / "tenant")
    for n in range(7):
        cluster = "even" if n % 2 == 0 else "odd"
        assert tenant.send(
            decision_log(identity={"agent_id": f"pager-{n}"}, meta={"cluster_id": cluster})
        ).is_success
    http = tenant.http("admin")

    def pages(limit: int, **asked: str) -> list[list[str]]:
        found, cursor = [], None
        while True:
            query: dict[str, Any] = {"limit": limit} | asked | ({"cursor": cursor} if cursor else {})
            page = http.get("/v1/agents", params=query).json()
            found.append([item["agent_id"] for item in page["items"]])
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    everyone = [f"pager-{n}" for n in reversed(range(7))]
    assert pages(1_000) == [everyone]
    for limit in (1, 2, 3, 7):
        split = pages(limit)
        assert [name for page in split for name in page] == everyone
        assert all(len(page) == limit for page in split[:-1]) and split[-1]
    assert pages(2, cluster="even") == [["pager-6", "pager-4"], ["pager-2", "pager-0"]]
    for wrong in ("x", "YTE", "c3RyYXk"):
        assert http.get("/v1/agents", params={"cursor": wrong}).json()["reason"] == "bad_cursor"
    for wrong in ("0", "1001", "many"):
        assert http.get("/v1/agents", params={"limit": wrong}).status_code == 400
