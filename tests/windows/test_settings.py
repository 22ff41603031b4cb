"""The settings: notifications and inbound connections, each verified by its effect.

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
def deployment(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Server]:
    """Only the receiver is allowed; every other address of this machine is refused."""
    allowed = {"OBSERVATORY_EGRESS_ALLOW": f"127.0.0.1:{receiver.port}"}
    with Server(tmp_path_factory.mktemp("settings") / "data", environment=allowed) as running:
        yield running


def pane(window: Window, name: str) -> Locator:
    return window.role("complementary", name)


def secret_of(pane: Locator) -> str:
    return pane.get_by_role("region", name="Secret, shown once").locator("code").inner_text()


def choose(window: Window, label: str, *words: str) -> None:
    """Selects several of a list, by typing them."""
    field = window.page.get_by_label(label, exact=True).first
    for word in words:
        field.fill(word)
        window.page.get_by_role("option", name=word, exact=True).click()
    field.press("Escape")


@pytest.mark.req(129)
def test_a_channel_is_refused_in_words_made_tested_and_rotated_s760_s762_s764_s765(
    deployment: Server, receiver: Receiver, opened: Open
) -> None:
    """S760, S762, S764, S765: the receiver's response is shown; each secret is shown once."""
    window = opened(deployment, "/settings/you", role="admin")
    window.press(",").at("/settings$")
    window.role("navigation", "Sections of the settings").get_by_role("link", name="Channels").click()
    window.at("/settings/channels$")
    expect(window.role("main")).to_contain_text("No channels.")
    window.press("n").at(r".*one=new")
    page, form = window.page, window.role("form", "New channel")
    form.get_by_label("Kind").select_option("webhook")
    form.get_by_role("button", name="Create channel").click()
    expect(form).to_contain_text("Enter a name.")
    expect(form).to_contain_text("Enter an address.")
    form.get_by_label("Name").fill("the orchestrator")
    with window.forgiving(r"answer: 422 POST .*/v1/webhooks/out"):
        form.get_by_label("URL").fill("http://169.254.169.254/latest")
        form.get_by_role("button", name="Create channel").click()
        # The gateway's own sentence, at the field; input is kept.
        expect(form.get_by_label("URL")).to_have_attribute("aria-invalid", "true")
        expect(form).to_contain_text(re.compile("https"))
    expect(form.get_by_label("Name")).to_have_value("the orchestrator")
    form.get_by_label("URL").fill(f"{receiver.url}/first")
    choose(window, "Events", "gate_opened", "task_completed")
    form.get_by_role("button", name="Create channel").click()
    window.at(r".*one=whe_")
    beside = pane(window, "the orchestrator")
    first = secret_of(beside)
    window.is_accessible()
    beside.get_by_role("button", name="Send a test").click()
    outcome = beside.get_by_role("status", name="Test result")
    expect(outcome).to_contain_text("✓ delivered")
    expect(outcome).to_contain_text("204")
    Webhook(first).verify(receiver.heard[-1].body, receiver.heard[-1].headers)
    beside.get_by_role("button", name="Rotate secret…").click()
    beside.get_by_role("button", name="Rotate and show new secret").click()
    expect(beside.get_by_role("region", name="Secret, shown once")).not_to_contain_text(first)
    second = secret_of(beside)
    beside.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_text(second)).to_have_count(0)
    receiver.answer = lambda arrived: 500
    beside.get_by_role("button", name="Send a test").click()
    expect(outcome).to_contain_text("× failed")
    expect(outcome).to_contain_text("500")
    receiver.answer = lambda arrived: 204
    for secret in (first, second):
        Webhook(secret).verify(receiver.heard[-1].body, receiver.heard[-1].headers)
    log = beside.get_by_role("link", name="Delivery log")
    expect(log).to_have_attribute("href", re.compile(r"/forensics/webhooks\?endpoint=whe_"))
    beside.get_by_role("button", name="Disable").click()
    row = window.role("table", "Channels").get_by_role("row", name=re.compile("the orchestrator"))
    expect(row).to_contain_text("○ disabled")
    window.press("u")
    expect(row).not_to_contain_text("disabled")
    # By keyboard: back to the list, and open it again.
    window.press("Escape").at("/settings/channels$")
    expect(row).to_be_focused()
    window.press("Enter").at(r".*one=whe_")
    expect(beside).to_be_focused()
    page.go_back()
    window.at("/settings/channels$")


