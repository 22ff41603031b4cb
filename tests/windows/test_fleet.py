"""Fleet Command in the browser: the canvas is queried through its engine and clicked with the mouse."""

from __future__ import annotations

import re
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.flows.graphs import new, send, send_all, step
from tests.flows.server import Server
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import Window
from tests.windows.staff import Worker

CANVAS = "canvas[role=application]"


class Map:
    """The map on a page: the engine's state, and the mouse on its canvas."""

    def __init__(self, window: Window) -> None:
        self.window, self.page = window, window.page
        self.canvas: Locator = window.page.locator(CANVAS)
        expect(self.canvas).to_be_visible()
        self.comes_to("map.counts().agents > 40")

    def ask(self, expression: str, **given: Any) -> Any:
        script = (
            f"(given) => {{ const map = document.querySelector('{CANVAS}').topology; return {expression}; }}"
        )
        return self.page.evaluate(script, given)

    def comes_to(self, expression: str, **given: Any) -> None:
        script = (
            f"(given) => {{ const map = document.querySelector('{CANVAS}')?.topology; "
            f"return map && ({expression}); }}"
        )
        self.page.wait_for_function(script, arg=given)

    def click_at(self, x: float, y: float) -> None:
        box = self.canvas.bounding_box()
        assert box is not None
        self.page.mouse.click(box["x"] + x, box["y"] + y)

    def click_node(self, name: str) -> None:
        self.comes_to("map.screenOf(given.name)", name=name)
        self.still()
        at = self.ask("map.screenOf(given.name)", name=name)
        self.click_at(at["x"], at["y"])

    def still(self) -> None:
        """Waits until nothing moves: two frames have the same positions."""
        self.page.wait_for_function(
            f"""() => new Promise((done) => {{
              const map = document.querySelector('{CANVAS}').topology;
              const look = () => JSON.stringify(map.hulls().map((one) => map.screenOf(one.id)));
              const before = look();
              requestAnimationFrame(() => requestAnimationFrame(() => done(look() === before)));
            }})"""
        )


@pytest.fixture
def fleet(atlas: Server, opened: Open) -> Map:
    return Map(opened(atlas, "/fleet"))


@pytest.mark.req(115, 157, 196, 229)
def test_the_canvas_draws_the_live_mesh_and_its_agents_can_be_clicked(atlas: Server, fleet: Map) -> None:
    fleet.comes_to("map.counts().edges > 20")
    received = fleet.ask("map.counts()")
    agents = atlas.http().get("/v1/fleet?level=agent&limit=2000").json()["nodes"]
    assert abs(received["agents"] - len(agents)) <= 5
    fleet.window.go("/fleet?level=agent").settled()
    again = Map(fleet.window)
    name = "researcher-beta-3"
    again.click_node(name)
    again.window.at(f".*peek=agent:{name}")
    panel = again.window.role("complementary", f"Agent {name}")
    expect(panel.get_by_role("region", name="Actions")).to_be_visible()
    expect(panel).to_contain_text("web_researcher")
    fleet.window.shot("fleet-peek")


@pytest.mark.req(159)
def test_layers_switch_between_logic_and_geography_and_the_address_says_so(fleet: Map) -> None:
    before = fleet.ask("map.screenOf(map.hulls()[0].id)")
    fleet.window.press("g")
    fleet.window.at(r"/fleet\?.*layer=geographic")
    fleet.comes_to("map.layer === 'geographic' && map.hulls().some((one) => one.id.startsWith('cluster:'))")
    fleet.still()
    names = fleet.ask("map.hulls().map((one) => one.name)")
    assert any("aws-eu-central-1" in name for name in names)
    fleet.window.shot("fleet-geographic")
    fleet.window.page.go_back()
    fleet.comes_to("map.layer === 'logical' && map.hulls().some((one) => one.id.startsWith('type:'))")
    assert before is not None


