"""God Mode: kill switch until a process stops, instructions until acknowledged, access, budgets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.flows.fleet import ack, inbox, named, say
from tests.flows.server import Server
from tests.flows.test_kill_switch import engage, release
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import ActFirst
from tests.windows.staff import Worker

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def calm(request: pytest.FixtureRequest) -> Iterator[None]:
    """Releases what a test left stopped, for the tests after it."""
    yield
    if "house" in request.fixturenames:
        deployment: Server = request.getfixturevalue("deployment")
        for one in deployment.http("admin").get("/v1/kill-switch").json()["items"]:
            if one["state"] == "engaged":
                release(deployment, one["kill_id"])


def switches(server: Server, target: str) -> list[str]:
    """States of the kill-switches for a class, newest first."""
    items = server.http("admin").get("/v1/kill-switch").json()["items"]
    return [one["state"] for one in items if one["target"] == target]


def type_first(lever: Locator, word: str) -> None:
    form = lever.get_by_role("form", name="First confirmation")
    button = form.get_by_role("button", name="Confirm, 1 of 2")
    field = form.get_by_label(f"Type {word} to confirm")
    expect(field).to_be_focused()
    field.fill(word[:-1])
    expect(button).to_be_disabled()
    field.fill(word)
    button.click()


def type_second(lever: Locator, word: str) -> None:
    form = lever.get_by_role("form", name="Second confirmation")
    form.get_by_label(f"Type stop {word} to confirm").fill(f"stop {word}")
    form.get_by_role("button", name=re.compile(r"^Stop \d+ agents? now")).click()


@pytest.mark.req(120, 226)
def test_a_class_is_stopped_by_two_typed_words_and_goes_on_by_one_s740_s741_s742_s743(
    deployment: Server, opened: Open, tmp_path: Path
) -> None:
    """S740, S741, S742, S743: previewed, typed twice, acknowledged, held, released, delivered, recorded."""
    bob, mute = named("bob"), named("mute")
    say(deployment, bob)
    say(deployment, mute, kind="counter")  # it never listens: told, and heard of no more
    with Worker(deployment, tmp_path) as worker:
        worker.works_on()
        window = opened(deployment, "/god-mode", role="admin")
        page, lever = window.page, window.role("region", "Stop and release")
        expect(lever.get_by_role("status").first).to_contain_text("No kill switch active.")
        lever.get_by_text("Agent type", exact=True).click()
        lever.get_by_label("Which class").select_option("counter")
        window.at(r"/god-mode\?.*target=counter")
        expect(lever.get_by_role("region", name="What will pause")).to_contain_text(worker.name)
        expect(lever.get_by_role("region", name="What keeps running")).to_contain_text("writer 5")
        arm = lever.get_by_role("button", name="Arm")
        expect(arm).to_be_disabled()
        lever.get_by_label("Reason", exact=True).fill("a drill of the windows")
        arm.click()
        expect(lever).to_contain_text("Armed (nothing stopped yet).")
        assert switches(deployment, "counter")[0] == "armed"
        assert say(deployment, mute, bob, kind="counter")["state"] == "forwarded"
        type_first(lever, "counter")
        expect(lever).to_contain_text("Final confirmation.")
        window.is_accessible()
        window.shot("god-mode-second")
        type_second(lever, "counter")
        stopped = lever.get_by_role("article", name="Kill switch for agent type counter")
        expect(stopped.get_by_role("progressbar", name="Gateways enforcing")).to_have_attribute(
            "aria-valuetext", "1/1 gateway enforcing"
        )
        said = stopped.get_by_role("progressbar", name="Agents that acknowledged")
        expect(said).to_have_attribute("aria-valuetext", re.compile(r"^1 of \d+ agents? acknowledged"))
        stopped.get_by_text(re.compile("their messages are held regardless")).click()
        expect(stopped.get_by_role("listitem").filter(has_text=mute)).to_contain_text("last seen")
        expect(stopped.get_by_role("listitem").filter(has_text=worker.name)).to_have_count(0)
        assert say(deployment, mute, bob, kind="counter")["state"] == "held"
        assert len(inbox(deployment, bob)) == 1
        at = worker.count
        expect(stopped).to_contain_text(re.compile(r"[1-9]\d* messages? (is|are) held, none is lost"))
        window.shot("god-mode-thrown")
        # The banner of every page leads to the release of this one.
        window.press("1").at("/fleet")
        page.get_by_role("link", name="Release it in God Mode").press("Enter")
        window.at(r"/god-mode\?kill=kil_")
        assert worker.count <= at + 1
        stopped.get_by_label("Reason for release").fill("the drill is over")
        window.is_accessible()
        window.confirmed("Release agent type counter", "counter")
        until(lambda: len(inbox(deployment, bob)) == 2 or None)
        expect(lever.get_by_role("status").first).to_contain_text("No kill switch active.")
        worker.works_on()
    trail = window.role("region", "Audit trail").get_by_role("row")
    thrown = trail.filter(has_text="kill-switch for class counter: engaged").first
    expect(thrown).to_contain_text("a drill of the windows")
    expect(thrown.get_by_role("link")).to_have_attribute("href", re.compile(r"/forensics/audit\?event=evt_"))
    expect(trail.filter(has_text="kill-switch for class counter: releasing").first).to_contain_text(
        "released"
    )
    lever.get_by_text(re.compile(r"^History")).click()
    expect(lever.get_by_role("row").filter(has_text="agent type counter").first).to_contain_text("✓ released")


@pytest.mark.req(226)
def test_a_sign_in_that_ends_in_the_middle_says_that_nothing_was_thrown_s744_s745(
    deployment: Server, opened: Open
) -> None:
    """S744, S745: input and step are kept; another operator's kill switch is not engaged twice."""
    kind = named("kind")
    say(deployment, named(), kind=kind)
    window = opened(deployment, f"/god-mode?scope=class&target={kind}", role="admin")
    page, lever = window.page, window.role("region", "Stop and release")
    why, arm = (
        lever.get_by_label("Reason", exact=True),
        lever.get_by_role("button", name="Arm"),
    )
    why.fill("it pays twice")
    theirs = engage(deployment, "class", kind)
    expect(lever.get_by_role("status").first).to_contain_text(
        f"agent type {kind} is stopped", ignore_case=True
    )
    with window.forgiving(r"answer: 409 POST"):
        arm.click()
        expect(lever.get_by_role("alert")).to_contain_text(
            re.compile("Not done: kil_.* already stops this scope")
        )
    expect(why).to_have_value("it pays twice")
    release(deployment, theirs)
    until(lambda: switches(deployment, kind) == ["released"] or None)
    arm.click()
    form = lever.get_by_role("form", name="First confirmation")
    form.get_by_label(f"Type {kind} to confirm").fill(kind)
    with window.forgiving(r"answer: 401 ", r"console: WebSocket"):
        # The page polls too; here the command itself discovers it.
        page.route("**/v1/**", ActFirst())
        page.context.clear_cookies()
        form.get_by_role("button", name="Confirm, 1 of 2").click()
        expect(page.get_by_role("alert")).to_contain_text(
            f"The kill switch for agent type {kind} was NOT engaged: it waits for both confirmations"
        )
        page.unroute("**/v1/**")
        window.shot("god-mode-signed-out")
        page.get_by_label("Key", exact=True).fill(deployment.key("admin"))
        window.press("Enter").settled()
    expect(lever.get_by_role("alert")).to_contain_text("Not engaged: your sign-in had ended")
    expect(form.get_by_label(f"Type {kind} to confirm")).to_have_value(kind)
    assert switches(deployment, kind)[0] == "armed"
    form.get_by_role("button", name="Confirm, 1 of 2").click()
    type_second(lever, kind)
    expect(lever.get_by_role("article", name=f"Kill switch for agent type {kind}")).to_contain_text(
        "it pays twice"
    )
    assert switches(deployment, kind)[0] == "engaged"


