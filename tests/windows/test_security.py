"""Security in the Forensic Inspector: webhook log and Policy Engine, each to where it takes effect."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.calling import signed
from tests.flows.fleet import named, say
from tests.flows.receiver import Receiver
from tests.flows.server import Server
from tests.samples import decision_log
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import Window

Json = dict[str, Any]
OUT = "/v1/webhooks/out"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    made.answer = lambda arrived: 500 if arrived.path == "/billing" else 204
    yield made
    made.close()


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Server]:
    """Empty, and allowed to send to the receiver: rules and endpoints are private to the test."""
    allowed = {"OBSERVATORY_EGRESS_ALLOW": f"127.0.0.1:{receiver.port}"}
    with Server(tmp_path_factory.mktemp("security") / "data", environment=allowed) as running:
        yield running


def endpoint(deployment: Server, receiver: Receiver, name: str) -> Json:
    body = {
        "name": name,
        "url": f"{receiver.url}/{name}",
        "events": ["message_delivered"],
        "schedule_s": [0.2],
    }
    made = deployment.http("admin").post(OUT, json=body)
    assert made.status_code == 201, made.text
    return dict(made.json())


def hook(deployment: Server, scheme: str) -> Json:
    wanted = {"intent": f"a call of {scheme}", "target": {"agent": "reviewer"}}
    made = deployment.http("admin").post(
        "/v1/webhooks/in", json={"name": scheme, "scheme": scheme, "mapping": wanted}
    )
    assert made.status_code == 201, made.text
    return dict(made.json())


def call(deployment: Server, to: Json, number: int, at_s: int | None = None, **forged: str | None) -> int:
    body = json.dumps({"number": number}).encode()
    when = int(time.time()) if at_s is None else at_s
    headers = dict(signed(to["scheme"], to["secret"], body, when, f"delivery-{number}"))
    for name, value in forged.items():
        given = next(one for one in headers if name in one.lower())
        headers.pop(given)
        if value is not None:
            headers[given] = value
    answer = deployment.http("nobody").post(f"/v1/webhooks/{to['hook_id']}", content=body, headers=headers)
    return answer.status_code


def row(window: Window, *texts: str) -> Locator:
    found = window.role("table", "Webhook log").locator("tbody tr[data-key]")
    for text in texts:
        found = found.filter(has_text=text)
    return found


@pytest.mark.req(119, 223, 224)
def test_the_webhook_log_shows_both_ways_with_signature_tries_and_bytes_s722_s723_s724_s725_s726(
    deployment: Server, receiver: Receiver, opened: Open
) -> None:
    """S722, S723, S724, S725, S726: outbound and inbound in one live list, signatures, every attempt, the
    exact bytes; what died goes again at a word, what was delivered is asked about first.
    """
    window = opened(deployment, "/forensics/webhooks", role="admin")
    page = window.page
    expect(page.get_by_text("No webhooks.")).to_be_visible()
    expect(page.get_by_text("observatory webhooks add")).to_be_visible()
    for name in ("billing", "desk"):
        endpoint(deployment, receiver, name)
    github, standard = hook(deployment, "github"), hook(deployment, "standard")
    say(deployment, named("alice"))
    assert call(deployment, github, 1) == 202
    assert call(deployment, github, 2, signature="sha256=" + "0" * 64) == 401
    assert call(deployment, github, 3, signature=None) == 401
    assert call(deployment, standard, 4, at_s=int(time.time()) - 4_000) == 401
    # It arrives while the page is open.
    expect(row(window, "billing", "× dead", "signed")).to_have_count(2, timeout=20_000)
    expect(row(window, "desk", "✓ delivered", "signed").first).to_be_visible()
    expect(row(window, "github", "✓ accepted", "✓ verified")).to_have_count(1)
    expect(row(window, "github", "× rejected", "× invalid")).to_have_count(1)
    expect(row(window, "github", "× rejected", "! missing")).to_have_count(1)
    expect(row(window, "standard", "× rejected", "× expired")).to_have_count(1)
    window.is_accessible()
    window.shot("webhooks")
    # Filters are in the URL.
    page.get_by_label("Filter the webhook log").get_by_role("button", name="! refused").click()
    window.at(r"/forensics/webhooks\?state=refused")
    expect(row(window)).to_have_count(3)
    window.press("f")
    page.keyboard.type("window")
    window.at(r".*q=window")
    expect(row(window)).to_have_count(1)
    window.go(f"/forensics/webhooks?endpoint={github['hook_id']}&signature=valid").settled()
    expect(row(window)).to_have_count(1)
    # By keyboard into the call, and back.
    window.press("t", "Enter").at(r".*entry=whc_")
    came = page.get_by_role("article", name="call of github to github")
    expect(came).to_contain_text("matches the received bytes, hashed in this browser")
    expect(came.get_by_role("link", name="Open message")).to_have_attribute(
        "href", re.compile(r"/forensics/message/msg_")
    )
    page.go_back()
    expect(came).to_have_count(0)
    # A dead one: every attempt, and the exact payload.
    page.get_by_role("button", name="clear filters").click()
    page.get_by_role("button", name="× dead").click()
    row(window, "billing").first.click()
    sent = page.get_by_role("article", name="message_delivered to billing")
    tries = sent.get_by_role("list", name="Attempts, newest first").get_by_role("listitem")
    expect(tries).to_have_count(2)
    for text in ("× 500", "signed with key 1", "the receiver returned 500", "as you like it"):
        expect(tries.first).to_contain_text(text)
    expect(sent.get_by_role("link", name="Dead letter")).to_be_visible()
    sent.get_by_role("button", name="as sent").click()
    heard = receiver.at("/billing")
    shown = sent.get_by_role("figure").locator("pre").inner_text()
    assert shown.encode() in {one.body for one in heard}
    window.shot("webhook-dead")
    receiver.answer = lambda arrived: 204
    sent.get_by_role("button", name="Redeliver").click()
    expect(page.get_by_text(re.compile("Redelivered to billing"))).to_be_visible()
    expect(sent).to_contain_text("✓ delivered")
    many = len(receiver.at("/billing"))
    sent.get_by_role("button", name="Redeliver…").click()
    expect(sent).to_contain_text("Already delivered. billing receives it a second time, under the same id")
    sent.get_by_role("button", name="Redeliver to billing").click()
    until(lambda: len(receiver.at("/billing")) > many or None)
    last = receiver.at("/billing")[-1]
    assert last.body == shown.encode() and last.headers["webhook-id"] in page.url
    # On a phone, as a viewer: everything is visible, nothing can be sent.
    phone = opened(deployment, page.url.removeprefix(deployment.url), role="viewer", phone=True, light=True)
    again = phone.role("button", "Redeliver…")
    expect(again).to_be_disabled()
    expect(phone.page.get_by_text("Your role (viewer) can read but not administer.").first).to_be_visible()
    phone.is_accessible()
    phone.shot("webhook-phone")
    phone.role("button", "close").click()
    expect(row(phone).first).to_be_visible()


def make(deployment: Server, effect: str, note: str, **match: list[str]) -> str:
    made = deployment.http("admin").post(
        "/v1/policies", json={"effect": effect, "match": match, "note": note}
    )
    assert made.status_code == 201, made.text
    return str(made.json()["rule_id"])


def notes(deployment: Server) -> list[str]:
    return [rule["note"] for rule in deployment.http().get("/v1/policies").json()["items"]]


@contextmanager
def behind(window: Window, theirs: Callable[[], Any]) -> Iterator[None]:
    """The page does not know of their change when the second saves: the gateway answers 409."""
    listed = re.compile(r"/v1/policies$")
    old = window.page.request.get(f"{window.url}/v1/policies").text()
    window.page.route(
        listed, lambda route: route.fulfill(status=200, content_type="application/json", body=old)
    )
    assert theirs().status_code == 200
    with window.forgiving(r"answer: 409 PUT "), window.page.expect_response(lambda one: one.status == 409):
        yield
    window.page.unroute(listed)


def tagged(window: Window, field: str, *words: str) -> None:
    for word in words:
        window.role("combobox", field).fill(word)
        window.press("Enter")
    window.press("Escape")


@pytest.mark.req(119, 225)
def test_a_rule_is_tried_before_it_is_saved_and_a_grave_one_is_typed_s728_s729_s730_s737_s738(
    deployment: Server, opened: Open
) -> None:
    """S728, S729, S730, S737, S738: nothing is saved untested; what blocks the operator's own agents or most
    of the traffic is called out and must be typed; then it counts for the next message.
    """
    loud, quiet = named("loud"), named("quiet")
    me = deployment.http("operator").get("/v1/whoami").json()["user_id"]
    for _ in range(9):
        say(deployment, loud, kind="shouter")
    say(deployment, quiet)
    received = {"agent_id": loud, "owner": me}
    assert deployment.http("operator").post("/v1/agents", json=received).status_code in (200, 201)
    window = opened(deployment, "/forensics/policies")
    page = window.page
    expect(page.get_by_text("No rules: all messages pass.")).to_be_visible()
    expect(page.get_by_text("Default: allow what no rule matches.")).to_be_visible()
    window.press("n").at(r".*rule=new")
    form = page.get_by_role("form", name="New rule")
    add = form.get_by_role("button", name=re.compile("^Add rule"))
    expect(add).to_be_disabled()
    expect(form).to_contain_text("Test it first: rules must be tested before saving.")
    form.get_by_text("× deny").click()
    tagged(window, "Tool", "a*b")
    expect(form).to_contain_text("A * is only allowed at the end of a word.")
    expect(form.get_by_role("button", name=re.compile("^Test against"))).to_be_disabled()
    window.role("combobox", "Tool").press("Backspace")
    tagged(window, "Sender", "type:shouter")
    expect(form).to_contain_text("Deny everything from every shouter to any recipient.")
    form.get_by_role("button", name="Test against the last hour").click()
    expect(form.get_by_role("status")).to_contain_text(
        re.compile(r"It would have denied 9 of the \d+ messages")
    )
    whom = form.get_by_role("list", name="Agents it would have stopped").get_by_role("listitem")
    expect(whom).to_have_count(1)
    expect(whom).to_contain_text("9 of 9")
    example = form.get_by_role("list", name="Messages it would have stopped").get_by_role("link").first
    expect(example).to_have_attribute("href", re.compile(r"/forensics/message/"))
    danger = form.get_by_role("alert")
    for words in ("most of the traffic", "It would silence 1 of", f"your own agents: {loud}"):
        expect(danger).to_contain_text(words)
    window.is_accessible()
    window.shot("policy-danger")
    # An expired login loses no input.
    page.context.clear_cookies()
    with window.forgiving(r"answer: 40[13] ", r"WebSocket connection to"):
        page.get_by_label("Key", exact=True).fill(deployment.key("operator"))
        window.press("Enter")
        window.settled()
    expect(form).to_contain_text("Deny everything from every shouter to any recipient.")
    form.get_by_role("button", name="Test against the last hour").click()
    add.click()
    yes = form.get_by_role("button", name="Add this rule")
    expect(yes).to_be_disabled()
    form.get_by_label("Type deny most messages to confirm").fill("deny most")
    expect(yes).to_be_disabled()
    assert notes(deployment) == []
    form.get_by_label("Type deny most messages to confirm").fill("deny most messages")
    yes.click()
    expect(page.get_by_text("Added as rule 1; it applies from the next message.")).to_be_visible()
    rules = page.get_by_role("list", name="Rules in their order").get_by_role("listitem")
    expect(rules).to_have_count(1)
    refused = deployment.send(message_of(loud))
    assert (refused.status_code, refused.json()["reason"]) == (403, "policy_denied")
    page.get_by_role("button", name="Count the last hour").click()
    expect(rules.first).to_contain_text(re.compile(r"\d+ in the last hour"))
    page.get_by_role("button", name="Disable rule 1").click()
    expect(rules.first).to_contain_text("disabled")
    assert deployment.send(message_of(loud)).status_code == 202
    page.get_by_role("button", name="Enable… rule 1").click()
    edit = page.get_by_role("form", name="Rule 1")
    expect(edit.get_by_role("button", name="Save rule")).to_be_disabled()
    edit.get_by_role("button", name="Discard changes").click()
    page.get_by_role("button", name="Remove rule 1").click()
    expect(rules).to_have_count(0)
    assert deployment.http().get("/v1/policies").json()["items"] == []


def message_of(agent: str) -> Json:
    return decision_log(identity={"agent_id": agent, "agent_type": "shouter"})


@pytest.mark.req(225)
def test_rules_are_put_in_order_and_two_people_at_one_rule_are_told_s734_s735_s736_s737_s738(
    deployment: Server, opened: Open
) -> None:
    """S734, S735, S736, S737, S738: nothing is saved implicitly; optimistic concurrency, the second sees
    both versions; what was removed comes back at its place; who may only look is told why.
    """
    one, two, three = (make(deployment, "hold", note, sender=[note]) for note in ("alpha", "beta", "gamma"))
    window = opened(deployment, "/forensics/policies")
    page = window.page
    rules = page.get_by_role("list", name="Rules in their order").get_by_role("listitem")
    expect(rules).to_have_count(3)
    handle = page.locator(f'[data-handle="{three}"]')
    window.press("t")
    expect(page.locator(f'[data-handle="{one}"]')).to_be_focused()
    handle.focus()
    window.press("ArrowUp")
    expect(handle).to_be_focused()
    window.press("ArrowUp")
    expect(rules.first).to_contain_text("gamma")
    assert notes(deployment) == ["alpha", "beta", "gamma"]
    page.get_by_role("button", name="Save order").click()
    until(lambda: notes(deployment) == ["gamma", "alpha", "beta"] or None)
    expect(page.get_by_text("The new order is saved.")).to_be_visible()
    window.press("u")
    until(lambda: notes(deployment) == ["alpha", "beta", "gamma"] or None)
    expect(rules.first).to_contain_text("alpha")
    # Manually, and another operator is first.
    box, target = page.locator(f'[data-handle="{one}"]').bounding_box(), rules.nth(2).bounding_box()
    assert box is not None and target is not None
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 8, target["y"] + target["height"] - 4, steps=6)
    page.mouse.up()
    expect(rules.nth(2)).to_contain_text("alpha")
    before = [two, one, three]
    with behind(window, lambda: deployment.http("admin").put("/v1/policies/order", json={"order": before})):
        page.get_by_role("button", name="Save order").click()
    expect(page.get_by_role("alert")).to_contain_text("Someone else changed the rules or their order")
    page.get_by_role("button", name="Overwrite with mine").click()
    page.get_by_role("button", name="Save order").click()
    until(lambda: notes(deployment) == ["beta", "gamma", "alpha"] or None)
    # One rule, two users.
    rules.first.get_by_role("button", name=re.compile("^Hold everything from beta")).click()
    window.at(rf".*rule={two}")
    form = page.get_by_role("form", name="Rule 1")
    form.get_by_label("Note").fill("beta of mine")
    form.get_by_role("button", name="Test against the last hour").click()
    expect(form.get_by_role("status")).to_contain_text("held none")
    changed = {"effect": "deny", "match": {"sender": ["beta"]}, "note": "beta of theirs"}
    with behind(window, lambda: deployment.http("admin").put(f"/v1/policies/{two}", json=changed)):
        form.get_by_role("button", name="Save rule").click()
    expect(form.get_by_role("alert")).to_contain_text(
        "The saved version: Deny everything from beta to any recipient."
    )
    difference = form.get_by_role("figure", name="From theirs to yours")
    expect(difference).to_contain_text('"note": "beta of theirs"')
    expect(difference).to_contain_text('"note": "beta of mine"')
    assert "beta of theirs" in notes(deployment)
    window.is_accessible()
    window.shot("policy-conflict")
    form.get_by_role("button", name="Overwrite with mine").click()
    form.get_by_role("button", name="Save rule").click()
    until(lambda: notes(deployment)[0] == "beta of mine" or None)
    # Removed while editing: input is kept, and becomes a new rule or is discarded.
    window.go(f"/forensics/policies?rule={two}").settled()
    form.get_by_label("Note").fill("beta again")
    assert deployment.http("admin").delete(f"/v1/policies/{two}").status_code == 200
    gone = page.get_by_role("form").get_by_role("alert")
    expect(gone).to_contain_text("This rule was removed by someone else. Yours is kept here")
    gone.get_by_role("button", name="Discard mine").click()
    # Removed, and restored at its position by undo.
    page.get_by_role("button", name="Remove rule 1").click()
    until(lambda: notes(deployment) == ["alpha"] or None)
    # The gateway has it before the page offers undo.
    expect(page.get_by_text("The rule is removed from the next message on")).to_be_visible()
    window.press("u")
    until(lambda: notes(deployment) == ["gamma", "alpha"] or None)
    phone = opened(deployment, "/forensics/policies", role="viewer", phone=True, light=True)
    expect(
        phone.page.get_by_text("Your role (viewer) can read but not command agents.").first
    ).to_be_visible()
    for name in ("New rule…", "Disable rule 1", "Remove rule 1", "Count the last hour"):
        expect(phone.role("button", name)).to_be_disabled()
    phone.role("button", re.compile("^Hold everything from gamma")).click()
    expect(phone.role("form", "Rule 1").get_by_label("Note")).to_be_disabled()
    phone.is_accessible()
    phone.shot("policies-phone")