def test_rules_are_made_tested_muted_and_never_overwritten_unseen_s763_s771_s776(
    deployment: Server, receiver: Receiver, opened: Open
) -> None:
    """S763, S771, S776: a rule notifies its channels; optimistic concurrency, and input is kept."""
    http = deployment.http("admin")
    made = http.post(
        "/v1/webhooks/out", json={"name": "ops", "url": f"{receiver.url}/ops", "events": []}
    ).json()
    assert "task_completed" in http.get("/v1/webhooks/out").json()["event_types"]
    window = opened(deployment, "/settings", role="admin")
    expect(window.role("region", "Firing")).to_contain_text("No rule is firing")
    window.role("button", "Add default rules").click()
    table = window.role("table", "Alert rules")
    expect(table.get_by_role("row")).to_have_count(12)
    table.get_by_role("row", name=re.compile("^Schema violations")).click()
    beside = pane(window, "Schema violations")
    form = beside.get_by_role("form")
    form.get_by_label("Threshold (messages)").fill("many")
    form.get_by_label("Window").fill("a while")
    form.get_by_role("button", name="Save rule").click()
    expect(form).to_contain_text("Must be a number of at least 0.")
    expect(form).to_contain_text("Enter a time such as 90 s, 5 min or 1 h.")
    form.get_by_label("Threshold (messages)").fill("2")
    form.get_by_label("Window").fill("10 min")
    form.get_by_label("ops (webhook)").check()
    expect(form).to_contain_text("Fires at: 2 messages or more within 10 min, for each agent.")
    # Another admin is first.
    rule = next(
        one for one in http.get("/v1/alert-rules").json()["items"] if one["condition"] == "violations"
    )
    theirs = {"name": rule["name"], "condition": "violations", "threshold": 9}
    assert http.put(f"/v1/alert-rules/{rule['rule_id']}", json=theirs).status_code == 200
    expect(form).to_contain_text("Someone else changed this")
    expect(form.get_by_role("button", name="Save rule")).to_be_disabled()
    expect(form.get_by_label("Threshold (messages)")).to_have_value("2")
    form.get_by_role("button", name="Overwrite with mine").click()
    form.get_by_role("button", name="Save rule").click()
    row = table.get_by_role("row", name=re.compile("^Schema violations"))
    expect(row).to_contain_text("ops")
    expect(row).to_contain_text("2 messages or more within 10 min")
    beside.get_by_role("button", name="Send a test").click()
    outcomes = beside.get_by_role("status", name="Test results by channel")
    expect(outcomes).to_contain_text(re.compile("✓ delivered.*ops"))
    assert receiver.heard[-1].payload["type"] == "alert_tested"
    # It fires: notification sent, and shown here.
    for _ in range(2):
        deployment.http("agent").post("/v1/messages", json={"not": "a message"})
    expect(window.role("list", "Firing")).to_contain_text("Schema violations")
    until(lambda: any(one.payload["type"] == "alert_raised" for one in receiver.heard))
    beside.get_by_role("button", name="1 h mute").click()
    expect(row).to_contain_text("muted")
    window.is_accessible()
    beside.get_by_role("button", name="Remove rule…").click()
    beside.get_by_role("button", name=re.compile("^Remove “Schema violations")).click()
    window.at("/settings$")
    expect(table.get_by_role("row")).to_have_count(11)
    http.delete(f"/v1/webhooks/out/{made['endpoint_id']}")


