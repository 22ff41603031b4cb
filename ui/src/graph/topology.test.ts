// The map as its host uses it: records in, texts, events and frames out. Drawing is faked, everything else is
// real.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Change, LiveRecord } from "~/live/records";
import { fakeCanvas, Hands, surfaceFactory } from "./fakeCanvas";
import { ground } from "./geo";
import { DARK } from "./palette";
import { Topology } from "./topology";
import type { Alarm } from "./types";

const alarm: Alarm = { kind: "loop", severity: "critical", text: "is looping", session_id: "ses_1" };
const node = (id: string, more: object = {}): LiveRecord => ({
  kind: "node",
  id,
  version: 1,
  name: id,
  agent_type: id.split("-")[0],
  cluster_id: id.endsWith("1") ? "aws-eu-central-1" : "onprem",
  state: "active",
  messages: 1,
  rate_per_s: 1,
  cost_per_min: 0.01,
  alarms: [],
  ...more,
});
const edge = (from: string, to: string, more: object = {}): LiveRecord => ({
  kind: "edge",
  id: `${from} → ${to}`,
  version: 1,
  from,
  to,
  messages: 5,
  rate_per_s: 1,
  status: "Healthy",
  reason: null,
  ...more,
});
const cluster: LiveRecord = {
  kind: "cluster",
  id: "cluster:aws-eu-central-1",
  version: 1,
  cluster_id: "aws-eu-central-1",
  region: { region: "eu-central-1", name: "Frankfurt", lat: 50.1, lon: 8.7 },
};
const whole: Change = {
  whole: true,
  put: [
    node("planner-1"),
    node("writer-1", { state: "alert_entropy", alarms: [alarm] }),
    node("writer-2"),
    node("reader-2", { state: "idle", rate_per_s: 0 }),
    edge("planner-1", "writer-1"),
    edge("planner-1", "writer-2", { status: "Blocked", reason: "writer-2: paused" }),
    cluster,
  ],
  dropped: [],
};
const delta = (...put: LiveRecord[]): Change => ({ whole: false, put, dropped: [] });

let clock = 1_000;
const hands = () => new Hands();

function made(more: { reducedMotion?: boolean; width?: number; height?: number } = {}) {
  const frames = hands();
  const log: string[] = [];
  const front = fakeCanvas(more.width ?? 1_000, more.height ?? 700, log);
  const map = new Topology(front.canvas, {
    frames,
    reducedMotion: more.reducedMotion ?? false,
    theme: DARK,
    make: surfaceFactory(log),
    loadGround: async () => ground,
  });
  const events: [string, unknown][] = [];
  for (const name of ["click", "open", "focus", "select", "layer", "hover", "trouble"] as const) {
    map.on(name, (what) => events.push([name, what]));
  }
  const canvas = front.canvas as unknown as { dispatch(name: string, event: object): void };
  return { map, frames, log, events, front, dispatch: canvas.dispatch };
}

beforeEach(() => {
  clock = 1_000;
  vi.stubGlobal("window", { devicePixelRatio: 1 });
  vi.stubGlobal("document", {
    hidden: false,
    createElement: () => ({ style: {}, append() {}, replaceChildren() {}, remove() {} }),
  });
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      disconnect() {}
    },
  );
  vi.stubGlobal("Path2D", class {});
  vi.spyOn(performance, "now").mockImplementation(() => clock);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

