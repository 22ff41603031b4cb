"""The boards of the Forensic Inspector: costs, infections, drift, violations, export."""

from __future__ import annotations

import csv
import io
import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from observatory.cli.verify import export as exported
from tests.flows.graphs import ask, new, send_all, step
from tests.flows.insight import settled
from tests.flows.server import Server
from tests.samples import decision_log
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import Window


class Affair:
    """A false fact from one agent, adopted by two; a conflict; unique names."""

    def __init__(self, server: Server) -> None:
        self.server, self.mark = server, uuid.uuid4().hex[:6]
        self.session = new()
        self.claim = f"Kestrel {self.mark} output is 500 MW"
        self.first, self.second, self.third = (f"{name}-{self.mark}" for name in ("=ann", "ben", "cal"))
        send_all(
            server,
            [
                self._step("root", self.first, 0.25, added_to_memory=[self.claim]),
                self._step("left", self.second, 0.5, "root", read_from_memory=[self.claim]),
                self._step("right", self.third, 1.0, "root", read_from_memory=[self.claim]),
                self._step("limit-a", self.second, 0.0, "left", added_to_memory=[f"{self.subject} is 5 EUR"]),
                self._step("limit-b", self.third, 0.0, "right", added_to_memory=[f"{self.subject} is 8 EUR"]),
            ],
        )
        settled(server)
        self.fact: str = ask(server, "/v1/facts", q=self.claim)["items"][0]["fact_id"]

    @property
    def subject(self) -> str:
        return f"The {self.mark} refund limit"

    def _step(self, name: str, agent: str, cost: float, *parents: str, **delta: Any) -> dict[str, Any]:
        received = {"cost": cost, "tokens_consumed": 10, "cumulative_session_cost": None} | delta
        return step(
            self.session, name, *parents, agent=agent, state_delta={"added_to_memory": None} | received
        )


@pytest.fixture(scope="module")
def affair(deployment: Server) -> Affair:
    return Affair(deployment)


def row(window: Window, text: str) -> Locator:
    return window.page.locator("tr[data-index]").filter(has_text=text)