@pytest.mark.req(128)
def test_a_mapping_is_tried_on_a_sample_and_then_called_s761_s766(deployment: Server, opened: Open) -> None:
    """S761, S766, S935: the dry run sends nothing; a call signed with the secret becomes that message."""
    agent = named("reviewer")
    say(deployment, agent)
    window = opened(deployment, "/settings/hooks?one=new", role="admin")
    page, form = window.page, window.role("form", "New webhook")
    form.get_by_label("Name").fill("pull requests")
    form.get_by_label("Intent").fill("=join('', ['Review ', repository.full_name")
    form.get_by_label("Target type").select_option("agent")
    form.get_by_label("Target", exact=True).fill(agent)
    received = window.role("status", "Dry run result")
    expect(received).to_contain_text("× unmapped")
    expect(form.get_by_label("Intent")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Intent").fill("=join('', ['Review ', repository.full_name])")
    expect(received).to_contain_text(f"✓ accepted “Review acme/site” for agent {agent}")
    form.get_by_label("Only when").fill("action == 'closed'")
    expect(received).to_contain_text("○ ignored")
    page.get_by_label("Sample body").fill('{"action": ')
    expect(window.role("main")).to_contain_text("Invalid JSON")
    body = {"action": "closed", "repository": {"full_name": "acme/site"}}
    page.get_by_label("Sample body").fill(json.dumps(body))
    expect(received).to_contain_text("✓ accepted")
    assert deployment.http("admin").get("/v1/webhooks/in").json()["items"] == []
    # The sign-in expires in the middle: the page asks for a key, and input is kept.
    with window.forgiving(r"answer: 401", r"console: .*WebSocket", r"request: .*live"):
        # The page polls too, and would hide the form; here the command itself discovers it.
        page.route("**/v1/**", ActFirst())
        page.context.clear_cookies()
        form.get_by_role("button", name="Create webhook").click()
        expect(page.get_by_label("Key", exact=True)).to_be_visible()
        page.unroute("**/v1/**")
        page.get_by_label("Key", exact=True).fill(deployment.credentials["admin_key"])
        page.get_by_role("button", name="Sign in").click()
        expect(form.get_by_label("Name")).to_have_value("pull requests")
    form.get_by_role("button", name="Create webhook").click()
    beside = pane(window, "pull requests")
    secret = secret_of(beside)
    url = deployment.http("admin").get("/v1/webhooks/in").json()["items"][0]["url"]
    expect(beside).to_contain_text(url)
    expect(beside).to_contain_text("No calls yet.")
    called(url, secret, body)
    expect(beside.get_by_role("list", name="Recent calls")).to_contain_text("✓ valid")
    found = until(lambda: [one for one in inbox(deployment, agent) if "Review acme/site" in json.dumps(one)])
    assert found
    window.is_accessible()
    # OTLP ingest, and unmapped attributes (S935).
    window.role("navigation", "Sections of the settings").get_by_role("link", name="OTLP ingest").click()
    window.at("/settings/telemetry$")
    expect(window.role("main")).to_contain_text("No OTLP data yet")
    spoken = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "colour.of.sky": "blue"}
    one = {
        "traceId": uuid.uuid4().hex,
        "spanId": "a" * 16,
        "name": "chat m",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in spoken.items()],
    }
    came = {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}
    assert deployment.http("agent").post("/v1/traces", json=came).json() == {}
    expect(window.role("main")).to_contain_text("without tokens")
    expect(window.role("region", "Unmapped attributes")).to_contain_text("colour.of.sky")
    window.is_accessible()


def called(url: str, secret: str, body: Json) -> None:
    raw = json.dumps(body).encode()
    headers = signed("standard", secret, raw, int(time.time()), delivery=uuid.uuid4().hex)
    received = {**headers, "content-type": "application/json"}
    answer = httpx2.post(url, content=raw, headers=received, trust_env=False)
    assert answer.status_code in (200, 202), answer.text
