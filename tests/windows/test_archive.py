"""The message archive and the message page: search, facets, navigation, exact bytes."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.flows.answered import acceptable
from tests.flows.graphs import new, send, send_all, step
from tests.flows.insight import settled
from tests.flows.server import Server
from tests.samples import MESSAGE_TYPES, envelope, full_decision_log
from tests.windows.conftest import Open
from tests.windows.looking import Window

ESC, RLO = "\x1b", "\u202e"


def talk(server: Server, mark: str, count: int = 12) -> tuple[str, list[dict[str, Any]]]:
    """Two agents with messages about a unique subject."""
    session = new()
    lines = [
        step(
            session,
            f"{mark}-{n}",
            agent=f"ann-{mark}" if n % 3 else f"bea-{mark}",
            cognition={"intent": f"Settle the {mark} refund number {n}", "reasoning_chain": ["because"]},
            action={"status": "failure" if n == 4 else "success", "tool_output_summary": "done"},
        )
        for n in range(count)
    ]
    answers = send_all(server, lines)
    settled(server)
    return session, answers


def rows(window: Window) -> Any:
    return window.role("table", "Messages").locator("tr[data-index]")


@pytest.mark.req(119, 220, 221)
def test_the_archive_is_asked_explained_narrowed_and_walked_s663_s664_s666(
    deployment: Server, opened: Open
) -> None:
    """S660, S663, S664, S666: a query explains itself; list, timeline and agents are in the URL."""
    mark = f"quokka{uuid.uuid4().hex[:6]}"
    talk(deployment, mark)
    window = opened(deployment, "/forensics")
    page = window.page
    expect(rows(window).first).to_be_visible()
    expect(page.get_by_text("All messages, newest first.")).to_be_visible()
    window.press("f")
    field = window.role("combobox", "Search the archive")
    expect(field).to_be_focused()
    # Completion, by keyboard: a filter, then one of its values.
    field.fill("stat")
    expect(window.role("option")).to_have_text([re.compile("^state:"), re.compile("^status:")])
    field.press("ArrowDown")
    field.press("ArrowDown")
    field.press("Enter")
    expect(field).to_have_value("status:")
    expect(window.role("option").first).to_have_text(re.compile("^status:success"))
    field.press("Escape")
    expect(window.role("listbox")).to_have_count(0)
    # Parse errors are marked under their very characters, and the rest is searched.
    field.fill(f'"{mark}" cost:dear')
    alert = window.role("alert")
    expect(alert).to_contain_text("At “cost:dear”: ! cost:dear is not a number; write cost:<0.5")
    expect(rows(window)).to_have_count(12)
    take = window.role("button", "remove cost:dear")
    take.click()
    expect(field).to_have_value(f'"{mark}"')
    expect(alert).to_have_count(0)
    expect(page.get_by_text(f"Messages with “{mark}”, or with similar meaning")).to_be_visible()
    # Each hit shows why it matched, with its words marked.
    first = rows(window).first
    expect(first.locator("mark").first).to_have_text(mark)
    expect(first).to_contain_text(f"“{mark}”")
    window.is_accessible()
    # A facet adds a filter, shown as a chip.
    beside = window.role("complementary", "Filters")
    beside.get_by_role("button", name=re.compile(f"^bea-{mark}")).click()
    window.at(rf".*{mark}.*agent:bea-{mark}")
    expect(rows(window)).to_have_count(4)
    page.go_back()
    expect(rows(window)).to_have_count(12)
    # Space peeks, J steps on, Enter opens, Esc returns.
    field.press("Escape")
    window.press("t", "Space").at(r".*peek=message:msg_")
    expect(window.role("complementary", re.compile("^Message msg_"))).to_contain_text("Position in the chain")
    before = page.url
    window.press("j")
    expect(page).not_to_have_url(before)
    window.press("Escape", "t", "Enter").at(r"/forensics/message/msg_")
    expect(window.role("heading", re.compile("^Message [\\d,]+: (ann|bea)-"))).to_be_visible()
    page.go_back()
    # Which agents discussed it.
    window.press("g").at(r".*show=agents")
    agents = window.role("table", "Agents with matches")
    expect(agents.locator("tr[data-index]")).to_have_count(2)
    expect(agents.locator("tr[data-index]").first).to_contain_text(re.compile(rf"ann-{mark}\s*8"))
    window.press("t", "Enter").at(rf".*agent:ann-{mark}")
    expect(rows(window)).to_have_count(8)
    # Messages over time: all of them, narrowed to one bar by keyboard, and wide again.
    field.fill(f'"{mark}"')
    expect(rows(window)).to_have_count(12)
    field.press("Escape")
    window.press("h").at(r".*show=timeline")
    chart = window.role("figure", "Messages over time")
    expect(chart).to_contain_text("12 messages")
    bar = chart.get_by_role("button", name=re.compile(r": [1-9]\d* messages?$")).last
    bar.focus()
    bar.press("Enter")
    window.at(r".*since:.*until:")
    window.is_accessible()
    chart.get_by_role("button", name="any time").click()
    expect(chart).to_contain_text("12 messages")
    window.press("l")
    expect(chart).to_have_count(0)
    field.fill('"nobody said zzz"')
    expect(page.get_by_text("No matches.")).to_be_visible()


@pytest.mark.req(119)
def test_a_message_is_told_as_a_story_to_its_bytes_and_place_s667_s668_s669(
    deployment: Server, opened: Open
) -> None:
    """S667, S668, S669: all types, hostile text inert, a megabyte, an unknown type, digest and neighbours."""
    session = new()
    ids = {
        kind: deployment.send(acceptable(deployment, kind), "admin").json()["message_id"]
        for kind in MESSAGE_TYPES
    }
    log = full_decision_log()
    log["meta"] |= {"session_id": session, "step_id": f"s-{uuid.uuid4().hex[:8]}", "parent_step_id": None}
    ids["decision_log"] = send(deployment, log)["message_id"]
    hostile = f"<img src=x onerror=\"document.title='gone'\"> {ESC}[31mred pay {RLO}bob " + "x" * 900_000
    ids["hostile"] = send(
        deployment, envelope("text", payload={"content": hostile}, metadata={"session_id": session})
    )["message_id"]
    window = opened(deployment, f"/forensics/message/{ids['decision_log']}")
    page = window.page
    story = window.role("region", "Content")
    for chapter in ("Reasoning", "Action", "Cost", "Agent"):
        expect(story.get_by_role("region", name=chapter, exact=True)).to_be_visible()
    expect(window.role("figure", "Exact message")).to_contain_text(
        "✓ matches these bytes, hashed in this browser"
    )
    chain = window.role("list", "Position in the chain")
    expect(chain.get_by_role("listitem")).to_have_count(3)
    expect(page.get_by_text("Verified here: each names the hash of the previous one.")).to_be_visible()
    window.is_accessible()
    before = page.url
    window.press("k")
    expect(page).not_to_have_url(before)
    expect(window.role("heading", re.compile("^Message"))).to_be_visible()
    words = {
        "decision_request": "asks for a decision",
        "decision_response": "decides",
        "status_alert": "raises an alert",
        "artifact_share": "shares an artifact",
        "action_confirmation": "confirms an action",
        "heartbeat": "sends a heartbeat",
        "text": "writes",
        "system_event": "reports a platform event",
    }
    assert set(words) == set(MESSAGE_TYPES)
    for kind, does in words.items():
        page.evaluate(
            "path => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')); }",
            f"/forensics/message/{ids[kind]}",
        )
        expect(window.role("heading", re.compile(f"{does}$"))).to_be_visible()
        expect(story.get_by_role("region").first).to_be_visible()
    # A megabyte of invisible characters: shown by name, truncated, and the page stays responsive.
    window.go(f"/forensics/message/{ids['hostile']}")
    expect(story).to_contain_text("<img src=x onerror=")
    expect(story).to_contain_text("␛[31mred pay ⟨U+202E⟩bob")
    expect(story.get_by_role("button", name=re.compile("more characters"))).to_be_visible()
    assert page.title() != "gone" and page.locator("main img").count() == 0
    window.press("?")
    expect(window.role("dialog")).to_be_visible()
    window.press("Escape")

    # An unknown message type is shown as JSON.
    def future(route: Route) -> None:
        received = route.fetch()
        found = received.json() | {
            "message_type": "telepathy",
            "message": {"payload": {"thought": "of tomorrow"}},
        }
        route.fulfill(response=received, json=found)

    page.route(re.compile(rf"/v1/messages/{ids['text']}$"), future)
    window.go(f"/forensics/message/{ids['text']}")
    expect(page.get_by_text("Unknown message type")).to_be_visible()
    expect(window.role("group", "The message")).to_contain_text("of tomorrow")
    with window.forgiving(r"answer: 404 GET"):
        window.go("/forensics/message/msg_nobody")
        expect(page.get_by_text("There is no message or step msg_nobody in this tenant.")).to_be_visible()


@pytest.mark.req(220)
def test_the_archive_on_a_phone_empty_away_and_come_back_s665(alone: Server, opened: Open) -> None:
    """S665: empty states, live updates, an unreachable gateway, input is kept."""
    window = opened(alone, "/forensics", phone=True, light=True, role="viewer")
    page = window.page
    expect(page.get_by_text("No messages archived yet.")).to_be_visible()
    mark = f"tapir{uuid.uuid4().hex[:6]}"
    talk(alone, mark, 130)
    expect(rows(window).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # Further down nothing shifts: newer hits are offered.
    expect(page.get_by_text("scroll for more").or_(page.get_by_text("130 hits"))).to_be_visible()
    box = window.role("table", "Messages").locator("..")
    box.evaluate("box => { box.scrollTop = 60 * 28; }")
    expect(rows(window).filter(has_text="number 60")).to_have_count(1)
    # The end moves once the next page is loaded: keep scrolling.
    oldest = rows(window).filter(has_text="number 0")
    for _ in range(60):
        box.evaluate("box => { box.scrollTop = box.scrollHeight; }")
        if oldest.count():
            break
        page.wait_for_timeout(250)
    expect(oldest).to_have_count(1)
    send(alone, step(new(), f"late-{mark}", cognition={"intent": "late", "reasoning_chain": []}))
    newer = window.role("button", re.compile("1 newer, show"))
    expect(newer).to_be_visible()
    expect(rows(window).filter(has_text="number 0")).to_have_count(1)
    newer.click()
    expect(rows(window).filter(has_text="late")).to_have_count(1)
    window.is_accessible()
    with window.forgiving(r"net::ERR_", r"WebSocket connection to"):
        alone.kill()
        field = window.role("combobox", "Search the archive")
        field.fill(f'"{mark}"')
        expect(page.get_by_text(re.compile("Not up to date: The gateway cannot be reached"))).to_be_visible()
        expect(field).to_have_value(f'"{mark}"')
        expect(rows(window).first).to_be_visible()
        alone.start()
        expect(rows(window).first.locator("mark").first).to_have_text(mark)