@pytest.mark.req(227)
def test_instructions_are_drafted_compared_pushed_taken_and_rolled_back_s746_s747_s748(
    deployment: Server, opened: Open
) -> None:
    """S746, S747, S748: nothing is sent by typing; optimistic concurrency; pending agents are listed."""
    kind, agent = named("kind"), named("pupil")
    say(deployment, agent, kind=kind)
    admin = deployment.http("admin")
    window = opened(deployment, "/god-mode", role="admin")
    page, lever = window.page, window.role("region", "Global instructions")
    lever.get_by_role("button", name=re.compile(f"^{kind}")).click()
    window.at(f".*class={kind}")
    lever.get_by_role("button", name="Write the first instructions…").click()
    text = lever.get_by_role("textbox", name=f"New instructions of {kind}")
    push = lever.get_by_role("button", name=f"Push to every {kind}…")
    expect(push).to_be_disabled()
    text.fill("Be kind.\nBe brief.")
    window.press("Escape", "1").at("/fleet")
    page.go_back()
    expect(text).to_have_value("Be kind.\nBe brief.")
    expect(lever.get_by_role("figure", name="Yours")).to_contain_text("2 added")
    assert admin.get(f"/v1/instructions/{kind}").status_code == 404
    # Another admin is first: mine is kept and not issued.
    assert admin.put(f"/v1/instructions/{kind}", json={"text": "Be bold."}).status_code == 201
    expect(lever.get_by_role("alert")).to_contain_text("Version 1 was issued by someone else")
    expect(push).to_be_disabled()
    expect(lever.get_by_role("figure")).to_contain_text("1 removed, 2 added")
    lever.get_by_role("button", name="Overwrite with mine").click()
    push.click()
    window.confirmed(f"Push to {kind}", kind)
    rollout = lever.get_by_role("progressbar", name="Agents that acknowledged the instructions")
    expect(rollout).to_have_attribute("aria-valuetext", "0 of 1 agent acknowledged v2")
    lever.get_by_text(re.compile("1 pending; it was issued")).click()
    expect(lever.get_by_role("listitem").filter(has_text=agent)).to_contain_text("none acknowledged yet")
    window.is_accessible()
    window.shot("god-mode-instructions")
    found = deployment.http("agent").get(f"/v1/agents/{agent}/inbox").json()["items"]
    assert [one["body"]["text"] for one in found if one["kind"] == "instruction"][-1] == "Be kind.\nBe brief."
    ack(deployment, agent, *found)
    expect(rollout).to_have_attribute("aria-valuetext", "1 of 1 agent acknowledged v2")
    lever.get_by_text("History (2)").click()
    lever.get_by_role("button", name=re.compile("version 1$")).click()
    window.at(".*version=1")
    expect(lever.get_by_role("figure")).to_contain_text("2 removed, 1 added")
    window.confirmed("Roll back to version 1", kind)
    expect(lever).to_contain_text("Version 3 is in force")
    assert admin.get(f"/v1/instructions/{kind}").json()["text"] == "Be bold."
    stale = admin.put(f"/v1/instructions/{kind}", json={"text": "x", "was": 2})
    assert (stale.status_code, stale.json()["reason"]) == (409, "stale_instructions")
    trail = window.role("region", "Audit trail").get_by_role("row")
    expect(trail.filter(has_text=f"instructions of {kind}, version 3").first).to_contain_text("you")


