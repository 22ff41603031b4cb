"""The Registry: table, weights, circuits, versions, an agent's page, each to where it takes effect."""

from __future__ import annotations

import re
import uuid
from collections import Counter

import pytest
from playwright.sync_api import Locator, expect

from tests.flows.fleet import beat, inbox, named, say
from tests.flows.graphs import new, send_all, step
from tests.flows.server import Server
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import Window


class Kind:
    """A unique type: two instances in the west, one in the east, all with heartbeats."""

    def __init__(self, server: Server) -> None:
        mark = uuid.uuid4().hex[:6]
        self.server, self.name, self.west, self.east = server, f"kind-{mark}", f"west-{mark}", f"east-{mark}"
        self.agents = {
            f"{self.name}-w1": self.west,
            f"{self.name}-w2": self.west,
            f"{self.name}-e1": self.east,
        }
        for agent, cluster in self.agents.items():
            say(server, agent, kind=self.name, cluster=cluster, capability_version="2.0.0", model=f"m-{mark}")
            received = {
                "agent_id": agent,
                "hub_address": f"hub.{cluster}:7443",
                "capabilities": [f"fold-{mark}"],
            }
            assert server.http("operator").post("/v1/agents", json=received).status_code in (200, 201)
            beat(server, agent)

    def work(self, count: int) -> Counter[str]:
        """Sends messages to the type; returns the number per cluster."""
        for _ in range(count):
            say(self.server, named("boss"), f"type:{self.name}")
        got: Counter[str] = Counter()
        for agent, cluster in self.agents.items():
            got[cluster] += len(inbox(self.server, agent))
        return got

    def weights(self) -> dict[str, float] | None:
        items = self.server.http().get("/v1/routes").json()["items"]
        return next((one["weights"] for one in items if one["capability"] == self.name), None)


def group(window: Window, name: str) -> Locator:
    return window.page.locator(f'tr[data-group="{name}"]')


@pytest.mark.req(117, 210, 211, 212)
def test_the_yellow_pages_are_searched_sorted_walked_and_opened_s622_s623_s624(
    deployment: Server, opened: Open
) -> None:
    """S622, S623, S624: totals of a type, its instances below, distributions; all in the URL."""
    kind = Kind(deployment)
    # Filtered: other tests fill the same registry, and only visible rows are rendered.
    current = {"agent_type": kind.name, "versions": [{"version": "2.0.0", "status": "current"}]}
    assert deployment.http("operator").put("/v1/versions", json=current).is_success
    window = opened(deployment, f"/registry?q={kind.name}")
    table = window.role("table", "Registry")
    expect(group(window, kind.name)).to_contain_text(re.compile(r"\d of \d"))
    expect(window.role("list", "Agents by model")).to_contain_text(f"m-{kind.name[-6:]}")
    expect(window.role("list", "Versions by type")).to_contain_text(re.compile(rf"{kind.name}.*on N"))
    window.press("f")
    field = window.role("textbox", re.compile("^Search types, agents"))
    expect(field).to_be_focused()
    for text, rows in ((kind.east, 5), (kind.name, 5), (f"hub.{kind.west}", 7)):
        # The type and the capability, each with its matching instances.
        field.fill(text)
        window.at(rf".*q={re.escape(text)}")
        expect(table.get_by_role("row")).to_have_count(rows if text != kind.name else 9)
    field.fill(kind.name)
    row = group(window, kind.name)
    for cell in ("3 of 3", "2.0.0", f"m-{kind.name[-6:]}", "unverified", "fold-", "2 clusters", "hub."):
        expect(row).to_contain_text(cell)
    first = window.page.locator(f'tr[data-agent="{kind.name}-e1"]').first
    expect(first).to_contain_text("healthy")
    expect(first).to_contain_text(f"hub.{kind.east}:7443")
    window.is_accessible()
    field.fill("")
    table.get_by_role("button", name="Healthy").click()
    window.at(r".*sort=health")
    expect(table.get_by_role("columnheader", name=re.compile("Healthy"))).to_have_attribute(
        "aria-sort", "descending"
    )
    # By keyboard: to the table, down to the type, open it, down to an instance, peek, leave, open its page.
    field.fill(kind.name)
    expect(table.get_by_role("row")).to_have_count(9)
    field.press("Escape")
    window.press("t", "Home")
    while window.page.evaluate("document.activeElement.dataset.group") != kind.name:
        window.press("ArrowDown")
    window.press("Enter").at(rf".*type={kind.name}")
    expect(window.role("complementary", f"Details of {kind.name}")).to_contain_text("3 healthy")
    window.press("ArrowDown", "Space").at(rf".*peek=agent:{kind.name}-e1")
    window.press("Escape", "Enter").at(rf"/registry/{kind.name}-e1")
    window.page.go_back()
    window.at(rf".*type={kind.name}")
    window.press("Escape").at("/fleet")