describe("the map", () => {
  it("draws nothing when nothing moves", () => {
    const { map, frames } = made({ reducedMotion: true });
    map.put(whole);
    expect(frames.settle(clock)).toBeLessThan(5);
    const { frames: drawn } = map.stats();
    expect(frames.run(clock + 5_000)).toBe(0);
    expect(map.stats().frames).toBe(drawn);
  });

  it("requests frames only while something pulses or flows", () => {
    const { map, frames } = made();
    map.put({ ...whole, put: whole.put.filter((one) => one.id !== "writer-1") });
    expect(frames.settle(clock)).toBeLessThan(400);
    map.put(delta(node("writer-1", { state: "alert_entropy", alarms: [alarm] })));
    expect(frames.settle(clock + 10_000, 80)).toBe(80);
  });

  it("moves dots for sent messages, and then stops", () => {
    const { map, frames } = made();
    map.put({ ...whole, put: whole.put.filter((one) => one.id !== "writer-1") });
    frames.settle(clock);
    map.put(delta(node("planner-1", { version: 2, messages: 2 })));
    const took = frames.settle(clock, 400);
    expect(took).toBeGreaterThan(40);
    expect(took).toBeLessThan(120);
  });

  it("draws names, figures, and alerts at their icon", () => {
    const { map, frames, log } = made({ reducedMotion: true });
    map.put(whole);
    frames.settle(clock);
    expect(log).toContain("writer-1");
    expect(log).toContain("loop: is looping");
    expect(log.some((text) => /^2 agents · 2 msg\/s · \$0\.02\/min$/.test(text))).toBe(true);
    expect(log).toContain("1 loop");
  });

  it("has the same layout after a reload", () => {
    const places = () => {
      const { map, frames } = made({ reducedMotion: true });
      map.put(whole);
      frames.settle(clock);
      return ["planner-1", "writer-1", "writer-2", "reader-2"].map((id) => map.screenOf(id));
    };
    expect(places()).toEqual(places());
  });

  it("reports what the pointer is over", () => {
    const { map, frames, events, dispatch } = made({ reducedMotion: true });
    map.put(whole);
    frames.settle(clock);
    const at = map.screenOf("reader-2") as { x: number; y: number };
    const press = (x: number, y: number) => {
      const event = { pointerId: 1, button: 0, clientX: x, clientY: y, pointerType: "mouse" };
      dispatch("pointerdown", event);
      dispatch("pointerup", event);
    };
    press(at.x, at.y);
    press(2, 2);
    expect(events).toEqual([
      ["click", { kind: "node", id: "reader-2", x: at.x, y: at.y }],
      ["click", null],
    ]);
  });

  it("finds an edge by a point on its curve", () => {
    const { map, frames, events, dispatch } = made({ reducedMotion: true });
    map.put(whole);
    frames.settle(clock);
    const a = map.screenOf("planner-1") as { x: number; y: number };
    const b = map.screenOf("writer-1") as { x: number; y: number };
    for (let aside = -60; aside <= 60 && events.length === 0; aside += 4) {
      const x = (a.x + b.x) / 2 - ((b.y - a.y) / Math.hypot(b.x - a.x, b.y - a.y)) * aside;
      const y = (a.y + b.y) / 2 + ((b.x - a.x) / Math.hypot(b.x - a.x, b.y - a.y)) * aside;
      const event = { pointerId: 1, button: 0, clientX: x, clientY: y, pointerType: "mouse" };
      dispatch("pointerdown", event);
      dispatch("pointerup", event);
      if (events.at(-1)?.[1] === null) events.length = 0;
    }
    expect(events[0]?.[1]).toMatchObject({ kind: "edge", from: "planner-1" });
  });

  it("can be used with the keyboard alone", () => {
    const { map, frames, events, dispatch } = made({ reducedMotion: true });
    map.put(whole);
    frames.settle(clock);
    const key = (name: string) => dispatch("keydown", { key: name });
    key("ArrowRight");
    expect(map.selected?.kind).toBe("node");
    const first = map.selected?.id;
    for (const way of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]) key(way);
    expect(events.filter(([name]) => name === "select").length).toBeGreaterThan(1);
    expect(first).toBeDefined();
    key("Enter");
    expect(events.at(-1)?.[0]).toBe("open");
    const before = map.zoom;
    key("+");
    frames.settle(clock);
    expect(map.zoom).toBeGreaterThan(before);
    key("0");
    frames.settle(clock);
    expect(map.zoom).toBeCloseTo(1);
  });

  it("drills down into a hull and back, whatever the layer", async () => {
    const { map, frames, events, dispatch } = made({ reducedMotion: true });
    map.put(whole);
    frames.settle(clock);
    map.level = "cluster";
    frames.settle(clock);
    const at = map.screenOf("type:writer") as { x: number; y: number };
    dispatch("dblclick", { clientX: at.x, clientY: at.y });
    frames.settle(clock);
    expect(map.focus).toEqual({ group: "writer" });
    expect(map.counts().shown).toBe(2);
    expect(map.shownLevel).toBe("agent");
    map.layer = "geographic";
    await vi.waitFor(() => expect(events.some(([name]) => name === "layer")).toBe(true));
    frames.settle(clock);
    expect(map.focus).toEqual({ group: "writer" });
    expect(map.counts().shown).toBe(2);
    expect(map.up()).toBe(true);
    expect(map.up()).toBe(false);
  });

  it("morphs between the layers, can be interrupted, and jumps with reduced motion", async () => {
    const { map, frames } = made();
    map.put(whole);
    frames.settle(clock, 3);
    const start = map.screenOf("writer-2");
    map.layer = "geographic";
    await vi.waitFor(() => expect(frames.asked.size).toBe(1));
    await Promise.resolve();
    frames.run(clock + 360);
    const half = map.screenOf("writer-2");
    expect(half).not.toEqual(start);
    clock += 360;
    map.layer = "logical";
    frames.run(clock);
    const turned = map.screenOf("writer-2") as { x: number };
    expect(Math.abs(turned.x - (half as { x: number }).x)).toBeLessThan(2);
    frames.run(clock + 800);
    const back = map.screenOf("writer-2") as { x: number };
    expect(back.x).toBeCloseTo((start as { x: number }).x, 0);

    const calm = made({ reducedMotion: true });
    calm.map.put(whole);
    calm.frames.settle(clock);
    calm.map.layer = "geographic";
    await vi.waitFor(() => expect(calm.events.some(([name]) => name === "layer")).toBe(true));
    const cutTo = calm.map.screenOf("writer-2");
    calm.frames.settle(clock);
    expect(calm.map.screenOf("writer-2")).toEqual(cutTo);
  });

  it("stays on its layer when the world map cannot be loaded", async () => {
    const frames = hands();
    const front = fakeCanvas();
    const map = new Topology(front.canvas, {
      frames,
      reducedMotion: true,
      theme: DARK,
      make: surfaceFactory([]),
      loadGround: () => Promise.reject(new Error("offline")),
    });
    const troubles: string[] = [];
    map.on("trouble", (says) => troubles.push(says));
    map.put(whole);
    map.layer = "geographic";
    await vi.waitFor(() => expect(troubles).toHaveLength(1));
    expect(map.layer).toBe("logical");
  });

  it("finds and hides, and keeps the old filter when the new one is invalid", () => {
    const { map, frames } = made({ reducedMotion: true });
    map.put(whole);
    frames.settle(clock);
    expect(map.find("type:writer")).toEqual({ ok: true, matches: 2, of: 4 });
    expect(map.find("nope:1").ok).toBe(false);
    expect(map.counts().shown).toBe(2);
    expect(map.find("")).toMatchObject({ matches: 4 });
    expect(map.hide("state:idle")).toEqual({ ok: true, matches: 3, of: 4 });
    frames.settle(clock);
  });

  it("reports the worst callouts with their position, and follows the camera", () => {
    const { map, frames } = made({ reducedMotion: true });
    map.put(whole);
    frames.settle(clock);
    const [first] = map.callouts();
    expect(first).toMatchObject({ id: "writer-1", text: "loop: is looping", session_id: "ses_1" });
    expect(first).toMatchObject(map.screenOf("writer-1") as object);
    map.zoomBy(1.5);
    frames.settle(clock);
    const [after] = map.callouts();
    expect(after).toMatchObject(map.screenOf("writer-1") as object);
    expect(after?.r).toBeGreaterThan(first?.r ?? 0);
  });

  it("marks a fork for some seconds, and not those of a snapshot", () => {
    const { map, frames, log } = made({ reducedMotion: true });
    const fork = {
      kind: "fork",
      id: "9",
      version: 1,
      agent_id: "planner-1",
      to: ["writer-1", "writer-2"],
      children: 2,
    };
    map.put({ ...whole, put: [...whole.put, fork] });
    frames.settle(clock);
    expect(log).not.toContain("1→2");
    map.put(delta({ ...fork, id: "10" }));
    frames.run(clock + 40);
    expect(log).toContain("1→2");
    expect(frames.settle(clock + 80, 2_000)).toBeLessThan(600);
  });

  it("shows another time, and removes everything that did not exist then", () => {
    const { map, frames } = made({ reducedMotion: true });
    map.put(whole);
    frames.settle(clock);
    const then = { nodes: [node("writer-2")], groups: [], edges: [] };
    map.show(then as unknown as Parameters<typeof map.show>[0]);
    frames.settle(clock);
    expect(map.counts()).toMatchObject({ agents: 1, edges: 0 });
    map.put(whole);
    frames.settle(clock);
    expect(map.counts().agents).toBe(4);
  });

  it("stops for good when it is destroyed", () => {
    const { map, frames } = made();
    map.put(whole);
    map.destroy();
    frames.run(clock);
    expect(map.stats().frames).toBe(0);
    map.put(whole);
    expect(frames.asked.size).toBe(0);
  });
});