@pytest.mark.req(120)
def test_who_may_not_act_sees_god_mode_and_why_also_on_a_phone_s753(deployment: Server, opened: Open) -> None:
    """S753: read only, with the reason at each control; nothing is wider than a phone."""
    cap = {"scope": "tenant", "target": "*", "soft": 100_000, "hard": 200_000}
    assert deployment.http("admin").put("/v1/budgets", json=cap).status_code == 200
    window = opened(
        deployment, "/god-mode?scope=class&target=writer&class=writer", role="viewer", phone=True, light=True
    )
    page, why = window.page, "Your role (viewer) can read but not administer."
    kill, words = window.role("region", "Stop and release"), window.role("region", "Global instructions")
    kill.get_by_label("Reason", exact=True).fill("I would like to")
    expect(kill.get_by_role("button", name="Arm")).to_be_disabled()
    expect(kill).to_contain_text(why)
    expect(kill.get_by_role("region", name="What will pause")).to_contain_text("writer-alpha-1")
    expect(words.get_by_role("button", name=re.compile("^Write "))).to_be_disabled()
    expect(words).to_contain_text(why)
    expect(window.role("region", "Audit trail")).to_contain_text("budget")
    window.is_accessible()
    window.shot("god-mode-phone-light")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("link", name="Users and keys").click()
    expect(window.role("region", "Users and keys")).to_contain_text(why)
    expect(window.role("table", "Role permissions")).to_be_visible()
    page.get_by_role("link", name="Budgets").click()
    expect(window.role("table", "Budgets")).to_contain_text("the whole tenant")
    expect(page.get_by_role("button", name="New budget…")).to_be_disabled()
    window.is_accessible()


@pytest.mark.req(120, 226)
def test_an_empty_house_teaches_and_a_wide_stop_is_released_class_by_class_s754_s755(
    alone: Server, opened: Open
) -> None:
    """S754, S755: what stays stopped has its own kill switch before the wide one is released."""
    window = opened(alone, "/god-mode", role="admin")
    page, lever = window.page, window.role("region", "Stop and release")
    expect(window.role("region", "Global instructions")).to_contain_text("No agent types yet")
    expect(lever.get_by_role("region", name="What will pause")).to_contain_text("0 agents")
    page.get_by_role("link", name="Budgets").click()
    expect(page.get_by_role("main")).to_contain_text("No budgets.")
    for kind in ("reader", "writer"):
        say(alone, f"{kind}-1", kind=kind)
    wide = engage(alone)
    assert say(alone, "writer-1", "reader-1", kind="writer")["state"] == "held"
    window.go(f"/god-mode?kill={wide}")
    stopped = lever.get_by_role("article", name="Kill switch for everything in this tenant")
    stopped.get_by_text("Some agent types first").click()
    stopped.get_by_label("reader (1)").check()
    stopped.get_by_label("Reason for release").fill("readers are fine")
    window.shot("god-mode-release")
    window.confirmed("Resume 1 agent type", "Default")
    expect(lever.get_by_role("status").first).to_contain_text(
        re.compile("agent type writer is stopped", re.I)
    )
    until(lambda: say(alone, "reader-1", kind="reader")["state"] == "forwarded" or None)
    assert say(alone, "writer-1", "reader-1", kind="writer")["state"] == "held"
    assert inbox(alone, "reader-1") == []
    narrow = lever.get_by_role("article", name="Kill switch for agent type writer")
    narrow.get_by_role("button", name="Release…").click()
    narrow.get_by_label("Reason for release").fill("so are writers")
    window.confirmed("Release agent type writer", "writer")
    until(lambda: len(inbox(alone, "reader-1")) == 2 or None)
    with window.forgiving(r"request: ", r"console: WebSocket"):
        alone.stop()
        expect(lever).to_contain_text("Not up to date: The gateway cannot be reached")
