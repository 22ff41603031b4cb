import ELK from "elkjs/lib/elk.bundled.js";
import { describe, expect, it } from "vitest";
import { drawn } from "./collapse";
import { graph, graphWith } from "./fixture";
import type { Graph } from "./graph";
import { ACROSS, elkOf, grown, HIGH, isSound, type Spots, spotsOf, WIDE } from "./layout";
import { fitOf } from "./miniMapFit";

function sound(it: Graph, spots: Spots): void {
  for (const { from, to } of it.links)
    expect(spots.get(to)?.row, `${to} below ${from}`).toBeGreaterThan(spots.get(from)?.row ?? 99);
  const rows = new Map<number, number[]>();
  for (const { row, x } of spots.values()) rows.set(row, [...(rows.get(row) ?? []), x]);
  for (const row of rows.values()) {
    const xs = row.sort((a, b) => a - b);
    for (let n = 1; n < xs.length; n += 1)
      expect((xs[n] ?? 0) - (xs[n - 1] ?? 0)).toBeGreaterThanOrEqual(WIDE + ACROSS - 1);
  }
}

/** Some agents, each a line of work, with forks and joins between them; the same every time. */
function mesh(steps: number): string[] {
  let seed = 7;
  const chance = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed / 2_147_483_648;
  };
  const last = Array.from({ length: 12 }, () => "0");
  return Array.from({ length: steps }, (_, n) => {
    if (n === 0) return "0";
    const mine = Math.floor(chance() * 12);
    const other = last[Math.floor(chance() * 12)] ?? "0";
    const above = last[mine] ?? "0";
    last[mine] = String(n);
    return chance() < 0.15 && other !== above ? `${n}<${above},${other}` : `${n}<${above}`;
  });
}

describe("layout", () => {
  it("puts every step below its parents without overlaps, using elkjs", async () => {
    const it_ = graph(...mesh(120));
    const what = drawn(it_);
    const spots = spotsOf((await new ELK().layout(elkOf(what) as never)) as never);
    expect(spots.size).toBe(120);
    sound(it_, spots);
  }, 30_000);

  it("does so without elkjs too", () => {
    const it_ = graph(...mesh(300));
    const spots = grown(new Map(), drawn(it_));
    expect(spots.size).toBe(300);
    sound(it_, spots);
  });

  it("grows two thousand steps as correctly, in rows of any width", () => {
    const fan = ["0", ...Array.from({ length: 1_999 }, (_, n) => `${n + 1}<${n < 40 ? 0 : n % 40}`)];
    for (const words of [mesh(2_000), fan]) {
      const it_ = graph(...words);
      const spots = grown(new Map(), drawn(it_, { most: 2_000 }));
      expect(spots.size).toBe(2_000);
      sound(it_, spots);
    }
  });

  it("moves no placed step when steps arrive, in any batches", () => {
    const words = mesh(200);
    const whole = grown(new Map(), drawn(graph(...words)));
    let spots: Spots = new Map();
    for (const until of [1, 2, 50, 51, 180, 200]) {
      const before = new Map(spots);
      spots = grown(spots, drawn(graph(...words.slice(0, until))));
      for (const [id, spot] of before) expect(spots.get(id)).toEqual(spot);
    }
    expect(spots).toEqual(whole);
  });

  it("places a late parent above its child, and a new root next to the others", () => {
    const before = new Map([
      ["a", { row: 0, x: 0 }],
      ["c", { row: 3, x: 0 }],
    ] as const);
    const spots = grown(before, drawn(graph("a", "p", "c<p", "r")));
    expect(spots.get("p")?.row).toBe(2);
    expect(spots.get("r")).toEqual({ row: 0, x: WIDE + ACROSS });
    expect(spots.get("c")).toEqual({ row: 3, x: 0 });
  });

  it("detects when growth is not enough: a run expanded in the middle of the picture", () => {
    const line = Array.from({ length: 50 }, (_, n) => (n === 0 ? "0" : `${n}<${n - 1}`));
    const folded = drawn(graph(...line), { most: 20 });
    const spots = grown(new Map(), folded);
    expect(isSound(spots, folded)).toBe(true);
    const open = drawn(graph(...line), { most: 60, opened: new Set(["run:1"]) });
    expect(isSound(grown(spots, open), open)).toBe(false);
  });

  it("forgets what is no longer drawn", () => {
    const spots = grown(new Map([["gone", { row: 0, x: 0 }]]), drawn(graph("a")));
    expect([...spots.keys()]).toEqual(["a"]);
  });
});

describe("the drawn part of a long session", () => {
  const line = (length: number) => Array.from({ length }, (_, n) => (n === 0 ? "0" : `${n}<${n - 1}`));

  it("is everything while it is short", () => {
    const what = drawn(graph(...line(50)), { most: 50 });
    expect(what.items).toHaveLength(50);
    expect(what.note).toBeNull();
  });

  it("folds a straight run into one card and shows a note", () => {
    const what = drawn(graph(...line(50)), { most: 20 });
    expect(what.items.map((item) => item.id)).toEqual(["0", "run:1", "49"]);
    expect(what.items[1]?.run?.steps).toHaveLength(48);
    expect(what.links.map((link) => `${link.from} ${link.to}`)).toEqual(["0 run:1", "run:1 49"]);
    expect(what.place.get("25")).toBe("run:1");
    expect(what.note).toContain("50 steps");
  });

  it("folds neither steps that need attention nor the selected step, nor across agents", () => {
    const overrides = { 20: { low_confidence: true, agent_id: "other" }, 30: { agent_id: "other" } };
    const what = drawn(graphWith(overrides, ...line(50)), { most: 20 });
    expect(what.items.some((item) => item.id === "20" && item.step)).toBe(true);
    expect(what.place.get("29")).not.toBe(what.place.get("31"));
    const opened = drawn(graph(...line(50)), { most: 20, selected: "25" });
    expect(opened.place.get("25")).toBe("25");
    const pressed = drawn(graph(...line(50)), { most: 60, opened: new Set(["run:1"]) });
    expect(pressed.items).toHaveLength(50);
  });

  it("is the part around the selected step, else the newest, when folding is not enough, with a note", () => {
    const wide = ["0", ...Array.from({ length: 99 }, (_, n) => `${n + 1}<0`)];
    const newest = drawn(graph(...wide), { most: 20 });
    expect(newest.items).toHaveLength(20);
    expect(newest.items.at(-1)?.id).toBe("99");
    expect(newest.note).toContain("20 of 100 steps");
    const around = drawn(graph(...wide), { most: 20, selected: "40" });
    expect(around.place.has("40")).toBe(true);
    expect(around.place.has("99")).toBe(false);
    expect(drawn(graph(...wide), { most: 20, selected: "1" }).place.has("1")).toBe(true);
  });
});

describe("the minimap", () => {
  it("shows every card inside its frame, however big the graph", () => {
    for (const size of [1, 60, 40_000]) {
      const nodes = [{ position: { x: -size, y: 0 } }, { position: { x: size, y: size * 7 } }];
      const fit = fitOf(nodes);
      for (const { position } of nodes) {
        expect(fit.x + position.x * fit.scale).toBeGreaterThanOrEqual(0);
        expect(fit.x + (position.x + WIDE) * fit.scale).toBeLessThanOrEqual(150);
        expect(fit.y + position.y * fit.scale).toBeGreaterThanOrEqual(0);
        expect(fit.y + (position.y + HIGH) * fit.scale).toBeLessThanOrEqual(96);
      }
    }
    expect(Number.isFinite(fitOf([]).scale)).toBe(true);
  });
});