@pytest.mark.req(119, 222)
def test_what_the_last_hour_cost_is_told_drilled_into_and_saved_s700_s710(
    deployment: Server, affair: Affair, opened: Open
) -> None:
    """S700, S710: by agent, its sessions, their branches; the file contains what is shown, and no formula."""
    window = opened(deployment, "/forensics/costs")
    expect(window.page.get_by_text(re.compile(r"\$[\d.]+k? in the last hour"))).to_be_visible()
    table = window.role("table", "Costs by agent")
    expect(table.get_by_role("row").nth(1)).to_contain_text("%")
    window.is_accessible()
    by = window.role("radiogroup", "Group by")
    by.get_by_text("Session", exact=True).click()
    window.at(r"/forensics/costs\?by=session")
    by.get_by_text("Branch", exact=True).click()
    expect(window.role("table", "Costs by branch").get_by_role("row").nth(1)).to_contain_text("$")
    window.go(f"/forensics/costs?by=session&agent={affair.first}").settled()
    line = row(window, affair.session)
    expect(line).to_contain_text("$0.25")
    expect(line).to_contain_text("100.0 %")
    line.focus()
    window.press("Enter")
    window.at(rf"/forensics/costs\?by=branch&session={affair.session}")
    branches = window.role("table", "Costs by branch")
    for agent, cost in ((affair.third, "$1.00"), (affair.second, "$0.50"), (affair.first, "$0.25")):
        expect(row(window, agent)).to_contain_text(cost)
    window.page.go_back()
    expect(row(window, affair.session)).to_be_visible()
    window.page.go_forward()
    expect(branches).to_be_visible()
    with window.page.expect_download() as saving:
        window.role("button", "Save CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(saving.value.path()).read_bytes().decode())))
    assert [float(one["cost"]) for one in rows] == [1.0, 0.5, 0.25]
    assert all(one["also"].startswith(("'=ann", "ben", "cal")) for one in rows)
    assert round(sum(float(one["share"]) for one in rows), 3) == 1.0
    with window.page.expect_download() as saving:
        window.role("button", "Save JSON").click()
    received = json.loads(Path(saving.value.path()).read_text("utf-8"))
    assert (received["by"], received["total"], len(received["items"])) == ("branch", 1.75, 3)


@pytest.mark.req(119, 154)
def test_who_started_a_false_fact_is_told_large_and_it_is_marked_and_quarantined_s711_s712_s713(
    deployment: Server, affair: Affair, opened: Open
) -> None:
    """S711, S712, S713: from the list to the source, the evidence, the memory of each, and the pauses."""
    window = opened(deployment, f"/forensics/infections?q={affair.mark}")
    line = row(window, affair.claim)
    expect(line).to_contain_text(affair.first)
    line.click()
    window.at(rf".*fact={affair.fact}")
    expect(window.role("heading", re.compile(f"Originated by {affair.first}, "))).to_be_visible()
    evidence = window.role("table", "Evidence")
    expect(row(window, affair.second).first).to_contain_text("read, from #")
    expect(evidence.get_by_role("row")).to_have_count(4)
    expect(window.page.get_by_text("3 agents affected in 1 session")).to_be_visible()
    # State scrub: before it received the claim, and after.
    window.page.get_by_label("of", exact=True).select_option(affair.second)
    held = window.role("list", f"Memory of {affair.second}")
    expect(held).to_contain_text(affair.claim)
    window.role("slider", "Step of the spread").press("Home")
    expect(window.page.get_by_text("Memory was empty.")).to_be_visible()
    window.at(r".*seq=\d+")
    window.is_accessible()
    # Marked, and undone.
    window.role("button", "Mark false…").click()
    window.role("textbox", re.compile("Why is it false")).fill("another reactor")
    window.role("button", re.compile("^Mark false and")).click()
    expect(window.role("button", "Undo mark as false")).to_be_visible()
    expect(window.page.get_by_text("another reactor")).to_be_visible()
    window.press("u")
    expect(window.role("button", "Mark false…")).to_be_visible()
    until(lambda: ask(deployment, f"/v1/facts/{affair.fact}")["marked_false"] is None)
    # Another operator marks it: the page updates.
    assert deployment.http("admin").post(f"/v1/facts/{affair.fact}/false", json={}).status_code == 201
    expect(window.role("button", "Undo mark as false")).to_be_visible()
    # Input survives the form; the preview lists the agents to pause.
    window.role("button", "Quarantine…").click()
    window.role("textbox", re.compile("Correction")).fill("It is 50 MW")
    window.role("button", "Cancel").click()
    window.role("button", "Quarantine…").click()
    expect(window.role("textbox", re.compile("Correction"))).to_have_value("It is 50 MW")
    window.role("button", "Preview").click()
    expect(window.role("form", "Quarantine this fact")).to_contain_text(
        "3 agents would be paused and corrected"
    )
    assert not any(one["paused"] for one in ask(deployment, f"/v1/sessions/{affair.session}")["agents"])
    window.role("button", "Pause and correct 3 agents").click()
    expect(window.page.get_by_text("3 agents paused and sent the correction")).to_be_visible()
    until(lambda: ask(deployment, f"/v1/sessions/{affair.session}")["paused"] == 3)
    window.role("button", "‹ all facts").click()
    top = window.page.locator("tr[data-index='0']")
    expect(top).to_contain_text("× false")
    viewer = opened(deployment, f"/forensics/infections?fact={affair.fact}", role="viewer", phone=True)
    expect(viewer.role("heading", re.compile("Originated by"))).to_be_visible()
    expect(viewer.role("button", "Quarantine…")).to_be_disabled()
    expect(viewer.page.get_by_text("Your role (viewer) can read but not command agents.")).to_be_visible()


@pytest.mark.req(119)
def test_a_disagreement_is_ruled_and_a_refusal_keeps_what_was_chosen_s714(
    deployment: Server, affair: Affair, opened: Open
) -> None:
    """S714: values side by side; the agents to notify are listed first; optimistic concurrency."""
    subject = affair.subject.lower()
    window = opened(deployment, f"/forensics/drift?conflict=session:{affair.session}%20{subject}")
    beside = window.role("complementary", "Selected conflict")
    expect(beside).to_contain_text(subject)
    for value, agent in (("5 EUR", affair.second), ("8 EUR", affair.third)):
        expect(beside.get_by_role("region", name=f"Value {value}")).to_contain_text(agent)
    window.is_accessible()
    beside.get_by_role("radio", name="neither").check()
    beside.get_by_role("textbox", name="The true value").fill("perhaps a lot of money, who knows it today")
    beside.get_by_role("button", name="Resolve…").click()
    with window.forgiving("answer: 422 POST"):
        beside.get_by_role("button", name=re.compile("to 2 agents$")).click()
        expect(beside.get_by_role("alert")).to_contain_text("a number, a date")
    expect(beside.get_by_role("textbox", name="The true value")).to_have_value(re.compile("^perhaps"))
    beside.get_by_role("radio", name="5 EUR").check()
    beside.get_by_role("button", name="Resolve…").click()
    expect(beside).to_contain_text(f"{affair.third} will receive in the inbox")
    beside.get_by_role("button", name="Send 5 EUR to 1 agent").click()
    expect(beside).to_contain_text("Resolved to 5 EUR by you")
    expect(beside.get_by_text("✓ resolved")).to_be_visible()


@pytest.mark.req(119)
def test_violations_come_as_they_happen_and_an_export_is_taken_and_verifies_s715_s716_s717(
    deployment: Server, opened: Open, tmp_path: Path
) -> None:
    """S715, S716, S717: groups and filter, live; estimate, manifest and file; missing permission."""
    agent, secret = f"crooked-{uuid.uuid4().hex[:6]}", f"secret{uuid.uuid4().hex}"

    def breaks() -> None:
        log = decision_log(identity={"agent_id": agent, "capability_version": "v9.9.9"})
        del log["cognition"]["intent"]
        log["cognition"]["reasoning_chain"] = [secret]
        assert deployment.send(log).status_code == 422

    breaks()
    window = opened(deployment, f"/forensics/violations?agent={agent}")
    expect(window.page.get_by_text("1 schema violation in the last hour")).to_be_visible()
    breaks()
    expect(window.page.get_by_text("2 schema violations in the last hour")).to_be_visible()
    line = row(window, "cognition.intent")
    expect(line).to_contain_text("v9.9.9")
    expect(window.role("list", "Newest violations").get_by_role("listitem")).to_have_count(2)
    expect(line.get_by_role("link", name=agent)).to_have_attribute("href", f"/registry/{agent}")
    assert secret not in window.page.content()
    window.is_accessible()
    window.role("textbox", "Search the reason").fill("no such reason")
    expect(window.page.get_by_text("No violations match these filters")).to_be_visible()
    # The same page as an admin continues with the export: an operator may not.
    window.go("/forensics/exports").settled()
    expect(window.role("button", "Export", exact=True)).to_be_disabled()
    expect(window.page.get_by_text("Your role (operator) can read but not export.").first).to_be_visible()
    talk = new()
    send_all(
        deployment, [step(talk, new(), agent=f"talker-{talk}") for _ in range(90)]
    )  # an event each, at least
    admin = opened(deployment, "/forensics/exports?what=numbers&from=5&to=3", role="admin")
    fault = admin.page.get_by_role("alert").filter(has_text="not before the first")
    expect(fault).to_be_visible()  # the banner of a kill switch, which others engage here, is an alert too
    admin.role("textbox", "Last event").fill("90")
    expect(admin.page.get_by_text("86 events, ")).to_be_visible()
    with admin.page.expect_download() as saving:
        admin.role("button", "Export", exact=True).click()
    came = admin.role("region", "Result")
    expect(came).to_contain_text("86 (#5 to #90)")
    name = saving.value.suggested_filename
    expect(came).to_contain_text(f"observatory verify {name}")
    admin.is_accessible()
    file = tmp_path / name
    saving.value.save_as(file)
    manifest, found = exported.check_export(file)
    assert (manifest.events, found.first_break, found.payload_break) == (86, None, None)
    session = ask(deployment, "/v1/sessions", limit=1)["items"][0]["session_id"]
    admin.go(f"/forensics/exports?session={session}").settled()
    with admin.page.expect_download() as saving:
        admin.role("button", "Download evidence").click()
    assert Path(saving.value.path()).read_bytes()[:2] == b"PK"
    expect(admin.page.get_by_text(f"observatory verify evidence-{session}.zip")).to_be_visible()