@pytest.mark.req(213)
def test_weights_are_previewed_refused_in_words_saved_and_obeyed_s625_s626(
    deployment: Server, opened: Open
) -> None:
    """S625, S626: a preview saves nothing; optimistic concurrency; the router applies what is saved."""
    kind = Kind(deployment)
    kind.work(6)
    window = opened(deployment, f"/registry?type={kind.name}")
    page = window.page
    page.get_by_role("button", name="Set traffic split…").click()
    east = page.get_by_label(f"Weight of {kind.east} as a number")
    west = page.get_by_label(f"Weight of {kind.west} as a number")
    expect(west).to_have_value("67")
    expect(east).to_have_value("33")
    form = page.get_by_role("form", name=f"Weights of {kind.name}")
    save = form.get_by_role("button", name=re.compile("^Save"))
    for text, words in (("-3", "must not be negative"), ("ten", "is not a number"), ("", "Enter a number")):
        east.fill(text)
        expect(form).to_contain_text(words)
        expect(save).to_be_disabled()
    west.fill("0")
    east.fill("0")
    expect(form).to_contain_text("must not all be zero")
    expect(save).to_be_disabled()
    east.fill("30")
    west.fill("0")
    slider = page.get_by_role("slider", name=f"Weight of {kind.west}", exact=True)
    slider.focus()
    slider.press("End")
    expect(west).to_have_value("100")
    expect(form).to_contain_text(f"The weights add up to 130, not 100: the shares are 23.1 % {kind.east}")
    border = page.get_by_role("slider", name=re.compile("^Border between"))
    border.press("ArrowRight")
    expect(form.get_by_role("row", name=re.compile(kind.west))).to_contain_text(
        re.compile(r"66.7 % → ▲?\s*\d")
    )
    west.fill("0")
    east.fill("50")
    line = form.get_by_role("row", name=re.compile(kind.east))
    expect(line).to_contain_text("33.3 % → 100 %")
    expect(line).to_contain_text("→ 6")  # of the six messages of the last hour
    assert kind.weights() is None
    # Another operator is first: theirs is shown, mine is kept and not saved.
    theirs = {"capability": kind.name, "weights": {f"cluster:{kind.west}": 1}}
    assert deployment.http("admin").put("/v1/routes", json=theirs).status_code == 200
    with window.forgiving(r"answer: 409 PUT"):
        save.click()
        expect(form.get_by_role("alert")).to_contain_text("Someone else changed these weights")
    assert kind.weights() == theirs["weights"]
    expect(east).to_have_value("50")
    window.shot("registry-weights")
    form.get_by_role("button", name="Overwrite with mine").click()
    save.click()
    expect(page.get_by_text(re.compile("applies from the next message"))).to_be_visible()
    assert kind.weights() == {f"cluster:{kind.east}": 50, f"cluster:{kind.west}": 0}
    before = kind.work(0)
    assert kind.work(8) - before == {kind.east: 8}
    window.press("u")
    until(lambda: kind.weights() == theirs["weights"] or None)


