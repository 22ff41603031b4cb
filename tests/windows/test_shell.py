"""The frame around the views: sign-in, keys, URLs, and an unreachable gateway."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from tests.flows.server import Server
from tests.windows.conftest import Open
from tests.windows.looking import VIEWS, Window


def link_of(server: Server) -> str:
    url: str = server.http("operator").post("/v1/logins", json={}).json()["url"]
    return url


def test_the_printed_link_signs_in_with_one_click_and_works_once(deployment: Server, opened: Open) -> None:
    link = link_of(deployment)
    first = opened(deployment, None, role=None)
    first.page.goto(link)
    first.page.get_by_role("button", name="Sign in").click()
    first.settled().at("/fleet")
    expect(first.role("button", re.compile(r"^You: .*operator"))).to_be_visible()
    second = opened(deployment, None, role=None)
    with second.forgiving(r"answer: 401 GET .*/v1/"):
        second.page.goto(link)
        second.at(r"/fleet\?login=used")
        expect(second.page.get_by_text("already used or has expired")).to_be_visible()


def test_a_key_signs_in_and_leads_to_the_page_that_was_wanted(deployment: Server, opened: Open) -> None:
    window = opened(deployment, None, role=None)
    with window.forgiving(r"answer: 40[13] "):
        window.go("/sessions?q=atlas")
        key = window.page.get_by_label("Key", exact=True)
        expect(key).to_be_focused()
        key.fill("obs_nonsense")
        window.press("Enter")
        expect(window.page.get_by_text("Unknown key")).to_be_visible()
        key.fill(deployment.key("operator"))
        window.press("Enter")
        window.settled()
    window.at(r"/sessions\?q=atlas")
    kept = window.page.evaluate("JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
    assert deployment.key("operator") not in kept and "obs_" not in kept


def test_keys_1_to_6_switch_views_and_the_back_button_returns(deployment: Server, opened: Open) -> None:
    """Ruling 40; by keyboard alone."""
    window = opened(deployment, "/fleet")
    for key, path in VIEWS.items():
        window.press(key).at(path)
        here = window.role("navigation", "Views").locator("li [aria-current=page]")
        expect(here).to_have_attribute("href", re.compile(path))
    for path in ("/forensics", "/scheduler"):
        window.page.go_back()
        window.at(path)


def test_escape_closes_the_panel_then_the_drill_down_then_returns_to_the_fleet(
    deployment: Server, opened: Open
) -> None:
    """Ruling 40."""
    session = deployment.http().get("/v1/sessions?limit=1").json()["items"][0]["session_id"]
    window = opened(deployment, f"/sessions/{session}?peek=session:{session}")
    panel = window.role("complementary", re.compile("^Session"))
    expect(panel).to_be_visible()
    window.press("Escape")
    expect(panel).to_be_hidden()
    window.at(f"/sessions/{session}")
    window.press("Escape").at("/sessions$")
    window.press("Escape").at("/fleet$")
    window.press("Escape").at("/fleet$")


def test_a_deep_link_opens_the_same_view_selection_and_filter(deployment: Server, opened: Open) -> None:
    session = deployment.http().get("/v1/sessions?limit=1").json()["items"][0]["session_id"]
    window = opened(deployment, f"/sessions?q=a&peek=session:{session}")
    expect(window.role("complementary", f"Session {session}")).to_be_visible()
    window.page.reload()
    expect(window.role("complementary", f"Session {session}")).to_be_visible()
    window.at(rf"/sessions\?q=a&peek=session:{session}")


def test_help_lists_the_keys_in_force_and_typing_is_not_a_command(deployment: Server, opened: Open) -> None:
    window = opened(deployment, "/registry").press("?")
    help_ = window.role("dialog", "Keyboard shortcuts")
    for says in ("Fleet Command", "God Mode", "Search or run a command"):
        expect(help_.get_by_text(says, exact=False).first).to_be_visible()
    window.press("Escape")
    expect(help_).to_be_hidden()
    window.at("/registry")
    window.press("Control+k")
    expect(window.role("dialog", "Command palette").get_by_role("combobox")).to_be_focused()
    window.page.keyboard.type("1")
    window.at("/registry")


def test_the_palette_goes_to_views_agents_and_sessions(deployment: Server, opened: Open) -> None:
    window = opened(deployment, "/registry").press("Control+k")
    expect(window.role("dialog", "Command palette").get_by_role("combobox")).to_be_focused()
    window.page.keyboard.type("sessio")
    expect(window.role("option").first).to_be_visible()
    window.press("Enter").at("/sessions")
    window.press("Control+k")
    window.page.keyboard.type("writer-beta-1")
    expect(window.role("option", re.compile("writer-beta-1")).first).to_be_visible()
    window.press("Escape")
    expect(window.role("option").first).to_be_hidden()


def test_the_theme_is_switched_and_kept(deployment: Server, opened: Open) -> None:
    window = opened(deployment, "/registry")
    root = window.page.locator("html")
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")
    window.role("button", "Switch to the light theme").click()
    expect(root).to_have_attribute("data-mantine-color-scheme", "light")


def test_the_page_says_when_the_gateway_is_away_and_recovers_by_itself(alone: Server, opened: Open) -> None:
    window = opened(alone, "/fleet")
    standing = window.role("status").filter(has_text=re.compile("live|reconnecting|connecting"))
    expect(standing).to_have_text("live")
    window.page.wait_for_function(  # the other views are at hand
        "() => performance.getEntriesByType('resource').some((one) => /GodMode-.*js/.test(one.name))"
    )
    with window.forgiving(r"net::ERR_", r"WebSocket connection to"):
        alone.kill()
        expect(standing).to_contain_text(re.compile("reconnecting|offline"))
        window.press("2")
        window.at("/sessions")
        window.press("1")
        alone.start()
        expect(standing).to_have_text("live", timeout=30_000)


def test_a_kill_switch_is_seen_on_every_view_with_what_since_when_and_by_whom(
    alone: Server, opened: Open
) -> None:
    window = opened(alone, "/sessions", role="admin")
    http = alone.http("admin")
    asked = {"scope": "global", "reason": "drill of the tests"}
    received = http.post("/v1/kill-switch", json=asked).json()
    for _ in range(2):
        place = f"/v1/kill-switch/{received['kill_id']}/confirm"
        received = received | http.post(place, json={"token": received["token"]}).json()
    assert received["state"] == "engaged"
    banner = window.role("region", "Kill switch")
    expect(banner).to_contain_text(re.compile("everything in this tenant was stopped .* by you"))
    expect(banner).to_contain_text("drill of the tests")
    window.press("3")
    expect(banner).to_be_visible()


def test_a_new_page_begins_with_a_way_past_the_frame(deployment: Server, opened: Open) -> None:
    window: Window = opened(deployment, "/registry").press("Tab")
    expect(window.role("button", "Skip to the view")).to_be_focused()
    window.press("Enter")
    expect(window.role("main")).to_be_focused()


def test_every_view_opens_in_a_browser_whose_language_is_no_language_tag(
    deployment: Server, opened: Open, posix: Browser
) -> None:
    """S1113: Chromium under LANG=C reports `en-US@posix`, at which Intl throws, in libraries too."""
    window = opened(deployment, None, using=posix)
    said = window.page.evaluate("navigator.language")
    assert not window.page.evaluate(
        "tag => { try { new Intl.NumberFormat(tag); return true } catch { return false } }", said
    ), f"this browser's language can be used: {said}"
    for path in VIEWS.values():
        window.go(path).settled()
        expect(window.page.get_by_text("cannot be shown")).to_have_count(0)
    window.go("/fleet").settled()
    expect(window.role("region", "Throughput").get_by_role("img").first).to_be_visible()


def test_a_part_that_fails_takes_nothing_else_of_the_page_and_can_be_tried_again(
    deployment: Server, opened: Open
) -> None:
    """S1114: a response that breaks one panel; the map, the other panels and the frame keep working."""
    window, broken = opened(deployment, None), "**/v1/fleet/health*"
    window.page.route(broken, lambda route: route.fulfill(json={"status": "ok"}))
    with window.forgiving("console: TypeError"):
        window.go("/fleet").settled()
        panel = window.role("region", "Health")
        expect(panel.get_by_role("alert")).to_contain_text("Health cannot be shown")
        expect(window.role("region", "Throughput").get_by_role("img").first).to_be_visible()
        expect(window.page.locator("canvas[role=application]")).to_be_visible()
        expect(window.role("banner")).to_be_visible()
        window.shot("panel-failed")
        window.page.unroute(broken)
        panel.get_by_role("button", name="Try again").click()
        expect(panel).to_contain_text("gateway")
        expect(window.page.get_by_text(re.compile("cannot be shown|! failed"))).to_have_count(0)
