"""The Scheduler: timeline, jobs, dead letters, heartbeats, triggers, each to where it takes effect."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.flows.fleet import beat, inbox
from tests.flows.graphs import new, send_all, step
from tests.flows.server import Server
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import Window

Json = dict[str, Any]


def make(server: Server, name: str, **more: Any) -> Json:
    """A job that does not fire by itself while a test runs."""
    job: Json = {"name": name, "cron": "0 6 29 2 *", "intent": f"Do {name}"}
    job |= {"target": {"kind": "agent", "name": f"{name}-agent"}, "payload": {"mark": name}, "max_tries": 1}
    answer = server.http("operator").post("/v1/jobs", json=job | more)
    assert answer.status_code == 201, answer.text
    made: Json = answer.json()
    return made


def runs(server: Server, job: Json) -> list[Json]:
    items: list[Json] = server.http().get(f"/v1/jobs/{job['job_id']}/runs").json()["items"]
    return items


def killed(server: Server, job: Json, times: int) -> list[Json]:
    """So many runs of it that were given up on, as dead letters; a rule refuses what goes to its agent."""
    http, agent = server.http("operator"), job["target"]["name"]
    beat(server, agent)
    rule = {"effect": "deny", "match": {"sender": ["sys_scheduler"], "recipient": [agent]}}
    rule_id = http.post("/v1/policies", json=rule).json()["rule_id"]
    for _ in range(times):
        assert http.post(f"/v1/jobs/{job['job_id']}/run").status_code == 202

    def dead() -> list[Json]:
        items = http.get("/v1/dead-letters", params={"state": "dead", "limit": 100}).json()["items"]
        mine = [one for one in items if one["source_id"] == job["job_id"]]
        return mine if len(mine) == times else []

    found = until(dead)
    http.delete(f"/v1/policies/{rule_id}")
    return found


def row(window: Window, key: str) -> Locator:
    return window.page.locator(f'tr[data-key="{key}"]')


def aside(window: Window, name: str) -> Locator:
    return window.role("complementary", name)


@pytest.mark.req(118, 215, 216)
def test_a_job_is_made_explained_found_on_the_timeline_run_stopped_and_removed_s644_s645_s646_s648_s649_s653(
    house: Server, opened: Open
) -> None:
    """S644, S645, S646, S648, S649, S653: from the first letter typed to the agent that gets it."""
    name = f"job-{uuid.uuid4().hex[:6]}"
    window = opened(house, "/scheduler?job=new")
    page = window.page
    leader = window.role("status", "Leader of the schedule")
    for words in ("on time", "led by", "epoch", "last tick"):
        expect(leader).to_contain_text(words)
    form = window.role("form", "A new job")
    form.get_by_label("Name", exact=True).fill(name)
    line, zone = form.get_by_label("Cron line"), form.get_by_label("Zone")
    with window.forgiving(r"answer: 422 POST .*/v1/jobs/preview"):
        for cron, words in (
            ("0 25 * * *", "hour: “25” is not possible"),
            ("0 9 * *", "day of week is missing"),
            ("0 0 30 2 *", "day of month: “30” is not possible"),
        ):
            line.fill(cron)
            expect(form).to_contain_text(words)
        line.fill("0 25 * * *")
        expect(form.locator("pre")).to_contain_text("  ^^")
        zone.fill("Europe/Nowhere")
        expect(form).to_contain_text("No such zone.")
        zone.fill("Asia/Tokyo")
        page.keyboard.press("Escape")
        line.fill("0 9 * * 1-5")
        expect(form).to_contain_text("At 09:00 on Monday through Friday (Asia/Tokyo)")
    five = form.get_by_role("list", name="Its next five times").get_by_role("listitem")
    expect(five).to_have_count(5)
    expect(five.first).to_contain_text("09:00:00")
    form.get_by_role("button", name="Put it on the schedule").click()
    expect(form).to_contain_text("Say to whom it goes.")
    expect(form).to_contain_text("Not saved")
    line.fill("* * * * *")
    form.get_by_role("combobox", name="To").or_(form.get_by_label("To", exact=True)).first.click()
    page.get_by_role("option", name="one agent").click()
    form.get_by_label("Named").fill(f"{name}-agent")
    form.get_by_label("Intent: what is to be done").fill("Sweep the floor")
    form.get_by_label("Payload (JSON)").fill('{"room": 7}')
    window.is_accessible()
    window.shot("scheduler-new")
    form.get_by_role("button", name="Put it on the schedule").click()
    window.at(r"/scheduler\?job=job_")
    about = aside(window, "The chosen job")
    expect(about.get_by_role("heading", name=name)).to_be_visible()
    expect(about).to_contain_text("every minute, Asia/Tokyo")
    job_id = page.url.rpartition("job=")[2]
    beat(house, f"{name}-agent")
    about.get_by_role("button", name="Run now").click()
    listed = about.get_by_role("list", name=f"Runs of {name}")
    expect(listed).to_contain_text(re.compile("✓ sent.*by hand"))
    until(lambda: [one for one in inbox(house, f"{name}-agent") if "Sweep the floor" in str(one)])
    listed.get_by_role("button", name="message").first.click()
    window.at(r".*peek=message:")
    window.press("Escape")
    # In the list and on the strip of time: what was, what comes.
    window.role("textbox", "Search jobs by name, target, words").fill(name)
    window.at(rf".*q={name}")
    expect(row(window, job_id)).to_contain_text(re.compile(rf"{name}.*every minute.*in \d+ s|now"))
    expect(row(window, job_id)).to_contain_text("last 1 runs, 0 failed")
    strip = window.role("region", "Timeline")
    strip.get_by_text("± 1 h").click()
    window.at(r".*window=1")
    cells = strip.get_by_role("button", name=re.compile(rf"^{name}, .*planned"))
    expect(cells.first).to_be_visible()
    assert cells.count() > 5
    expect(strip.get_by_role("button", name=re.compile(rf"^{name}, .*1 sent")).first).to_be_visible()
    expect(strip.get_by_text("now", exact=True)).to_be_visible()
    first = strip.get_by_role("button", name=re.compile(rf"^{name}, ")).first
    first.focus()
    at = page.evaluate("document.activeElement.dataset.spot")
    window.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.spot") != at
    window.press("Enter").at(rf".*job={job_id}")
    # Stopped, taken back by undo, stopped again; and removed only after it was said what that means.
    about.get_by_role("button", name="Pause").click()
    expect(page.get_by_text(f"{name} fires no more until it is resumed.")).to_be_visible()
    window.press("u")
    expect(page.get_by_text(f"{name} fires again, from now on.")).to_be_visible()
    expect(about.get_by_text("▸ active")).to_be_visible()
    about.get_by_role("button", name="Delete…").click()
    expect(about).to_contain_text("This cannot be undone; Pause can.")
    about.get_by_role("button", name="No, leave it").click()
    about.get_by_role("button", name="Delete…").click()
    with window.forgiving(r"answer: 404 GET .*/v1/jobs/"):  # it may be asked for once more
        about.get_by_role("button", name=f"Delete {name}").click()
        window.at(rf"/scheduler\?(?!.*job={job_id})")
        assert house.http().get(f"/v1/jobs/{job_id}").status_code == 404
        page.go_back()
        expect(about).to_contain_text("There is no such job here")


@pytest.mark.req(118)
def test_what_was_typed_outlives_a_faster_hand_a_taken_name_and_a_sign_in_that_ended_s642_s647(
    house: Server, opened: Open
) -> None:
    """S642, S647: nothing of mine is lost, nothing of theirs is overwritten unasked."""
    name = f"job-{uuid.uuid4().hex[:6]}"
    job, taken = make(house, name), make(house, f"{name}-taken")
    window = opened(house, f"/scheduler?job={job['job_id']}&edit=1")
    form = window.role("form", "Change the job")
    form.get_by_label("Intent: what is to be done").fill("Mine")
    # Somebody else is faster, between two looks of the page: the gateway itself refuses.
    looks, saved = f"**/v1/jobs/{job['job_id']}", list[str]()

    def hand(one: Route) -> None:
        if one.request.method == "GET" and not saved:
            return one.fulfill(json=job)
        saved.extend([one.request.method] if one.request.method == "PUT" else [])
        return one.continue_()

    window.page.route(looks, hand)
    body = {key: job[key] for key in ("name", "cron", "target", "payload", "max_tries")}
    theirs = house.http("admin").put(f"/v1/jobs/{job['job_id']}", json=body | {"intent": "Theirs"})
    assert theirs.status_code == 200
    with window.forgiving(r"answer: 409 PUT"):
        with window.page.expect_response(lambda one: one.status == 409):
            form.get_by_role("button", name="Save the change").click()
        window.page.unroute(looks)
        expect(form.get_by_role("alert")).to_contain_text("while you did. Yours is kept and not saved.")
    expect(form.get_by_label("Intent: what is to be done")).to_have_value("Mine")
    assert house.http().get(f"/v1/jobs/{job['job_id']}").json()["intent"] == "Theirs"
    form.get_by_role("button", name="Go on with mine, over theirs").click()
    form.get_by_label("Name", exact=True).fill(taken["name"])
    with window.forgiving(r"answer: 409 PUT"):
        form.get_by_role("button", name="Save the change").click()
        expect(form).to_contain_text("another job is called so already")
    form.get_by_label("Name", exact=True).fill(name)
    # The sign-in ends in the middle of it: the page notices by itself, before or with the next act.
    with window.forgiving(r"answer: 401", r"WebSocket", r"answer: 403"):
        window.page.context.clear_cookies()
        key = window.page.get_by_role("textbox", name="Key").or_(window.page.get_by_label("Key")).first
        expect(key).to_be_visible()
        key.fill(house.key("operator"))
        window.role("button", "Sign in").click()
        expect(form.get_by_label("Intent: what is to be done")).to_have_value("Mine")
    # Its heading stood there before it was saved: what was answered tells that it is.
    with window.page.expect_response(lambda one: one.request.method == "PUT" and one.ok):
        form.get_by_role("button", name="Save the change").click()
    expect(aside(window, "The chosen job").get_by_role("heading", name=name)).to_be_visible()
    assert house.http().get(f"/v1/jobs/{job['job_id']}").json()["intent"] == "Mine"


@pytest.mark.req(118, 217)
def test_dead_letters_are_read_tried_again_and_let_go_one_and_many_s650_s656(
    house: Server, opened: Open
) -> None:
    """S650, S656: why, what it carried, what died; and how many of how many were done."""
    name = f"job-{uuid.uuid4().hex[:6]}"
    job = make(house, name)
    letters = killed(house, job, 4)
    chosen = letters[0]["letter_id"]
    window = opened(house, f"/scheduler?board=letters&q={name}&letter={chosen}")
    page = window.page
    about = aside(window, "The chosen letter")
    for words in ("policy_denied", "refused 1 times", '"mark"', name):
        expect(about).to_contain_text(words)
    table = window.role("table", "Dead letters")
    expect(table.get_by_role("row")).to_have_count(5)
    window.is_accessible()
    window.shot("scheduler-letters")
    about.get_by_role("button", name="Retry once").click()
    expect(about).to_contain_text("↻ tried again")
    until(lambda: any(run["state"] == "sent" for run in runs(house, job)))
    # The link leads to what died; from there, why.
    about.get_by_role("link", name=name).click()
    detail = aside(window, "The chosen job")
    expect(detail.get_by_role("list", name=f"Runs of {name}")).to_contain_text("Why: a policy rule denies it")
    page.go_back()
    expect(table.get_by_role("row")).to_have_count(4)
    # Two chosen by keyboard, let go together; the rest by one more word.
    boxes = table.get_by_role("checkbox")
    for n in (0, 1):
        boxes.nth(n).focus()
        window.press("Space")
    bar = window.role("search", "Filter the letters")
    bar.get_by_role("button", name="Discard 2 letters…").click()
    expect(bar).to_contain_text("This cannot be undone.")
    window.press("Escape")
    bar.get_by_role("button", name="Discard 2 letters…").click()
    bar.get_by_role("button", name="Discard 2 letters", exact=True).click()
    expect(page.get_by_text("2 letters of 2 let go.")).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(2)
    # Somebody else was first: the count says so.
    http = house.http("operator")
    left = http.get("/v1/dead-letters", params={"state": "dead", "limit": 100}).json()["items"]
    mine = next(one for one in left if one["source_id"] == job["job_id"])
    bar.get_by_role("button", name="Retry 1 letter…").click()
    assert http.post(f"/v1/dead-letters/{mine['letter_id']}/discard").status_code == 200
    bar.get_by_role("button", name="Retry 1 letter", exact=True).click()
    expect(
        page.get_by_text(re.compile(r"0 letters of 1 tried once more\. 1 letter could not be"))
    ).to_be_visible()
    bar.get_by_text("Let go", exact=True).click()
    window.at(r".*state=discarded")
    expect(table.get_by_role("row")).to_have_count(4)


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Server]:
    """A gateway that looks for heartbeats every second."""
    brisk = {"OBSERVATORY_HEARTBEAT_CHECK_S": "1", "OBSERVATORY_HEARTBEAT_TIMEOUT_S": "600"}
    with Server(tmp_path / "data", environment=brisk) as running:
        yield running


@pytest.mark.req(118, 218, 219)
def test_hearts_fade_zombies_go_triggers_tell_and_empty_or_away_is_said_s643_s651_s652_s655(
    quick: Server, opened: Open
) -> None:
    """S643, S651, S652, S655: as an admin, from nothing to a thousand agents to a gateway that is gone."""
    window = opened(quick, "/scheduler", role="admin")
    page = window.page
    for board, words in (
        ("Jobs", "No job yet."),
        ("Dead letters", "Nothing was given up on."),
        ("Heartbeats", "No agent is known yet."),
        ("Scaling", "No trigger yet."),
    ):
        window.role("navigation", "Boards of the scheduler").get_by_role("link", name=board).click()
        expect(page.get_by_text(words)).to_be_visible()
    expect(window.role("region", "Timeline")).to_contain_text("Nothing is scheduled.")
    # A trigger, refused in words, made, and its level told.
    window.role("button", "New trigger…").click()
    form = window.role("form", "A new trigger")
    form.get_by_label("Threshold").fill("lots")
    form.get_by_role("button", name="Make the trigger").click()
    for words in ("Give it a name.", "Give a number."):
        expect(form).to_contain_text(words)
    form.get_by_label("Name", exact=True).fill("More clerks")
    form.get_by_label("Named").fill("clerk")
    form.get_by_label("Threshold").fill("2")
    form.get_by_role("button", name="Make the trigger").click()
    about = aside(window, "The chosen trigger")
    expect(about).to_contain_text("messages not acknowledged of type clerk ≥ 2")
    expect(about.get_by_role("list", name="Levels")).to_contain_text(re.compile("type:clerk.*0 of 2"))
    session = new()
    many = [step(session, new(), agent=f"clerk-{n:04}") for n in range(1_000)]
    for log in many:
        log["identity"]["agent_type"] = "clerk"
    send_all(quick, many)
    for _ in range(3):
        job = make(quick, f"job-{uuid.uuid4().hex[:6]}", target={"kind": "capability", "name": "clerk"})
        quick.http("operator").post(f"/v1/jobs/{job['job_id']}/run")
    expect(about).to_contain_text("! past it")
    expect(about).to_contain_text("▲ triggered")
    about.get_by_role("button", name="Mute 30 min").click()
    expect(about).to_contain_text("‖ muted")
    about.get_by_role("button", name="Test").click()
    expect(page.get_by_text("has nobody to tell")).to_be_visible()
    window.is_accessible()
    # Hearts: one beats, one fell silent, the others were never heard.
    beat(quick, "clerk-0007")
    window.go("/scheduler?board=heartbeats").settled()
    cells = page.locator("[data-cell]")
    expect(cells).to_have_count(1_000)
    expect(page.locator('[data-cell="clerk-0007"]')).to_have_attribute("aria-label", re.compile("silent"))
    silent = window.role("list", "Silent agents")
    expect(silent).to_contain_text(re.compile(r"! silent.*clerk-0007.*silent for \d+ s"))
    window.press("t")
    window.press("End")
    assert page.evaluate("document.activeElement.dataset.cell") == "clerk-0999"
    window.press("ArrowUp", "Enter").at(r".*peek=agent:clerk-")
    window.press("Escape")
    window.shot("scheduler-hearts")
    window.role("button", re.compile(r"^silent \d")).click()
    window.at(r".*live=zombie")
    expect(cells).to_have_count(1)
    window.is_accessible()
    silent.get_by_role("button", name="Evict… clerk-0007").click()
    expect(silent).to_contain_text("its next heartbeat brings it back")
    silent.get_by_role("button", name="Evict clerk-0007", exact=True).click()
    expect(silent).to_contain_text("× evicted")
    assert quick.http().get("/v1/agents/clerk-0007").json()["liveness"] == "evicted"
    # Gone: what was seen stays, and a command without an answer is not called undone.
    window.go(f"/scheduler?job={job['job_id']}").settled()
    detail = aside(window, "The chosen job")
    expect(detail.get_by_role("list", name=f"Runs of {job['name']}")).to_be_visible()
    with window.forgiving(r"net::ERR_", r"WebSocket connection to"):
        quick.kill()
        detail.get_by_role("button", name="Run now").click()
        expect(page.get_by_text(re.compile("Running it: the gateway did not answer"))).to_be_visible()
        expect(page.get_by_text(re.compile("Not up to date")).first).to_be_visible()
        expect(row(window, job["job_id"])).to_be_visible()
        page.goto("about:blank")


@pytest.mark.req(118, 216)
def test_on_a_phone_a_viewer_sees_all_and_is_told_why_nothing_can_be_done_s654_s655(
    house: Server, opened: Open
) -> None:
    """S654, S655: in the light, at 390 pixels; the strip stays readable."""
    name = f"job-{uuid.uuid4().hex[:6]}"
    job = make(house, name, cron="*/30 * * * *", max_tries=1)
    (letter,) = killed(house, job, 1)
    window = opened(house, f"/scheduler?job={job['job_id']}&q={name}", role="viewer", phone=True, light=True)
    why = re.compile(r"Your role \(viewer\) may read")
    detail = aside(window, "The chosen job")
    for button in ("Run now", "Pause", "Edit…", "Delete…"):
        found = detail.get_by_role("button", name=button)
        expect(found).to_be_disabled()
        expect(found).to_have_attribute("title", why)
    expect(window.role("button", "New job…")).to_be_disabled()
    strip = window.role("region", "Timeline")
    failed = strip.get_by_role("button", name=re.compile(rf"^{name}, .*1 failed"))
    expect(failed).to_be_visible()
    box = failed.bounding_box()
    assert box is not None and box["width"] >= 20 and box["height"] >= 20
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
    window.is_accessible()
    window.shot("scheduler-phone")
    window.go(f"/scheduler?board=letters&letter={letter['letter_id']}").settled()
    expect(aside(window, "The chosen letter").get_by_role("button", name="Retry once")).to_be_disabled()
    expect(aside(window, "The chosen letter")).to_contain_text(why)
    window.go("/scheduler?board=scaling").settled()
    expect(window.role("button", "New trigger…")).to_be_disabled()
    window.go("/scheduler?board=heartbeats").settled()
    expect(window.page.locator("[data-cell]").first).to_be_visible()
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
