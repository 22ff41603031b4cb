"""The approvals inbox: pending items decided by mouse, by keyboard alone and on a phone.

Each answer is followed to where it must arrive, or never arrive: the other agent's inbox.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from observatory import Agent
from tests.flows.graphs import ask, new, send, step
from tests.flows.server import Server
from tests.waiting import PATIENCE_S, aside, until
from tests.windows.conftest import Open
from tests.windows.looking import Window
from tests.windows.staff import Gate


def rewritten(window: Window, old: str, new_text: str) -> None:
    field = window.role("textbox", "Message to be delivered")
    expect(field).to_be_focused()
    text = field.input_value()
    assert old in text
    field.fill(text.replace(old, new_text))


@pytest.mark.req(155, 180, 182)
def test_an_approved_message_reaches_its_recipient_with_the_bytes_that_were_shown(
    deployment: Server, opened: Open
) -> None:
    gate = Gate(deployment)
    window = opened(deployment, f"/inbox?item=gate:{gate.message_id}")
    card = window.role("region", f"Gate of {gate.alice}")
    expect(card).to_contain_text(f"{gate.alice} → {gate.bob}")
    expect(card.get_by_role("figure", name="Exact message")).to_contain_text("these bytes, hashed")
    expect(card.get_by_role("figure", name="Exact message")).to_contain_text("Publish the note")
    assert gate.got() == []
    window.shot("inbox-gate")
    card.get_by_role("button", name=f"Approve (send to {gate.bob}").click()
    (message,) = until(gate.got)
    assert message["cognition"]["intent"] == "Publish the note"
    expect(window.role("link", re.compile("Publish the note.*" + gate.alice))).to_have_count(0)


@pytest.mark.req(155)
def test_a_card_shows_what_the_bytes_say_and_warns_of_what_hides_in_them(
    deployment: Server, opened: Open
) -> None:
    """S1110, S1111: right-to-left override, a look-alike letter, long digits, a duplicate name."""
    gate = Gate(deployment)
    tricks = '{"to": "bob\u202e1234", "sum": 12345678901234567890, "cc": "p\u0430ypal", "to": "eve"}'
    gate.message_id = gate.asks("Pay bob\u202e1234", tool="pay\u200bment", given=tricks)
    window = opened(deployment, f"/inbox?item=gate:{gate.message_id}")
    card = window.role("region", f"Gate of {gate.alice}")
    expect(card).to_contain_text("by pay⟨U+200B⟩ment")
    warned = card.get_by_role("list", name="Warnings")
    expect(warned).to_contain_text("contains invisible or text-direction characters: ⟨U+200B⟩ ⟨U+202E⟩")
    expect(warned).to_contain_text("letters of several scripts")
    expect(warned).to_contain_text("a duplicate name")
    given = card.get_by_role("group", name="Tool input")
    expect(given).to_contain_text('"to": "bob⟨U+202E⟩1234"')
    expect(given).to_contain_text('"sum": 12345678901234567890')
    expect(given).to_contain_text("p\u0430ypal⟨Latin+Cyrillic⟩")
    expect(given).to_contain_text('"to": "eve"')
    expect(window.role("link", re.compile("Pay bob⟨U\\+202E⟩1234"))).to_be_visible()
    window.shot("inbox-hidden")
    for path in (
        f"/sessions/{gate.session}",
        f"/forensics/message/{gate.message_id}",
        "/fleet",
        "/forensics",
    ):
        window.go(path).settled()
        expect(window.role("main")).not_to_contain_text("\u202e")
    window.go(f"/forensics/message/{gate.message_id}").settled()
    expect(window.role("main")).to_contain_text("Pay bob⟨U+202E⟩1234")
    hidden = "[...document.querySelectorAll('*')].flatMap(e => [e.title, e.ariaLabel, e.firstChild?.data])"
    assert not window.page.evaluate(f"{hidden}.some(text => /[\u202e\u200b]/.test(text ?? ''))")
    window.go(f"/inbox?item=gate:{gate.message_id}").settled()
    window.role("button", "Edit…").click()
    field = window.role("textbox", "Message to be delivered")
    assert "bob\\u202e1234" in field.input_value() and "\u202e" not in field.input_value()


@pytest.mark.req(155, 181, 208)
def test_an_edited_message_arrives_edited_and_nothing_of_the_original_does(
    deployment: Server, opened: Open
) -> None:
    """By keyboard alone: e, type, Ctrl Enter twice."""
    gate = Gate(deployment)
    window = opened(deployment, f"/inbox?item=gate:{gate.message_id}")
    expect(window.role("button", f"Approve (send to {gate.bob}")).to_be_visible()
    window.press("e")
    rewritten(window, "Publish the note", "Publish the corrected note")
    expect(window.role("figure", "Changes")).to_contain_text("1 removed, 1 added")
    window.shot("inbox-edit")
    window.press("Control+Enter")
    expect(window.role("button", "Confirm: Approve edited")).to_be_focused()
    window.press("Control+Enter")
    (message,) = until(gate.got)
    assert message["cognition"]["intent"] == "Publish the corrected note"
    assert "Publish the note" not in str(message)


@pytest.mark.req(181)
def test_an_edit_that_breaks_the_schema_is_told_at_the_text_and_nothing_is_sent(
    deployment: Server, opened: Open
) -> None:
    gate = Gate(deployment)
    window = opened(deployment, f"/inbox?item=gate:{gate.message_id}")
    window.role("button", "Edit…").click()
    rewritten(window, '"intent": "Publish the note"', '"intent": 7')
    with window.forgiving(r"answer: 422 POST .*/edit"):
        window.role("button", "Approve edited").click()
        expect(window.role("alert").filter(has_text="cognition.intent")).to_be_visible()
    field = window.role("textbox", "Message to be delivered")
    field.fill("{ not json")
    expect(window.page.get_by_text("Not valid JSON")).to_be_visible()
    expect(window.role("button", "Approve edited")).to_be_disabled()
    assert gate.state() == "held" and gate.got() == []


@pytest.mark.req(155, 183)
def test_a_rejected_message_never_arrives_and_its_sender_is_told(deployment: Server, opened: Open) -> None:
    """By keyboard alone, confirmed. Later messages arrive, the rejected one does not."""
    gate = Gate(deployment)
    window = opened(deployment, f"/inbox?item=gate:{gate.message_id}")
    expect(window.role("button", f"Reject (notify {gate.alice}")).to_be_visible()
    window.press("r")
    expect(window.role("button", f"Confirm: Reject (notify {gate.alice}")).to_be_focused()
    assert gate.state() == "held"
    window.press("r")
    until(lambda: gate.state() == "rejected")
    gate.asks("Something harmless", hitl=False)
    (message,) = until(gate.got)
    assert message["cognition"]["intent"] == "Something harmless"
    received = deployment.http("admin").get(f"/v1/agents/{gate.alice}/inbox").json()["items"]
    assert [one["kind"] for one in received] == ["rejected"] or "reject" in str(received)


@pytest.mark.req(180, 182)
def test_on_a_phone_the_list_leads_to_one_gate_and_its_big_buttons(deployment: Server, opened: Open) -> None:
    gate = Gate(deployment)
    window = opened(deployment, "/inbox?kind=gate", phone=True)
    window.page.locator(f'[data-item="gate:{gate.message_id}"]').click()
    forward = window.role("button", f"Approve (send to {gate.bob}")
    expect(forward).to_be_visible()
    box = forward.bounding_box()
    assert box is not None and box["height"] >= 40 and box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
    window.shot("inbox-phone")
    window.is_accessible()
    forward.click()
    until(gate.got)


def test_a_question_of_an_agent_is_answered_by_its_number(
    deployment: Server, opened: Open, tmp_path: Path
) -> None:
    name = f"asker-{new()[:6]}"
    agent = Agent(name, url=deployment.url, key=deployment.key("agent"), data=tmp_path)
    try:
        assert agent.listen(PATIENCE_S)
        me = deployment.http("operator").get("/v1/whoami").json()["user_id"]
        answer = aside(
            lambda: agent.decide(
                f"Which filing? {name}",
                ["The 10-K", "The 8-K"],
                owner=me,
                timeout=PATIENCE_S,
            )
        )
        pending = "/v1/decisions/pending"
        (one,) = until(
            lambda: [item for item in ask(deployment, pending, user_id=me)["items"] if name in item["title"]],
        )
        window = opened(deployment, f"/inbox?item=decision:{one['decision_id']}")
        expect(window.role("radio", re.compile("The 8-K"))).to_be_visible()
        window.press("Enter", "2")
        expect(window.role("radio", re.compile("The 8-K"))).to_be_checked()
        window.press("Enter")
        assert "8-K" in str(answer.result(PATIENCE_S))
    finally:
        agent.close()


@pytest.mark.req(185)
def test_a_step_its_agent_was_not_sure_of_is_reviewed(deployment: Server, opened: Open) -> None:
    session, name = new(), f"doubter-{new()[:6]}"
    sent = send(
        deployment,
        step(session, new(), agent=name, cognition={"intent": "Guess a figure", "confidence_score": 0.1}),
    )
    number = str(sent["sequence_number"])
    until(
        lambda: [
            one
            for one in ask(deployment, "/v1/waiting", kind="review", limit=100)["items"]
            if one["id"] == number
        ]
    )
    window = opened(deployment, f"/inbox?item=review:{number}")
    window.role("button", re.compile("Incorrect")).click()
    (review,) = until(
        lambda: [
            one
            for one in ask(deployment, "/v1/reviews", state="done", limit=100)["items"]
            if str(one["sequence_number"]) == number
        ]
    )
    assert review["verdict"] == "wrong"


def test_the_list_is_walked_by_j_and_k_and_says_when_nothing_waits(
    deployment: Server, alone: Server, opened: Open
) -> None:
    Gate(deployment), Gate(deployment)
    window = opened(deployment, "/inbox?kind=gate")
    rows = window.page.locator("[data-item^='gate:']")
    expect(rows.nth(1)).to_be_visible()
    window.press("j").at(r"/inbox\?.*item=")
    expect(window.page.locator("[data-item][aria-current]")).to_have_count(1)
    empty = opened(alone, "/inbox")
    expect(empty.page.get_by_text("Inbox empty")).to_be_visible()
