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
    """A job that is not due while a test runs."""
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
    """Failed runs as dead letters; a rule refuses messages to its agent."""
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
    deployment: Server, opened: Open
) -> None:
    """S644, S645, S646, S648, S649, S653: from the form to the agent that receives it."""
    name = f"job-{uuid.uuid4().hex[:6]}"
    window = opened(deployment, "/scheduler?job=new")
    page = window.page
    leader = window.role("status", "Scheduler leader")
    for words in ("on time", "leader:", "epoch", "last tick"):
        expect(leader).to_contain_text(words)
    form = window.role("form", "New job")
    form.get_by_label("Name", exact=True).fill(name)
    line, zone = form.get_by_label("Cron expression"), form.get_by_label("Zone")
    with window.forgiving(r"answer: 422 POST .*/v1/jobs/preview"):
        for cron, words in (
            ("0 25 * * *", "hour: “25” is invalid"),
            ("0 9 * *", "day of week is missing"),
            ("0 0 30 2 *", "day of month: “30” is invalid"),
        ):
            line.fill(cron)
            expect(form).to_contain_text(words)
        line.fill("0 25 * * *")
        expect(form.locator("pre")).to_contain_text("  ^^")
        zone.fill("Europe/Nowhere")
        expect(form).to_contain_text("Unknown time zone.")
        zone.fill("Asia/Tokyo")
        page.keyboard.press("Escape")
        line.fill("0 9 * * 1-5")
        expect(form).to_contain_text("At 09:00 on Monday through Friday (Asia/Tokyo)")
    five = form.get_by_role("list", name="Next five runs").get_by_role("listitem")
    expect(five).to_have_count(5)
    expect(five.first).to_contain_text("09:00:00")
    form.get_by_role("button", name="Create job").click()
    expect(form).to_contain_text("Enter a target.")
    expect(form).to_contain_text("Not saved")
    line.fill("* * * * *")
    form.get_by_role("combobox", name="To").or_(form.get_by_label("To", exact=True)).first.click()
    page.get_by_role("option", name="one agent").click()
    form.get_by_label("Target").fill(f"{name}-agent")
    form.get_by_label("Intent").fill("Sweep the floor")
    form.get_by_label("Payload (JSON)").fill('{"room": 7}')
    window.is_accessible()
    window.shot("scheduler-new")
    form.get_by_role("button", name="Create job").click()
    window.at(r"/scheduler\?job=job_")
    about = aside(window, "Selected job")
    expect(about.get_by_role("heading", name=name)).to_be_visible()
    expect(about).to_contain_text("every minute, Asia/Tokyo")
    job_id = page.url.rpartition("job=")[2]
    beat(deployment, f"{name}-agent")
    about.get_by_role("button", name="Run now").click()
    listed = about.get_by_role("list", name=f"Runs of {name}")
    expect(listed).to_contain_text(re.compile("✓ sent.*manual"))
    until(lambda: [one for one in inbox(deployment, f"{name}-agent") if "Sweep the floor" in str(one)])
    listed.get_by_role("button", name="message").first.click()
    window.at(r".*peek=message:")
    window.press("Escape")
    # In the list and on the timeline: past and upcoming.
    window.role("textbox", "Search jobs by name, target, schedule").fill(name)
    window.at(rf".*q={name}")
    expect(row(window, job_id)).to_contain_text(re.compile(rf"{name}.*every minute.*in \d+ s|now"))
    expect(row(window, job_id)).to_contain_text("last 1 run, 0 failed")
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
    # Paused, undone, paused again; and removed after a confirmation.
    about.get_by_role("button", name="Pause").click()
    expect(page.get_by_text(f"{name} is paused; it does not run until resumed.")).to_be_visible()
    window.press("u")
    expect(page.get_by_text(f"{name} is resumed.")).to_be_visible()
    expect(about.get_by_text("▸ active")).to_be_visible()
    about.get_by_role("button", name="Delete…").click()
    expect(about).to_contain_text("This cannot be undone; Pause can.")
    about.get_by_role("button", name="Cancel").click()
    about.get_by_role("button", name="Delete…").click()
    with window.forgiving(r"answer: 404 GET .*/v1/jobs/"):  # it may be asked for once more
        about.get_by_role("button", name=f"Delete {name}").click()
        window.at(rf"/scheduler\?(?!.*job={job_id})")
        assert deployment.http().get(f"/v1/jobs/{job_id}").status_code == 404
        page.go_back()
        expect(about).to_contain_text("There is no such job")