@pytest.mark.req(160, 161, 162)
def test_an_edge_is_clicked_and_shows_rate_latency_and_status(atlas: Server, opened: Open) -> None:
    window = opened(atlas, "/fleet?level=agent")
    fleet = Map(window)
    edges = atlas.http().get("/v1/fleet?level=agent&limit=2000").json()["edges"]
    busy = max(edges, key=lambda one: one["messages"])
    window.go(f"/fleet?level=agent&peek=edge:{busy['from']} → {busy['to']}").settled()
    panel = window.role("complementary", re.compile("^Edge"))
    for word in ("rate", "latency p50", "latency p95"):
        expect(panel.get_by_text(word, exact=True)).to_be_visible()
    expect(panel).to_contain_text(re.compile("healthy|alert|blocked", re.IGNORECASE))
    window.shot("fleet-edge")
    window.press("Escape")
    # By the mouse: somewhere on the map an edge is under the pointer, and its panel opens.
    fleet = Map(window)
    fleet.still()
    box = fleet.canvas.bounding_box()
    assert box is not None
    ends = fleet.ask(
        "given.edges.map((one) => [map.screenOf(one[0]), map.screenOf(one[1])]).filter(([a, b]) => a && b)",
        edges=[[one["from"], one["to"]] for one in edges],
    )
    assert ends
    for a, b in ends[:40]:
        for share in (0.5, 0.4, 0.6):
            fleet.click_at(a["x"] + (b["x"] - a["x"]) * share, a["y"] + (b["y"] - a["y"]) * share)
            if "peek=edge:" in window.page.url:
                break
        if "peek=edge:" in window.page.url:
            break
    window.at(r".*peek=edge:")


@pytest.mark.req(163, 164)
def test_drill_down_goes_from_cluster_to_type_to_agent_on_either_layer(atlas: Server, opened: Open) -> None:
    for layer in ("", "&layer=geographic"):
        window = opened(atlas, f"/fleet?by=cluster{layer}")
        fleet = Map(window)
        fleet.comes_to("map.hulls().some((one) => one.id.startsWith('cluster:'))")
        cluster = fleet.ask("map.hulls().find((one) => one.id.startsWith('cluster:')).id").removeprefix(
            "cluster:"
        )
        group = next(
            one["agent_type"]
            for one in atlas.http().get("/v1/fleet?level=agent&limit=2000").json()["nodes"]
            if one["cluster_id"] == cluster and one["agent_type"]
        )
        window.go(f"/fleet?by=cluster{layer}&cluster={cluster}&group={group}").settled()
        fleet = Map(window)
        assert fleet.ask("map.focus") == {"cluster": cluster, "group": group}
        crumbs = window.role("navigation", "Drill-down")
        expect(crumbs).to_contain_text(f"Mesh{cluster}{group}")
        crumbs.get_by_role("button", name=cluster).click()
        fleet.comes_to("map.focus && !map.focus.group")
        crumbs.get_by_role("button", name="Mesh").click()
        fleet.comes_to("map.focus === null")


@pytest.mark.req(152, 158, 165, 166, 167, 168, 169, 170)
def test_states_and_alarms_stand_on_the_map_by_mark_word_and_colour(atlas: Server, fleet: Map) -> None:
    """The legend matches the map: six states, each with mark, word and count."""
    session, name = new(), f"orange-{uuid.uuid4().hex[:6]}"
    send(atlas, step(session, new(), agent=name))
    broken = step(session, new(), agent=name)
    del broken["cognition"]["intent"]
    assert atlas.send(broken).status_code == 422
    fleet.comes_to("map.node(given.name)?.state === 'schema_violation'", name=name)
    legend = fleet.window.role("region", "Legend")
    for word in ("idle", "active", "loop", "violation", "dead", "held"):
        expect(legend.get_by_role("button", name=re.compile(word, re.IGNORECASE)).first).to_be_visible()
    again = {
        "tool_call": "search",
        "tool_input": '{"q": "x"}',
        "tool_output_summary": "none",
        "status": "failure",
    }
    loop, circler = new(), f"circler-{uuid.uuid4().hex[:6]}"
    send_all(
        atlas,
        [
            step(loop, new(), agent=circler, cognition={"intent": "Search again"}, action=again)
            for _ in range(6)
        ],
    )
    fleet.comes_to("map.node(given.name)?.state === 'alert_entropy'", name=circler)
    fleet.comes_to("map.node(given.name).alarms.length > 0", name=circler)  # told apart from the state
    fleet.window.go(f"/fleet?level=agent&find=name:{circler}").settled()
    seen = Map(fleet.window)
    seen.comes_to("map.node(given.name)", name=circler)
    fleet.window.go(f"/fleet?peek=agent:{circler}").settled()
    panel = fleet.window.role("complementary", f"Agent {circler}")
    expect(panel.get_by_role("region", name="Open alerts")).to_be_visible()
    fleet.window.shot("fleet-alarm")


