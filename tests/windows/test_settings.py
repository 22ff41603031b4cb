"""The settings: who is told and who may call, each to its effect.

On a gateway of their own: rules bind everybody of a tenant.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Locator, expect
from standardwebhooks.webhooks import Webhook

from tests.calling import signed
from tests.flows.fleet import inbox, named, say
from tests.flows.receiver import Receiver
from tests.flows.server import Server
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import ActFirst, Window

Json = dict[str, Any]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Server]:
    """Only the receiver may be told; every other address of this machine is refused."""
    allowed = {"OBSERVATORY_EGRESS_ALLOW": f"127.0.0.1:{receiver.port}"}
    with Server(tmp_path_factory.mktemp("settings") / "data", environment=allowed) as running:
        yield running


def pane(window: Window, name: str) -> Locator:
    return window.role("complementary", name)


def secret_of(pane: Locator) -> str:
    return pane.get_by_role("region", name="The secret, shown once").locator("code").inner_text()


def choose(window: Window, label: str, *words: str) -> None:
    """Some of a list, by typing them."""
    field = window.page.get_by_label(label, exact=True).first
    for word in words:
        field.fill(word)
        window.page.get_by_role("option", name=word, exact=True).click()
    field.press("Escape")


@pytest.mark.req(129)
def test_a_channel_is_refused_in_words_made_tested_and_rotated_s760_s762_s764_s765(
    house: Server, receiver: Receiver, opened: Open
) -> None:
    """S760, S762, S764, S765: what the receiver answers is what is shown; each secret is shown once."""
    window = opened(house, "/settings/you", role="admin")
    window.press(",").at("/settings$")
    window.role("navigation", "Sections of the settings").get_by_role("link", name="Channels").click()
    window.at("/settings/channels$")
    expect(window.role("main")).to_contain_text("Nobody outside is told of anything")
    window.press("n").at(r".*one=new")
    page, form = window.page, window.role("form", "New channel")
    form.get_by_label("Kind").select_option("webhook")
    form.get_by_role("button", name="Make the channel").click()
    expect(form).to_contain_text("Give it a name.")
    expect(form).to_contain_text("Where does it lie?")
    form.get_by_label("Name").fill("the orchestrator")
    with window.forgiving(r"answer: 422 POST .*/v1/webhooks/out"):
        form.get_by_label("URL").fill("http://169.254.169.254/latest")
        form.get_by_role("button", name="Make the channel").click()
        # The gateway's own sentence, at the field; what was typed stands.
        expect(form.get_by_label("URL")).to_have_attribute("aria-invalid", "true")
        expect(form).to_contain_text(re.compile("https"))
    expect(form.get_by_label("Name")).to_have_value("the orchestrator")
    form.get_by_label("URL").fill(f"{receiver.url}/first")
    choose(window, "Events", "gate_opened", "task_completed")
    form.get_by_role("button", name="Make the channel").click()
    window.at(r".*one=whe_")
    beside = pane(window, "the orchestrator")
    first = secret_of(beside)
    window.is_accessible()
    beside.get_by_role("button", name="Send a test").click()
    outcome = beside.get_by_role("status", name="What came of the test")
    expect(outcome).to_contain_text("✓ taken")
    expect(outcome).to_contain_text("204")
    Webhook(first).verify(receiver.heard[-1].body, receiver.heard[-1].headers)
    beside.get_by_role("button", name="Rotate the secret…").click()
    beside.get_by_role("button", name="Rotate: show a new secret").click()
    expect(beside.get_by_role("region", name="The secret, shown once")).not_to_contain_text(first)
    second = secret_of(beside)
    beside.get_by_role("button", name="I have kept it").click()
    expect(page.get_by_text(second)).to_have_count(0)
    receiver.answer = lambda arrived: 500
    beside.get_by_role("button", name="Send a test").click()
    expect(outcome).to_contain_text("× failed")
    expect(outcome).to_contain_text("500")
    receiver.answer = lambda arrived: 204
    for secret in (first, second):
        Webhook(secret).verify(receiver.heard[-1].body, receiver.heard[-1].headers)
    log = beside.get_by_role("link", name="Everything sent there, try by try")
    expect(log).to_have_attribute("href", re.compile(r"/forensics/webhooks\?endpoint=whe_"))
    beside.get_by_role("button", name="Disable").click()
    row = window.role("table", "Channels").get_by_role("row", name=re.compile("the orchestrator"))
    expect(row).to_contain_text("○ disabled")
    window.press("u")
    expect(row).not_to_contain_text("disabled")
    # By keyboard: back to the list, and into it again.
    window.press("Escape").at("/settings/channels$")
    expect(row).to_be_focused()
    window.press("Enter").at(r".*one=whe_")
    expect(beside).to_be_focused()
    page.go_back()
    window.at("/settings/channels$")


def test_rules_are_made_tested_muted_and_never_overwritten_unseen_s763_s771_s776(
    house: Server, receiver: Receiver, opened: Open
) -> None:
    """S763, S771, S776: a rule tells its channels; who was first wins, and what the other typed is kept."""
    http = house.http("admin")
    made = http.post(
        "/v1/webhooks/out", json={"name": "ops", "url": f"{receiver.url}/ops", "events": []}
    ).json()
    assert "task_completed" in http.get("/v1/webhooks/out").json()["event_types"]
    window = opened(house, "/settings", role="admin")
    expect(window.role("region", "Amiss now")).to_contain_text("No rule fires")
    window.role("button", "Add the default rules").click()
    table = window.role("table", "Alert rules")
    expect(table.get_by_role("row")).to_have_count(12)
    table.get_by_role("row", name=re.compile("^Messages break")).click()
    beside = pane(window, "Messages break the schema")
    form = beside.get_by_role("form")
    form.get_by_label("From (messages)").fill("many")
    form.get_by_label("Within").fill("a while")
    form.get_by_role("button", name="Save the rule").click()
    expect(form).to_contain_text("A number from 0 on.")
    expect(form).to_contain_text("Write a time such as 90 s, 5 min or 1 h.")
    form.get_by_label("From (messages)").fill("2")
    form.get_by_label("Within").fill("10 min")
    form.get_by_label("ops (webhook)").check()
    expect(form).to_contain_text("Amiss: 2 messages or more within 10 min, for each agent.")
    # Somebody else is first.
    rule = next(
        one for one in http.get("/v1/alert-rules").json()["items"] if one["condition"] == "violations"
    )
    theirs = {"name": rule["name"], "condition": "violations", "threshold": 9}
    assert http.put(f"/v1/alert-rules/{rule['rule_id']}", json=theirs).status_code == 200
    expect(form).to_contain_text("Somebody changed this while you did")
    expect(form.get_by_role("button", name="Save the rule")).to_be_disabled()
    expect(form.get_by_label("From (messages)")).to_have_value("2")
    form.get_by_role("button", name="Go on with mine, over theirs").click()
    form.get_by_role("button", name="Save the rule").click()
    row = table.get_by_role("row", name=re.compile("^Messages break"))
    expect(row).to_contain_text("ops")
    expect(row).to_contain_text("2 messages or more within 10 min")
    beside.get_by_role("button", name="Send a test").click()
    outcomes = beside.get_by_role("status", name="How each channel took it")
    expect(outcomes).to_contain_text(re.compile("✓ taken.*ops"))
    assert receiver.heard[-1].payload["type"] == "alert_tested"
    # It fires: told outside, and shown here.
    for _ in range(2):
        house.http("agent").post("/v1/messages", json={"not": "a message"})
    expect(window.role("list", "Amiss now")).to_contain_text("Messages break the schema")
    until(lambda: any(one.payload["type"] == "alert_raised" for one in receiver.heard))
    beside.get_by_role("button", name="1 h mute").click()
    expect(row).to_contain_text("muted")
    window.is_accessible()
    beside.get_by_role("button", name="Remove the rule…").click()
    beside.get_by_role("button", name=re.compile("^Remove “Messages")).click()
    window.at("/settings$")
    expect(table.get_by_role("row")).to_have_count(11)
    http.delete(f"/v1/webhooks/out/{made['endpoint_id']}")


@pytest.mark.req(128)
def test_a_mapping_is_tried_on_a_sample_and_then_called_s761_s766(house: Server, opened: Open) -> None:
    """S761, S766, S935: the trial sends nothing; a call signed with the secret becomes that very message."""
    agent = named("reviewer")
    say(house, agent)
    window = opened(house, "/settings/hooks?one=new", role="admin")
    page, form = window.page, window.role("form", "New hook")
    form.get_by_label("Name").fill("pull requests")
    form.get_by_label("Intent").fill("=join('', ['Review ', repository.full_name")
    form.get_by_label("For", exact=True).select_option("agent")
    form.get_by_label("Called").fill(agent)
    told = window.role("status", "What would come of it")
    expect(told).to_contain_text("× unmapped")
    expect(form.get_by_label("Intent")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Intent").fill("=join('', ['Review ', repository.full_name])")
    expect(told).to_contain_text(f"✓ taken “Review acme/site” for agent {agent}")
    form.get_by_label("Only when").fill("action == 'closed'")
    expect(told).to_contain_text("○ ignored")
    page.get_by_label("A body as the caller sends it").fill('{"action": ')
    expect(window.role("main")).to_contain_text("This is no JSON")
    body = {"action": "closed", "repository": {"full_name": "acme/site"}}
    page.get_by_label("A body as the caller sends it").fill(json.dumps(body))
    expect(told).to_contain_text("✓ taken")
    assert house.http("admin").get("/v1/webhooks/in").json()["items"] == []
    # The sign-in ends in the middle: one is asked for a key, and what was typed is there afterwards.
    with window.forgiving(r"answer: 401", r"console: .*WebSocket", r"request: .*live"):
        # The page looks by itself too, and would take the form away; here it is the act that finds out.
        page.route("**/v1/**", ActFirst())
        page.context.clear_cookies()
        form.get_by_role("button", name="Open the hook").click()
        expect(page.get_by_label("Key", exact=True)).to_be_visible()
        page.unroute("**/v1/**")
        page.get_by_label("Key", exact=True).fill(house.credentials["admin_key"])
        page.get_by_role("button", name="Sign in").click()
        expect(form.get_by_label("Name")).to_have_value("pull requests")
    form.get_by_role("button", name="Open the hook").click()
    beside = pane(window, "pull requests")
    secret = secret_of(beside)
    url = house.http("admin").get("/v1/webhooks/in").json()["items"][0]["url"]
    expect(beside).to_contain_text(url)
    expect(beside).to_contain_text("Nobody has called yet.")
    called(url, secret, body)
    expect(beside.get_by_role("list", name="The last calls")).to_contain_text("✓ valid")
    found = until(lambda: [one for one in inbox(house, agent) if "Review acme/site" in json.dumps(one)])
    assert found
    window.is_accessible()
    # What came without anybody calling for it: telemetry of others, and what of it no step holds (S935).
    window.role("navigation", "Sections of the settings").get_by_role("link", name="Telemetry in").click()
    window.at("/settings/telemetry$")
    expect(window.role("main")).to_contain_text("Nothing has come by OTLP yet")
    spoken = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "colour.of.sky": "blue"}
    one = {
        "traceId": uuid.uuid4().hex,
        "spanId": "a" * 16,
        "name": "chat m",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in spoken.items()],
    }
    came = {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}
    assert house.http("agent").post("/v1/traces", json=came).json() == {}
    expect(window.role("main")).to_contain_text("without tokens")
    expect(window.role("region", "Attributes no step holds")).to_contain_text("colour.of.sky")
    window.is_accessible()


def called(url: str, secret: str, body: Json) -> None:
    raw = json.dumps(body).encode()
    headers = signed("standard", secret, raw, int(time.time()), delivery=uuid.uuid4().hex)
    told = {**headers, "content-type": "application/json"}
    answer = httpx2.post(url, content=raw, headers=told, trust_env=False)
    assert answer.status_code in (200, 202), answer.text
