"""The first hour: four questions of a newcomer, answered in the demo through the UI."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.flows.server import Server
from tests.waiting import until
from tests.windows.conftest import Open

CLAIM = "NVDA fiscal year ends Dec 31"
GOAL = "Send the Helvar note"
CYCLE_S = 100.0


@pytest.mark.req(115, 116, 117, 118, 119, 120)
@pytest.mark.timeout(400)
def test_four_questions_are_answered_by_clicks_alone_s785(atlas: Server, opened: Open) -> None:
    """S785: who started the false fact, why an agent is paused, what the hour cost by branch, the proof."""
    http = atlas.http()
    # A fresh mesh may need another cycle of its story: over a minute.
    until(lambda: http.get("/v1/facts", params={"marked": "true"}).json()["items"], CYCLE_S)
    until(lambda: _paused(http), CYCLE_S)
    until(lambda: _sealed(http.get("/v1/thought-sessions").json()["items"]), CYCLE_S)
    window = opened(atlas, "/fleet")
    page, views = window.page, window.role("navigation", "Views")
    boards = window.role("navigation", "Boards of the Forensic Inspector")

    # Who started the false fact, when, and which agents did it reach?
    views.get_by_role("link", name="Forensics").click()
    boards.get_by_role("link", name="Infections").click()
    first = page.locator("tr[data-index='0']")
    expect(first).to_contain_text("× false")
    expect(first).to_contain_text(CLAIM)
    first.click()
    expect(page.get_by_role("heading", name=re.compile("Originated by researcher-gamma-2"))).to_be_visible()
    expect(window.role("region", re.compile("^Agents reached"))).to_contain_text("writer-gamma-1")
    expect(window.role("main")).to_contain_text("The annual report: the year ends")

    # What did the last hour cost, by branch?
    boards.get_by_role("link", name="Costs").click()
    expect(page.get_by_text(re.compile(r"\$[\d.]+k? in the last hour"))).to_be_visible()
    window.role("radiogroup", "Group by").get_by_text("Branch", exact=True).click()
    dearest = window.role("table", "Costs by branch").locator("tr[data-index='0']")
    expect(dearest).to_contain_text("$")
    expect(dearest).not_to_contain_text("all other branches")

    # The proof of one decision.
    boards.get_by_role("link", name="Decision trail").click()
    page.locator("tr[data-index]").filter(has_text="sealed").first.click()
    expect(window.role("main")).to_contain_text("The price is that of a breach")
    page.get_by_role("button", name="Verify here").first.click()
    expect(window.role("main")).to_contain_text(re.compile("✓.*(root|records|hash)", re.I))
    page.get_by_role("button", name="Verify here").last.click()
    expect(window.role("main")).to_contain_text("✓ verified")

    # Why is an agent paused, and by whom?
    until(lambda: _paused(http), CYCLE_S)  # it may have been let go meanwhile, and comes again
    views.get_by_role("link", name="Sessions").click()
    page.get_by_role("button", name=re.compile("^paused")).click()
    window.at(".*status=paused")
    goal = window.role("table", "Sessions").get_by_role("link", name=re.compile(GOAL))
    goal.first.click()
    expect(window.role("main")).to_contain_text("It wrote to the press list instead of the clients'")


def _paused(http: Any) -> list[Any]:
    """The session in question: others may be paused too."""
    items = http.get("/v1/sessions", params={"limit": 1_000}).json()["items"]
    return [one for one in items if one["status"] == "paused" and GOAL in (one["goal"] or "")]


def _sealed(items: list[dict[str, object]]) -> list[dict[str, object]]:
    return [one for one in items if one.get("sealed_at") or one.get("state") == "sealed"]