@pytest.mark.req(42, 51, 214)
def test_a_circuit_is_opened_and_a_version_retired_by_hand_s627_s628(
    deployment: Server, opened: Open
) -> None:
    """S627, S628: confirmed with its consequence; work is queued, a message is refused."""
    kind = Kind(deployment)
    window = opened(deployment, f"/registry?type={kind.name}")
    page = window.page
    circuit = window.role("region", "Circuit breaker")
    expect(circuit).to_contain_text("None yet: it is created")
    circuit.get_by_role("button", name="Force open…").click()
    expect(circuit).to_contain_text("is queued from the next message on")
    circuit.get_by_role("button", name=re.compile("^Force open, queue work")).click()
    state = circuit.get_by_role("list", name="States of the circuit").locator("[aria-current]")
    expect(state).to_contain_text("open")
    expect(circuit).to_contain_text("opened by hand by you")
    expect(group(window, kind.name)).to_contain_text("× open")
    assert sum(kind.work(2).values()) == 0
    circuit.get_by_role("button", name="Force close…").click()
    circuit.get_by_role("button", name=re.compile("^Force close, send work")).click()
    expect(state).to_contain_text("closed")
    until(lambda: sum(kind.work(0).values()) == 2 or None)
    versions = window.role("region", "Versions")
    expect(versions.get_by_role("list")).to_contain_text("2.0.0 ? not registered")
    versions.get_by_label("New version").fill("2.1")
    versions.get_by_role("button", name="Register…").click()
    expect(versions).to_contain_text("A version has three numbers")
    for version in ("2.0.0", "3.0.0"):
        versions.get_by_label("New version").fill(version)
        versions.get_by_role("button", name="Register…").click()
        versions.get_by_role("button", name=f"Register {version} as current").click()
        expect(versions.get_by_role("listitem").first).to_contain_text(f"{version} N current")
    expect(versions.get_by_role("listitem").nth(1)).to_contain_text("2.0.0 N-1 previous")
    versions.get_by_role("button", name="Retire… 2.0.0").click()
    expect(versions).to_contain_text("2.0.0 is refused; 3 instances use it now")
    window.is_accessible()
    window.shot("registry-type")
    # Another operator registers one meanwhile: nothing of mine is saved, and theirs is shown.
    rows = {"3.0.0": "current", "2.0.0": "previous", "1.0.0": "retired"}
    body = {
        "agent_type": kind.name,
        "versions": [{"version": name, "status": status} for name, status in rows.items()],
    }
    assert deployment.http("admin").put("/v1/versions", json=body).status_code == 200
    with window.forgiving(r"answer: 409 PUT"):
        versions.get_by_role("button", name="Retire 2.0.0, refuse its messages").click()
        expect(versions.get_by_role("alert")).to_contain_text("Someone else changed these versions")
    expect(versions.get_by_role("list")).to_contain_text("1.0.0 × retired")
    versions.get_by_role("button", name="Retire… 2.0.0").click()
    versions.get_by_role("button", name="Retire 2.0.0, refuse its messages").click()
    expect(page.get_by_text("2.0.0 is retired: its messages are refused")).to_be_visible()
    log = step(new(), new(), agent=f"{kind.name}-w1")
    log["identity"] |= {"agent_type": kind.name, "capability_version": "2.0.0"}
    assert deployment.send(log).status_code == 422