@pytest.mark.req(118)
def test_what_was_typed_outlives_a_faster_hand_a_taken_name_and_a_sign_in_that_ended_s642_s647(
    deployment: Server, opened: Open
) -> None:
    """S642, S647: no input is lost, and no concurrent change is overwritten unasked."""
    name = f"job-{uuid.uuid4().hex[:6]}"
    job, taken = make(deployment, name), make(deployment, f"{name}-taken")
    window = opened(deployment, f"/scheduler?job={job['job_id']}&edit=1")
    form = window.role("form", "Change job")
    form.get_by_label("Intent").fill("Mine")
    # Another operator is faster, between two refetches: the gateway refuses.
    looks, saved = f"**/v1/jobs/{job['job_id']}", list[str]()

    def hand(one: Route) -> None:
        if one.request.method == "GET" and not saved:
            return one.fulfill(json=job)
        saved.extend([one.request.method] if one.request.method == "PUT" else [])
        return one.continue_()

    window.page.route(looks, hand)
    body = {key: job[key] for key in ("name", "cron", "target", "payload", "max_tries")}
    theirs = deployment.http("admin").put(f"/v1/jobs/{job['job_id']}", json=body | {"intent": "Theirs"})
    assert theirs.status_code == 200
    with window.forgiving(r"answer: 409 PUT"):
        with window.page.expect_response(lambda one: one.status == 409):
            form.get_by_role("button", name="Save").click()
        window.page.unroute(looks)
        expect(form.get_by_role("alert")).to_contain_text(
            "while you were editing. Your input is kept, not saved."
        )
    expect(form.get_by_label("Intent")).to_have_value("Mine")
    assert deployment.http().get(f"/v1/jobs/{job['job_id']}").json()["intent"] == "Theirs"
    form.get_by_role("button", name="Overwrite with mine").click()
    form.get_by_label("Name", exact=True).fill(taken["name"])
    with window.forgiving(r"answer: 409 PUT"):
        form.get_by_role("button", name="Save").click()
        expect(form).to_contain_text("a job with that name already exists")
    form.get_by_label("Name", exact=True).fill(name)
    # The sign-in expires in the middle: the page notices, before or with the next command.
    with window.forgiving(r"answer: 401", r"WebSocket", r"answer: 403"):
        window.page.context.clear_cookies()
        key = window.page.get_by_role("textbox", name="Key").or_(window.page.get_by_label("Key")).first
        expect(key).to_be_visible()
        key.fill(deployment.key("operator"))
        window.role("button", "Sign in").click()
        expect(form.get_by_label("Intent")).to_have_value("Mine")
    # Its heading was there before saving: the response shows that it is saved.
    with window.page.expect_response(lambda one: one.request.method == "PUT" and one.ok):
        form.get_by_role("button", name="Save").click()
    expect(aside(window, "Selected job").get_by_role("heading", name=name)).to_be_visible()
    assert deployment.http().get(f"/v1/jobs/{job['job_id']}").json()["intent"] == "Mine"


@pytest.mark.req(118, 217)
def test_dead_letters_are_read_tried_again_and_let_go_one_and_many_s650_s656(
    deployment: Server, opened: Open
) -> None:
    """S650, S656: reason, payload, source; and how many of how many were processed."""
    name = f"job-{uuid.uuid4().hex[:6]}"
    job = make(deployment, name)
    letters = killed(deployment, job, 4)
    chosen = letters[0]["letter_id"]
    window = opened(deployment, f"/scheduler?board=letters&q={name}&letter={chosen}")
    page = window.page
    about = aside(window, "Selected dead letter")
    for words in ("policy_denied", "refused 1 time,", '"mark"', name):
        expect(about).to_contain_text(words)
    table = window.role("table", "Dead letters")
    expect(table.get_by_role("row")).to_have_count(5)
    window.is_accessible()
    window.shot("scheduler-letters")
    about.get_by_role("button", name="Retry").click()
    expect(about).to_contain_text("↻ retried")
    until(lambda: any(run["state"] == "sent" for run in runs(deployment, job)))
    # The link leads to the failed run; from there, the reason.
    about.get_by_role("link", name=name).click()
    detail = aside(window, "Selected job")
    expect(detail.get_by_role("list", name=f"Runs of {name}")).to_contain_text(
        "Reason: denied by a policy rule"
    )
    page.go_back()
    expect(table.get_by_role("row")).to_have_count(4)
    # Two selected by keyboard and discarded together; then the rest.
    boxes = table.get_by_role("checkbox")
    for n in (0, 1):
        boxes.nth(n).focus()
        window.press("Space")
    bar = window.role("search", "Filter the dead letters")
    bar.get_by_role("button", name="Discard 2 dead letters…").click()
    expect(bar).to_contain_text("This cannot be undone.")
    window.press("Escape")
    bar.get_by_role("button", name="Discard 2 dead letters…").click()
    bar.get_by_role("button", name="Discard 2 dead letters", exact=True).click()
    expect(page.get_by_text("2 of 2 dead letters discarded.")).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(2)
    # Another operator was first: the count shows it.
    http = deployment.http("operator")
    left = http.get("/v1/dead-letters", params={"state": "dead", "limit": 100}).json()["items"]
    mine = next(one for one in left if one["source_id"] == job["job_id"])
    bar.get_by_role("button", name="Retry 1 dead letter…").click()
    assert http.post(f"/v1/dead-letters/{mine['letter_id']}/discard").status_code == 200
    bar.get_by_role("button", name="Retry 1 dead letter", exact=True).click()
    expect(
        page.get_by_text(re.compile(r"0 of 1 dead letter retried\. 1 dead letter refused"))
    ).to_be_visible()
    bar.get_by_text("Discarded", exact=True).click()
    window.at(r".*state=discarded")
    expect(table.get_by_role("row")).to_have_count(4)


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Server]:
    """A gateway that checks heartbeats every second."""
    brisk = {"OBSERVATORY_HEARTBEAT_CHECK_S": "1", "OBSERVATORY_HEARTBEAT_TIMEOUT_S": "600"}
    with Server(tmp_path / "data", environment=brisk) as running:
        yield running


