"""The session page: graph, step, scratchpad, memory and console, and the effect of its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.flows.graphs import ask, new, send, step
from tests.flows.server import Server
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import Window
from tests.windows.staff import Gate, Story, Worker


@pytest.fixture(scope="module")
def story(deployment: Server) -> Story:
    return Story(deployment).folded()


def card(window: Window, story: Story, role: str, intent: str) -> Locator:
    cards = window.page.get_by_test_id("session-graph").get_by_role("button")
    return cards.filter(has_text=story.who(role)).filter(has_text=intent)


def chapter(window: Window, title: str) -> Locator:
    return window.role("region", "Step").get_by_role("region", name=title)


@pytest.mark.req(116, 150, 172, 173, 175, 184, 185, 205, 229)
def test_the_graph_follows_parents_with_badges_confidence_and_doubt(
    deployment: Server, opened: Open, story: Story
) -> None:
    window = opened(deployment, f"/sessions/{story.session}")
    expect(window.role("heading", story.goal, level=1)).to_be_visible()
    for role, intent in (
        ("planner", story.goal),
        ("researcher", "Search for the fiscal year"),
        ("reader", "Read the filing"),
        ("analyst", "Compare both"),
        ("writer", "Write it down"),
    ):
        expect(card(window, story, role, intent)).to_be_visible()
    expect(card(window, story, "writer", "Write it down")).to_contain_text("Terminal")
    expect(card(window, story, "analyst", "Guess the share count")).to_contain_text("20 %")
    expect(
        card(window, story, "analyst", "Guess the share count").get_by_title("low confidence")
    ).to_be_visible()
    graph = ask(deployment, f"/v1/sessions/{story.session}/dag")
    drawn = window.page.locator(".react-flow__edge")
    expect(drawn).to_have_count(len(graph["edges"]))
    top = [card(window, story, *pair).bounding_box() for pair in (("planner", story.goal),)]
    below = card(window, story, "analyst", "Compare both").bounding_box()
    assert top[0] is not None and below is not None and top[0]["y"] < below["y"]
    window.shot("session-graph")
    window.is_accessible()


@pytest.mark.req(174, 176, 177, 178)
def test_a_step_tells_why_what_with_which_sources_and_what_it_remembers(
    deployment: Server, opened: Open, story: Story
) -> None:
    window = opened(deployment, f"/sessions/{story.session}?step={story.search}")
    expect(chapter(window, "Intent")).to_contain_text("Search for the fiscal year")
    considered = chapter(window, "Alternatives")
    expect(considered).to_contain_text("Ask a news aggregator because secondary source")
    expect(chapter(window, "Action").get_by_label("Tool input")).to_contain_text("NVDA 10-K revenue 2023")
    expect(chapter(window, "Action")).to_contain_text("Retrieved 10-K")
    expect(chapter(window, "Citations").get_by_role("link", name="10-K")).to_have_attribute(
        "href", "https://www.sec.gov/10-K"
    )
    expect(chapter(window, "Memory")).to_contain_text(story.fact)
    expect(chapter(window, "Cost")).to_contain_text("ReAct")
    window.shot("session-step")
    card(window, story, "analyst", "Compare both").click()
    expect(chapter(window, "Memory").get_by_label("Read from memory")).to_contain_text(story.fact)


@pytest.mark.req(151, 179)
def test_reasoning_is_played_as_it_was_thought_and_can_be_skipped(
    deployment: Server, opened: Open, story: Story
) -> None:
    window = opened(deployment, f"/sessions/{story.session}?step={story.search}", calm=False)
    thought = chapter(window, "Reasoning")
    whole = "The filing may say otherwise."
    expect(thought).to_contain_text(whole)
    thought.get_by_text("0.5×").click() if thought.get_by_text("0.5×").count() else None
    thought.get_by_role("button", name="▶ Play").click()
    played = thought.locator("ol[data-playing]")
    expect(played).not_to_contain_text(whole)
    thought.get_by_role("button", name="Skip to the end").click()
    expect(thought.locator("ol").last).to_contain_text(whole)
    calm = opened(deployment, f"/sessions/{story.session}?step={story.search}")
    expect(chapter(calm, "Reasoning")).to_contain_text("reduced motion is on")


@pytest.mark.req(153)
def test_the_graph_is_coloured_by_branch_cost_and_found_in(
    deployment: Server, opened: Open, story: Story
) -> None:
    window = opened(deployment, f"/sessions/{story.session}")
    expect(card(window, story, "planner", story.goal)).to_be_visible()
    window.page.get_by_text("Branch cost", exact=True).click()
    window.at(r"/sessions/.*colour=cost")
    expect(card(window, story, "planner", story.goal)).to_contain_text("$")
    window.role("textbox", "Find in graph").fill("filing")
    expect(window.page.get_by_text(re.compile(r"^\d+ found$"))).to_be_visible()
    window.page.go_back()


def test_the_graph_is_walked_by_keyboard_alone(deployment: Server, opened: Open, story: Story) -> None:
    window = opened(deployment, f"/sessions/{story.session}?step={story.plan}")
    expect(chapter(window, "Intent")).to_contain_text(story.goal)
    window.press("ArrowDown").at(f".*step=({story.search}|{story.filing})")
    window.press("ArrowRight", "ArrowDown").at(f".*step={story.join}")
    window.press("Enter")
    expect(window.role("region", "Step").get_by_role("heading", level=2)).to_be_focused()


@pytest.mark.req(154)
def test_state_is_scrubbed_to_before_a_fact_came_and_the_infection_is_marked(
    deployment: Server, opened: Open, story: Story
) -> None:
    window = opened(deployment, f"/sessions/{story.session}?below=memory&tab=memory")
    window.page.get_by_role("tab", name=re.compile("^Memory")).click()
    memory = window.role("region", "Memory")
    expect(memory).to_contain_text(story.fact)
    slider = window.role("slider", "Moment of the session")
    slider.focus()
    window.press("Home").at(r"/sessions/.*at=\d+")
    expect(memory).not_to_contain_text(story.fact)
    window.role("button", "Back to now").click()
    line = memory.get_by_role("listitem").filter(has_text=story.fact).last
    line.get_by_role("button", name="mark false…").click()
    line.get_by_role("button", name="Mark false and show spread").click()
    window.at(r"/sessions/.*colour=infection")
    expect(window.role("region", "Spread")).to_contain_text(story.who("researcher"))
    expect(card(window, story, "analyst", "Compare both")).to_contain_text(re.compile("affected"))
    window.shot("session-infection")


@pytest.mark.req(154, 158)
def test_blast_radius_and_root_cause_from_a_step(deployment: Server, opened: Open, story: Story) -> None:
    window = opened(deployment, f"/sessions/{story.session}?step={story.search}")
    reach = chapter(window, "Blast radius and root cause")
    reach.get_by_role("button", name="Blast radius").click()
    expect(reach.get_by_role("list", name="Agents reached")).to_contain_text(story.who("analyst"))
    expect(reach).to_contain_text("Minimal cut set")
    expect(window.page.locator("[data-lit]").first).to_be_visible()
    window.press("0")  # only what is in sight is in the page
    card(window, story, "analyst", "Guess the share count").click()
    reach.get_by_role("button", name="Root cause").click()
    expect(reach.get_by_role("status")).to_contain_text("points")


@pytest.mark.req(206)
def test_the_scratchpad_shows_an_intent_as_it_is_said(
    deployment: Server, opened: Open, tmp_path: Path
) -> None:
    with Worker(deployment, tmp_path) as worker:
        worker.works_on()
        window = opened(deployment, f"/sessions/{worker.session}")
        pad = window.role("region", "Scratchpad")
        expect(pad).to_contain_text("Count to 1")
        later = worker.works_on(2)
        expect(pad).to_contain_text(f"Count to {later}")
        # Only visible cards are rendered, and the graph follows its newest step.
        window.page.wait_for_function(
            """([graph, least]) => [...document.querySelectorAll(graph)].some(
              (card) => Number(/Count to (\\d+)/.exec(card.textContent)?.[1] ?? 0) >= least)""",
            arg=["[data-testid=session-graph] :is(button, [role=button])", later],
        )


@pytest.mark.req(156, 158, 207)
def test_pause_in_the_console_stops_the_agents_process_and_unpause_lets_it_go_on(
    deployment: Server, opened: Open, tmp_path: Path
) -> None:
    """The free worker is the clock: while it takes many steps, the paused one takes none."""
    with Worker(deployment, tmp_path / "a") as worker, Worker(deployment, tmp_path / "b") as free:
        worker.works_on()
        window = opened(deployment, f"/sessions/{worker.session}?console_agent={worker.name}")
        console = window.role("region", "Console")
        console.get_by_role("button", name="Pause", exact=True).click()
        stages = console.get_by_role("list", name="State of the pause")
        for word in ("requested", "acknowledged", "confirmed"):
            expect(stages.get_by_role("listitem").filter(has_text=word)).to_have_attribute(
                "data-done", "true"
            )
        expect(console).to_contain_text(f"{worker.name}: paused")
        window.shot("session-paused")
        stopped = worker.count
        free.works_on(10)
        assert worker.count == stopped
        console.get_by_role("button", name="Resume").click()
        expect(console).to_contain_text(f"{worker.name}: running")
        worker.works_on(3)


@pytest.mark.req(209)
def test_an_injected_prompt_is_heard_by_the_agent(deployment: Server, opened: Open, tmp_path: Path) -> None:
    with Worker(deployment, tmp_path) as worker:
        worker.works_on()
        # The page refetches only after ten seconds: the gateway has the agent's heartbeat before it opens.
        until(lambda: ask(deployment, f"/v1/agents/{worker.name}")["liveness"] == "healthy")
        window = opened(deployment, f"/sessions/{worker.session}?console_agent={worker.name}&console=inject")
        field = window.role("textbox", f"Prompt for {worker.name}")
        field.fill("Count by twos")
        expect(window.role("button", "Inject prompt")).to_be_enabled()
        field.focus()
        window.press("Control+Enter")
        expect(field).to_have_value("")
        until(lambda: "Count by twos" in worker.heard)
        window.role("tab", re.compile("^Record")).click()
        record = window.role("region", "Console").get_by_role("row")
        expect(record.filter(has_text=re.compile("inject|prompt", re.IGNORECASE))).to_be_visible()


@pytest.mark.req(208)
def test_a_message_that_a_pause_holds_is_changed_and_then_arrives_changed(
    deployment: Server, opened: Open
) -> None:
    gate = Gate(deployment)
    deployment.http("operator").post(f"/v1/sessions/{gate.session}/pause", json={"agent_id": gate.alice})
    log = step(gate.session, new(), agent=gate.alice, cognition={"intent": "Say it wrongly"})
    log["identity"]["recipient"] = gate.bob
    held = send(deployment, log)
    assert held["state"] == "held"
    window = opened(
        deployment,
        f"/sessions/{gate.session}?console_agent={gate.alice}&console=message&held={held['message_id']}",
    )
    console = window.role("region", "Console")
    console.get_by_role("button", name="Edit message…").click()
    field = window.role("textbox", "New content (a complete message)")
    field.fill(field.input_value().replace("Say it wrongly", "Say it rightly"))
    expect(window.role("figure", "Changes")).to_contain_text("1 removed, 1 added")
    window.shot("session-rewrite")
    window.role("button", "Save, keep held").click()
    until(
        lambda: any(
            one["rewritten"] for one in ask(deployment, "/v1/holds", session_id=gate.session)["items"]
        )
    )
    assert gate.got() == []
    console.get_by_role("button", name="Resume").click()
    (message,) = until(gate.got)
    assert message["cognition"]["intent"] == "Say it rightly"


@pytest.mark.req(155, 180, 183)
def test_a_gate_is_answered_at_its_node_and_shows_as_a_diamond(deployment: Server, opened: Open) -> None:
    gate = Gate(deployment)
    window = opened(deployment, f"/sessions/{gate.session}?step={gate.message_id}")
    waits = chapter(window, "Waiting for approval")
    expect(waits.get_by_role("figure", name="Exact message")).to_be_visible()
    window.shot("session-gate")
    never = waits.get_by_role("button", name=re.compile("Reject"))
    never.click()
    never.click()
    until(lambda: gate.state() == "rejected")
    expect(chapter(window, "Interventions")).to_contain_text("reject")
    expect(window.page.locator(".react-flow__node-diamond")).to_contain_text("reject")
    assert gate.got() == []


@pytest.mark.req(172)
def test_on_a_phone_the_panes_are_tabs(deployment: Server, opened: Open, story: Story) -> None:
    window = opened(deployment, f"/sessions/{story.session}?step={story.search}&tab=step", phone=True)
    expect(chapter(window, "Intent")).to_be_visible()
    window.shot("session-phone")
    window.is_accessible()
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_an_unknown_session_says_so(deployment: Server, opened: Open) -> None:
    window = opened(deployment, None)
    with window.forgiving(r"answer: 404 GET .*/v1/sessions/ses_nobody"):
        window.go("/sessions/ses_nobody").settled()
        expect(window.page.get_by_text("There is no session ses_nobody")).to_be_visible()