@pytest.mark.req(117, 210)
def test_an_agents_page_tells_its_life_and_a_viewer_sees_without_acting_s629_s630(
    deployment: Server, opened: Open
) -> None:
    """S629, S630: on a phone, in the light, as a viewer; the agent's name holds a slash."""
    mark = uuid.uuid4().hex[:6]
    name, session = f"team/{mark}/scribe", new()
    received = {"agent_id": name, "hub_address": "hub.eu:7443", "model": "m-1"}
    assert deployment.http("agent").post("/v1/agents", json=received).status_code in (200, 201)
    spent = {"tokens_consumed": 900, "cumulative_session_cost": 0.4}
    log = step(session, new(), agent=name, cognition={"intent": f"Write {mark}"}, state_delta=spent)
    assert deployment.send(log).status_code == 202
    broken = step(session, new(), agent=name)
    del broken["cognition"]["intent"]
    assert deployment.send(broken).status_code == 422
    beat(
        deployment, name, status=f"busy-{mark}", current_task={"description": "Drafting", "progress_pct": 40}
    )
    window = opened(deployment, f"/registry/team%2F{mark}%2Fscribe", role="viewer", phone=True, light=True)
    expect(window.role("heading", name, level=1)).to_be_visible()
    about = window.role("region", "Details")
    for fact in ("hub.eu:7443", f"type-of-{name}", "m-1", "♥ healthy", "unverified"):
        expect(about).to_contain_text(fact)
    beats = window.role("region", "Heartbeats")
    expect(beats).to_contain_text(f"busy-{mark}")
    expect(beats).to_contain_text(re.compile(r"a heartbeat in [12] of 60 minutes"))
    expect(window.role("region", "Sessions", exact=True)).to_contain_text(f"Write {mark}")
    expect(window.role("region", "Cost, 24 h")).to_contain_text("$0.40")
    expect(window.role("region", "Drift, 7 days")).to_contain_text("No drift")
    history = window.role("region", "History")
    # Its own events, and alerts about it.
    for told_of in ("message delivered", "heartbeat", "violation"):
        expect(history).to_contain_text(told_of)
    history.get_by_role("button", name=re.compile("heartbeats")).click()
    window.at(r".*kinds=heartbeat")
    expect(history).not_to_contain_text("message delivered")
    evict = window.role("button", "Evict…")
    expect(evict).to_be_disabled()
    expect(evict).to_have_attribute("title", re.compile(r"Your role \(viewer\) can read"))
    window.is_accessible()
    window.shot("registry-agent-phone")
    window.role("link", f"type-of-{name}").click()
    panel = window.role("complementary", f"Details of type-of-{name}")
    expect(panel).to_contain_text("Your role (viewer) can read but not command agents.")
    for button in ("Set traffic split…", "Force open…", "Register…"):
        expect(panel.get_by_role("button", name=button)).to_be_disabled()
    width = window.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
    window.is_accessible()


def test_it_says_what_to_do_when_empty_stays_swift_with_a_thousand_and_honest_when_away_s631_s632(
    alone: Server, opened: Open
) -> None:
    """S631, S632"""
    window = opened(alone, "/registry")
    page = window.page
    expect(page.get_by_text("No agents yet")).to_be_visible()
    expect(page.get_by_text("observatory demo", exact=True)).to_be_visible()
    session = new()
    many = [step(session, new(), agent=f"clerk-{n:04}") for n in range(1_000)]
    for log in many:
        log["identity"]["agent_type"] = "clerk"
    send_all(alone, many)
    window.go("/registry?type=clerk").settled()
    table = window.role("table", "Registry")
    expect(table).to_have_attribute("aria-rowcount", "1002")
    expect(page.locator("tr[data-agent]").first).to_contain_text("clerk-0000")
    assert page.locator("tbody tr").count() < 80
    group(window, "clerk").focus()
    window.press("End")
    expect(page.locator("tr:focus")).to_have_attribute("data-agent", "clerk-0999")
    window.go("/registry?type=nobody").settled()
    expect(page.get_by_text("There is no agent type or capability “nobody”.")).to_be_visible()
    window.go("/registry?type=clerk").settled()
    circuit = window.role("region", "Circuit breaker")
    circuit.get_by_role("button", name="Force open…").click()
    with window.forgiving(r"net::ERR_", r"WebSocket connection to"):
        alone.kill()
        circuit.get_by_role("button", name=re.compile("^Force open, queue work")).click()
        said = page.get_by_text(re.compile("Opening the circuit: the gateway did not answer"))
        expect(said).to_be_visible()
        expect(table).to_have_attribute("aria-rowcount", "1002")
        expect(page.get_by_text(re.compile("^Not up to date")).first).to_be_visible()
        page.goto("about:blank")