PULSE_S = 1.5  # a ring goes out in less: drawPulses of ui/src/graph/draw/overlay.ts
PAINTED = """() => {
  const map = document.querySelector('%s').topology, at = map.screenOf(given.name);
  const box = document.querySelector('%s').getBoundingClientRect();
  const found = { red: 0, amber: 0 };
  for (const canvas of document.querySelectorAll('canvas')) {
    const here = canvas.getBoundingClientRect();
    if (here.width < 300 || !at) continue;
    const scale = canvas.width / here.width, side = 44 * scale;
    const x = (box.left + at.x - here.left) * scale - side / 2;
    const y = (box.top + at.y - here.top) * scale - side / 2;
    const pixels = canvas.getContext('2d').getImageData(x, y, side, side).data;
    for (let n = 0; n < pixels.length; n += 4) {
      const [r, g, b] = [pixels[n], pixels[n + 1], pixels[n + 2]];
      if (r > 110 && g < 0.5 * r && b < 0.5 * r) found.red += pixels[n + 3];
      if (r > 140 && g > 0.5 * r && g < 0.8 * r && b < 0.4 * r) found.amber += pixels[n + 3];
    }
  }
  return found;
}"""


@pytest.mark.req(65, 69, 168)
@pytest.mark.parametrize("calm", [False, True])
def test_a_loop_flashes_red_where_motion_is_allowed_and_a_warning_is_amber(
    atlas: Server, opened: Open, calm: bool
) -> None:
    fails = {"tool_call": "search", "tool_input": "{}", "tool_output_summary": "none", "status": "failure"}
    worried, circler = f"worried-{uuid.uuid4().hex[:6]}", f"circler-{uuid.uuid4().hex[:6]}"
    # One fails the same way each time; the other has two intents, and learns something each time.
    goes_on = [
        fails | {"tool_input": f'{{"page": {n}}}', "tool_output_summary": f"page {n}", "status": "success"}
        for n in range(5)
    ]
    for name, intents, does in ((circler, "AAAAAA", [fails] * 6), (worried, "ABABA", goes_on)):
        session = new()
        said = zip(intents, does, strict=True)
        send_all(
            atlas, [step(session, new(), agent=name, cognition={"intent": i}, action=a) for i, a in said]
        )
    window = opened(atlas, f"/fleet?level=agent&find=name:{circler}", calm=calm)
    looping = Map(window)
    looping.comes_to("map.node(given.name)?.state === 'alert_entropy'", name=circler)
    looping.still()
    script = PAINTED % (CANVAS, CANVAS)

    def painted(name: str, colour: str) -> int:
        found: int = window.page.evaluate(script.replace("given.name", f"'{name}'"))[colour]
        return found

    end, reds = time.monotonic() + PULSE_S, []
    while time.monotonic() < end:
        reds.append(painted(circler, "red"))
    assert min(reds) > 0
    # A new agent moves the others by parts of a pixel: a percent at an edge, and no flash.
    assert (max(reds) - min(reds) > 0.1 * max(reds)) is not calm
    window.go(f"/fleet?level=agent&find=name:{worried}").settled()
    warned = Map(window)
    warned.comes_to("map.node(given.name)?.state === 'blocked'", name=worried)
    warned.still()
    assert painted(worried, "amber") > 0


@pytest.mark.req(171)
def test_one_step_with_three_children_forks_on_the_map_at_once(atlas: Server, fleet: Map) -> None:
    session, mark = new(), uuid.uuid4().hex[:6]
    root = new()
    send(atlas, step(session, root, agent=f"forker-{mark}"))
    send_all(atlas, [step(session, new(), root, agent=f"child-{n}-{mark}") for n in range(3)])
    for n in range(3):
        fleet.comes_to("map.edge(given.id)", id=f"forker-{mark} → child-{n}-{mark}")


