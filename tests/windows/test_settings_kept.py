"""The settings: data, detectors, and permissions; each verified by its effect.

On a gateway of their own: redaction, retention and thresholds bind everybody of a tenant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.flows.fleet import named, say
from tests.flows.receiver import Receiver
from tests.flows.server import Server
from tests.samples import decision_log
from tests.windows.conftest import Open

Json = dict[str, Any]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Server]:
    """Only the receiver is allowed; every other address of this machine is refused."""
    allowed = {"OBSERVATORY_EGRESS_ALLOW": f"127.0.0.1:{receiver.port}"}
    with Server(tmp_path_factory.mktemp("settings") / "data", environment=allowed) as running:
        yield running


def test_what_is_kept_is_tried_and_said_before_it_counts_s767_s768_s772_s777(
    deployment: Server, receiver: Receiver, opened: Open
) -> None:
    """S767, S768, S772, S777: redaction tested on a sample, retention confirmed by typing, on a phone too."""
    http = deployment.http("admin")
    window = opened(deployment, "/settings/redaction?one=new", role="admin", phone=True)
    page, form = window.page, window.role("form", "New redaction rule")
    kept = window.role("status", "Redacted message")
    expect(kept).to_contain_text("✓ 2 redacted")
    form.get_by_label("Type").select_option("pattern")
    form.get_by_label("Name").fill("acme_no")
    with window.forgiving(r"answer: 422 POST .*/v1/redaction"):
        form.get_by_label("Pattern").fill("(A+)+")
        expect(form.get_by_label("Pattern")).to_have_attribute("aria-invalid", "true")
        form.get_by_label("Pattern").fill("ACME-[0-9]{6}")
        expect(kept).to_contain_text("✓ 2 redacted")
    expect(kept).to_contain_text("[redacted:acme_no:")
    assert http.get("/v1/redaction").json()["items"] == []
    window.is_accessible()
    form.get_by_role("button", name="Create rule").click()
    window.at("/settings/redaction$")
    expect(window.role("table", "Redaction rules")).to_contain_text("acme_no")
    sent = deployment.http("agent").post(
        "/v1/messages", json=decision_log(cognition={"intent": "order ACME-123456"})
    )
    raw = http.get(f"/v1/messages/{sent.json()['message_id']}?raw=true").text
    assert "ACME-123456" not in raw and "[redacted:acme_no:" in raw
    window.role("table", "Redaction rules").get_by_role("row", name=re.compile("^acme_no")).click()
    page.get_by_role("button", name="Remove rule…").click()
    page.get_by_role("button", name="Remove “acme_no”").click()
    expect(window.role("main")).to_contain_text("No redaction rules")

    window.role("navigation", "Sections of the settings").get_by_role("link", name="Retention").click()
    expect(window.role("main")).to_contain_text("Everything is kept forever.")
    page.get_by_label("for a number of days").check()
    page.get_by_role("textbox", name="Days").fill("0")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(window.role("form", "Retention")).to_contain_text("Must be a whole number of days")
    page.get_by_role("textbox", name="Days").fill("30")
    lost = window.role("status", "Preview")
    expect(lost).to_contain_text("Everything received before")
    expect(lost).to_contain_text("No message is that old yet")
    page.get_by_role("button", name="Preview…").click()
    yes = page.get_by_role("button", name="Shred data older than 30 days")
    expect(yes).to_be_disabled()
    assert http.get("/v1/retention").json()["days"] is None
    window.is_accessible()
    page.get_by_label("Type shred after 30 days to confirm").fill("shred after 30 days")
    yes.click()
    expect(window.role("main")).to_contain_text("Messages are shredded after 30 days")
    assert http.get("/v1/retention").json()["days"] == 30
    page.get_by_label("forever").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(window.role("main")).to_contain_text("Everything is kept forever.")

    window.role("navigation", "Sections of the settings").get_by_role("link", name="Federation").click()
    own = http.get("/v1/audit/log").json()["vkey"]
    expect(window.role("region", "This log, for your peers")).to_contain_text(own)
    page.get_by_role("button", name="New peer…").click()
    form = window.role("form", "New peer")
    form.get_by_label("Name").fill("them")
    with window.forgiving(r"answer: 422 POST .*/v1/peers"):
        for key, words in (("no key", "Key"), (own, "a log cannot witness itself")):
            form.get_by_label("Key").fill(key)
            form.get_by_role("button", name="Add peer").click()
            expect(form.get_by_label("Key")).to_have_attribute("aria-invalid", "true")
            expect(form).to_contain_text(words)

    window.go("/settings/exporters?one=new").settled()
    form = window.role("form", "New exporter")
    form.get_by_label("Name").fill("backend")
    form.get_by_label("URL").fill(f"{receiver.url}/v1/logs")
    form.get_by_label("Headers").fill("x-scope: here")
    form.get_by_role("button", name="Create exporter").click()
    beside = window.role("complementary", "backend")
    beside.get_by_role("button", name="Send a test").click()
    expect(beside.get_by_role("status", name="Test result")).to_be_visible()
    assert any(one.headers.get("x-scope") == "here" for one in receiver.heard)
    beside.get_by_role("button", name="Pause").click()
    expect(beside.get_by_role("button", name="Resume")).to_be_visible()
    expect(beside).to_contain_text("Stored: x-scope.")
    beside.get_by_role("button", name="Remove exporter…").click()
    beside.get_by_role("button", name="Remove “backend”").click()
    window.at("/settings/exporters$")


@pytest.mark.req(64, 68)
def test_thresholds_places_and_appearance_are_set_and_taken_back_s773_s774_s775(
    deployment: Server, opened: Open
) -> None:
    """S773, S774, S775: only changes are sent; an operator may; appearance is per browser."""
    http = deployment.http("admin")
    say(deployment, named("stray"), cluster="garage-1")
    window = opened(deployment, "/settings/detectors")
    page, form = window.page, window.role("form", "Detectors")
    form.get_by_label("Loop below").fill("0.7")
    form.get_by_label("Window").fill("1")
    form.get_by_role("button", name="Save").click()
    expect(form).to_contain_text("Must not exceed the warning threshold.")
    expect(form).to_contain_text("Must be a whole number from 2 to 50.")
    form.get_by_label("Loop below").fill("0.3")
    form.get_by_label("Window").fill("5")
    expect(window.role("img", re.compile("^Below 0.3 loop"))).to_be_visible()
    form.get_by_role("button", name="Save").click()
    expect(window.role("main")).to_contain_text(re.compile("Changed .* by"))
    assert http.get("/v1/settings/detectors").json()["loop_below"] == 0.3
    window.press("u")
    expect(form.get_by_label("Loop below")).to_have_value("0.25")
    window.is_accessible()

    window.role("navigation", "Sections of the settings").get_by_role("link", name="Regions").click()
    expect(window.role("main")).to_contain_text(re.compile("nowhere: .*garage-1"))
    places = window.role("form", "Regions")
    places.get_by_label("garage-1", exact=True).select_option(label="Frankfurt (aws:eu-central-1)")
    places.get_by_role("button", name="Save regions").click()
    expect(window.role("main")).not_to_contain_text("garage-1.")
    placed = {one["cluster_id"]: one["name"] for one in http.get("/v1/fleet/regions").json()["placed"]}
    assert placed["garage-1"] == "Frankfurt"

    http.post("/v1/views", json={"name": "shared by admin", "query": "/fleet", "shared": True})
    window.role("navigation", "Sections of the settings").get_by_role("link", name="Appearance").click()
    expect(window.role("region", "Signed in as")).to_contain_text("operator")
    expect(window.role("table", "Sign-ins")).to_contain_text("this browser")
    html = page.locator("html")
    page.get_by_text("light", exact=True).click()
    expect(html).to_have_attribute("data-mantine-color-scheme", "light")
    page.get_by_text("still", exact=True).click()
    expect(html).to_have_attribute("data-motion", "reduce")
    page.reload()
    window.settled()
    expect(html).to_have_attribute("data-motion", "reduce")
    expect(html).to_have_attribute("data-mantine-color-scheme", "light")
    window.is_accessible()
    views = window.role("table", "Saved views")
    expect(views).to_contain_text("shared by admin")
    expect(views.get_by_role("button", name=re.compile("Remove"))).to_have_count(0)


def test_who_may_not_sees_everything_that_is_no_secret_and_why_s769(deployment: Server, opened: Open) -> None:
    """S769: fields and buttons are disabled with a reason; admin-only data is not fetched."""
    body = {"name": "chat", "kind": "slack", "url": "https://hooks.slack.com/services/T0/B0/secret"}
    made = deployment.http("admin").post("/v1/webhooks/out", json=body).json()
    window = opened(deployment, f"/settings/channels?one={made['endpoint_id']}", role="viewer", light=True)
    link = "An admin's sign-in link comes from: observatory login --user admin"
    why = f"Your role (viewer) can read but not administer. {link}"
    beside = window.role("complementary", "chat")
    expect(beside).to_contain_text(why)
    expect(beside).not_to_contain_text("secret/")
    for button in ("Create channel", "Save channel", "Send a test", "Disable", "Remove channel…"):
        for found in beside.get_by_role("button", name=button).all():
            expect(found).to_be_disabled()
    expect(window.role("button", "New channel…")).to_have_attribute("title", why)
    expect(beside.get_by_label("Name")).to_be_disabled()
    window.is_accessible()
    for section in ("Redaction", "Retention"):
        window.role("navigation", "Sections of the settings").get_by_role("link", name=section).click()
        expect(window.role("main")).to_contain_text(f"{why} {section}")
    window.role("navigation", "Sections of the settings").get_by_role("link", name="Detectors").click()
    expect(window.role("form", "Detectors")).to_contain_text("can read but not command agents")
    window.go("/settings/nonsense").settled()
    expect(window.role("main")).to_contain_text("There is no settings section “nonsense”.")