@pytest.mark.req(118, 218, 219)
def test_hearts_fade_zombies_go_triggers_tell_and_empty_or_away_is_said_s643_s651_s652_s655(
    quick: Server, opened: Open
) -> None:
    """S643, S651, S652, S655: as an admin, from empty to a thousand agents to an unreachable gateway."""
    window = opened(quick, "/scheduler", role="admin")
    page = window.page
    for board, words in (
        ("Jobs", "No jobs yet."),
        ("Dead letters", "No dead letters."),
        ("Heartbeats", "No agents yet."),
        ("Scaling", "No triggers yet."),
    ):
        window.role("navigation", "Boards of the scheduler").get_by_role("link", name=board).click()
        expect(page.get_by_text(words)).to_be_visible()
    expect(window.role("region", "Timeline")).to_contain_text("No jobs scheduled.")
    # A trigger: validation error, created, and its level shown.
    window.role("button", "New trigger…").click()
    form = window.role("form", "New trigger")
    form.get_by_label("Threshold").fill("lots")
    form.get_by_role("button", name="Create trigger").click()
    for words in ("Enter a name.", "Enter a number."):
        expect(form).to_contain_text(words)
    form.get_by_label("Name", exact=True).fill("More clerks")
    form.get_by_label("Target").fill("clerk")
    form.get_by_label("Threshold").fill("2")
    form.get_by_role("button", name="Create trigger").click()
    about = aside(window, "Selected trigger")
    expect(about).to_contain_text("unacknowledged messages of type clerk ≥ 2")
    expect(about.get_by_role("list", name="Levels")).to_contain_text(re.compile("type:clerk.*0 of 2"))
    session = new()
    many = [step(session, new(), agent=f"clerk-{n:04}") for n in range(1_000)]
    for log in many:
        log["identity"]["agent_type"] = "clerk"
    send_all(quick, many)
    for _ in range(3):
        job = make(quick, f"job-{uuid.uuid4().hex[:6]}", target={"kind": "capability", "name": "clerk"})
        quick.http("operator").post(f"/v1/jobs/{job['job_id']}/run")
    expect(about).to_contain_text("! breached")
    expect(about).to_contain_text("▲ triggered")
    about.get_by_role("button", name="Mute 30 min").click()
    expect(about).to_contain_text("‖ muted")
    about.get_by_role("button", name="Test").click()
    expect(page.get_by_text("has no channel")).to_be_visible()
    window.is_accessible()
    # Heartbeats: one healthy, one silent, the others without any.
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
    # Unreachable: data stays, and a command without a response is not called failed.
    window.go(f"/scheduler?job={job['job_id']}").settled()
    detail = aside(window, "Selected job")
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
    deployment: Server, opened: Open
) -> None:
    """S654, S655: in the light, at 390 pixels; the strip stays readable."""
    name = f"job-{uuid.uuid4().hex[:6]}"
    job = make(deployment, name, cron="*/30 * * * *", max_tries=1)
    (letter,) = killed(deployment, job, 1)
    window = opened(
        deployment, f"/scheduler?job={job['job_id']}&q={name}", role="viewer", phone=True, light=True
    )
    why = re.compile(r"Your role \(viewer\) can read")
    detail = aside(window, "Selected job")
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
    expect(aside(window, "Selected dead letter").get_by_role("button", name="Retry")).to_be_disabled()
    expect(aside(window, "Selected dead letter")).to_contain_text(why)
    window.go("/scheduler?board=scaling").settled()
    expect(window.role("button", "New trigger…")).to_be_disabled()
    window.go("/scheduler?board=heartbeats").settled()
    expect(window.page.locator("[data-cell]").first).to_be_visible()
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