@pytest.mark.req(158)
def test_an_agent_is_found_hidden_and_listed_by_an_expression(atlas: Server, fleet: Map) -> None:
    window = fleet.window
    window.press("f")
    window.page.keyboard.type("type:writer")
    window.at(r"/fleet\?.*find=type:writer")
    expect(window.page.get_by_text(re.compile(r"\d+ of \d+ found"))).to_be_visible()
    window.role("textbox", "Find agents").fill("typ:")
    expect(window.page.get_by_text("! invalid")).to_be_visible()
    window.role("textbox", "Find agents").fill("type:writer")
    window.role("textbox", "Find agents").blur()
    window.page.get_by_text("List", exact=True).click()
    table = window.role("table", "Agents")
    expect(table.get_by_role("row", name=re.compile("writer")).first).to_be_visible()
    expect(table.get_by_role("row", name=re.compile("planner"))).to_have_count(0)
    window.shot("fleet-list")
    window.is_accessible()


@pytest.mark.req(158, 188)
def test_an_agent_is_paused_from_its_panel_and_really_stops(
    atlas: Server, opened: Open, tmp_path: Path
) -> None:
    with Worker(atlas, tmp_path / "a") as worker, Worker(atlas, tmp_path / "b") as free:
        worker.works_on()
        window = opened(atlas, f"/fleet?peek=agent:{worker.name}")
        panel = window.role("complementary", f"Agent {worker.name}")
        panel.get_by_role("button", name=re.compile("^Pause in all sessions")).click()
        expect(panel.get_by_role("button", name=re.compile("^Resume in all sessions"))).to_be_visible()
        agents = f"/v1/sessions/{worker.session}/interventions"
        # The agent is paused first, each of its sessions after it.
        until(lambda: [one for one in atlas.http().get(agents).json()["items"] if one["confirmed_at"]])
        stopped = worker.count
        free.works_on(10)
        assert worker.count == stopped
        panel.get_by_role("button", name=re.compile("^Resume in all sessions")).click()
        worker.works_on(3)


@pytest.mark.req(153, 197, 198, 199, 200)
def test_the_four_panels_tell_throughput_cost_health_and_latency(atlas: Server, fleet: Map) -> None:
    window = fleet.window
    expect(window.role("region", "Throughput")).to_contain_text(re.compile(r"messages\s*\d+"))
    window.role("region", "Throughput").get_by_text("1 h", exact=True).click()
    window.at(r".*window=1h")
    health = window.role("region", "Health")
    for part in ("gateway", "bus", "database", "insight", "log"):
        line = health.get_by_role("listitem").filter(has=window.page.get_by_text(part, exact=True))
        expect(line).to_contain_text(re.compile("well|strained|down"))
    cost = window.role("region", "Cost heatmap")
    grid = cost.get_by_role("grid", name="Cost by cluster and time")
    grid.get_by_role("gridcell").last.focus()
    window.press("Home")
    expect(cost.locator("[aria-live]")).not_to_be_empty()
    latency = window.role("region", "Latency by region")
    for word in ("p50", "p95", "p99"):
        expect(latency.get_by_role("columnheader", name=word)).to_be_visible()
    latency.get_by_role("button").nth(1).click()
    window.role("button", re.compile("^▸?\\s*Throughput")).click()
    expect(window.role("region", "Throughput")).to_have_count(0)


@pytest.mark.req(158)
def test_a_past_minute_is_replayed_and_live_comes_back(fleet: Map) -> None:
    window = fleet.window
    slider = window.role("slider", "Replay: minutes back")
    slider.focus()
    window.press("ArrowLeft", "ArrowLeft")
    window.at(r"/fleet\?.*at=")
    expect(slider).to_have_attribute("aria-valuenow", re.compile(r"^-\d+$"))
    window.shot("fleet-replay")
    window.press("n")
    expect(slider).to_have_attribute("aria-valuenow", "0")


def test_the_map_is_used_by_keyboard_alone(fleet: Map) -> None:
    fleet.window.go("/fleet?level=agent").settled()
    again = Map(fleet.window)
    again.canvas.focus()
    again.still()
    again.window.press("ArrowRight")
    again.window.at(r".*peek=agent:")
    again.window.press("Enter")
    expect(again.window.role("complementary", re.compile("^Agent"))).to_be_visible()
