"""The list of sessions: search, filters, loop alerts, cost against cap, and two sessions compared."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.flows.graphs import new, send_all, step
from tests.flows.server import Server
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import Window
from tests.windows.staff import Story, Worker


def looping(server: Server) -> tuple[str, str]:
    """A looping agent: its session and its name."""
    session, name = new(), f"looper-{uuid.uuid4().hex[:6]}"
    again = {
        "tool_call": "serp_search",
        "tool_input": '{"query": "NVDA"}',
        "tool_output_summary": "no result",
        "status": "failure",
    }
    send_all(
        server,
        [
            step(session, new(), agent=name, cognition={"intent": "Search again"}, action=again)
            for _ in range(6)
        ],
    )
    return session, name


def rows(window: Window) -> list[str]:
    return window.role("table", "Sessions").get_by_role("row").all_inner_texts()


@pytest.mark.req(116, 202)
def test_sessions_are_searched_by_goal_agent_and_id(deployment: Server, opened: Open) -> None:
    story = Story(deployment).folded()
    window = opened(deployment, "/sessions")
    table = window.role("table", "Sessions")
    expect(table.get_by_role("row").nth(3)).to_be_visible()
    field = window.role("textbox", "Search sessions by goal, agent or id")
    window.press("f")
    expect(field).to_be_focused()
    for text in (story.goal, story.who("researcher"), story.session):
        field.fill(text)
        expect(table.get_by_role("row")).to_have_count(2)
        expect(table.get_by_role("row").last).to_contain_text(story.goal)
    window.at(r"/sessions\?q=")
    window.shot("sessions-search")
    window.role("button", "clear filters").click()
    expect(table.get_by_role("row").nth(3)).to_be_visible()


@pytest.mark.req(202)
def test_the_table_is_sorted_filtered_walked_and_opened_by_keyboard(deployment: Server, opened: Open) -> None:
    window = opened(deployment, "/sessions")
    table = window.role("table", "Sessions")
    expect(table.get_by_role("row").nth(3)).to_be_visible()
    window.role("button", re.compile("^Cost")).click()
    expect(table.get_by_role("columnheader", name=re.compile("Cost"))).to_have_attribute(
        "aria-sort", re.compile("ascending|descending")
    )
    window.press("j", "j")
    current = table.locator("[role=row][aria-current]")
    expect(current).to_have_count(1)
    window.press("Space")
    expect(window.role("complementary", re.compile("^Session"))).to_be_visible()
    window.press("Escape")
    session = current.get_attribute("data-session")
    window.press("Enter").at(f"/sessions/{session}")


@pytest.mark.req(67, 79, 80, 92, 152, 203)
def test_an_entropy_alert_is_a_row_and_pause_and_inspect_does_both(deployment: Server, opened: Open) -> None:
    session, name = looping(deployment)
    window = opened(deployment, "/sessions")
    row = window.role("listitem").filter(has_text=name).first
    expect(row).to_contain_text(re.compile("serp_search|Search again"))
    window.shot("sessions-alarms")
    row.get_by_role("button", name="Pause and inspect").click()
    choice = window.role("dialog", "Pause which agent?")
    window.page.wait_for_function(
        "() => location.pathname !== '/sessions' || document.querySelector('[role=dialog]')"
    )
    if choice.count():
        choice.get_by_role("button", name=f"Pause {name}").click()
    window.at(f"/sessions/{session}\\?.*step=")
    until(lambda: deployment.http().get(f"/v1/sessions/{session}").json()["agents"][0]["paused"] or None)
    expect(window.role("region", "Console")).to_contain_text(f"{name}: paused")


@pytest.mark.req(204)
def test_cost_stands_against_its_cap(deployment: Server, opened: Open) -> None:
    story = Story(deployment)
    budget = {"scope": "session", "target": story.session, "soft": 0.2, "hard": 10.0}
    made = deployment.http("operator").put("/v1/budgets", json=budget)
    assert made.status_code in (200, 201), made.text
    story.folded()
    window = opened(deployment, f"/sessions?q={story.session}")
    panel = window.role("complementary", "Cost and stuck sessions")
    expect(panel).to_contain_text("Cost against cap")
    expect(panel).to_contain_text("$10")
    row = window.role("table", "Sessions").get_by_role("row").last
    expect(row).to_contain_text("%")
    expect(row).to_contain_text("of session cap")


def test_an_agent_of_a_session_is_paused_from_the_list_and_undone(
    deployment: Server, opened: Open, tmp_path: Path
) -> None:
    with Worker(deployment, tmp_path) as worker:
        worker.works_on()
        window = opened(deployment, f"/sessions?q={worker.session}")
        expect(window.role("table", "Sessions").get_by_role("row")).to_have_count(2)
        window.press("j", "p")
        window.role("dialog", "Pause which agent?").get_by_role("button", name=f"Pause {worker.name}").click()
        undo = window.role("region", "Notifications").get_by_role("button", name="Undo")
        expect(undo).to_be_visible()
        assert deployment.http().get(f"/v1/sessions/{worker.session}").json()["agents"][0]["paused"]
        undo.click()
        worker.works_on(3)
        window.press("p")
        window.role("dialog", "Pause which agent?").get_by_role("button", name=f"Pause {worker.name}").click()
        expect(window.role("table", "Sessions")).to_contain_text("paused")


def test_two_sessions_are_chosen_and_compared(deployment: Server, opened: Open) -> None:
    one, two = Story(deployment), Story(deployment)
    window = opened(deployment, f"/compare?left={one.session}&right={two.session}")
    expect(window.role("list", "Steps by change")).to_contain_text(re.compile(r"\d+ \w+"))
    table = window.role("table").filter(has_text="right minus left")
    expect(table).to_be_visible()
    expect(window.page.get_by_text(one.goal).first).to_be_visible()
    window.press("n").at(r"/compare\?.*at=\d+")
    window.shot("compare")
    window.is_accessible()
    window.role("button", "Swap left and right").click()
    window.at(rf"/compare\?.*left={two.session}")
