// The geographic layer: clusters near their region, none overlapping, those without a region in the dock; and
// the small pure functions.
import { describe, expect, it } from "vitest";
import { Forks, STAYS_MS } from "./forks";
import { ground, landPath, projected, widthFor } from "./geo";
import { outline, within } from "./hulls";
import { Model } from "./model";
import { faded, glyph, lightness, perMinute, short, worse } from "./palette";

const places = new Map([
  ["cluster:a", { lat: 50.1, lon: 8.7 }],
  ["cluster:b", { lat: 52.4, lon: 4.9 }],
  ["cluster:c", { lat: 1.3, lon: 103.7 }],
]);

describe("the geographic layer", () => {
  const sizes = new Map([...places.keys(), "cluster:nowhere", "cluster:lab"].map((key) => [key, 110]));
  const made = ground(sizes, places);

  it("keeps crowded clusters apart and near their region", () => {
    const [a, b] = [made.hulls.get("cluster:a"), made.hulls.get("cluster:b")];
    if (!a || !b) throw new Error("not placed");
    expect(Math.hypot(a.x - b.x, a.y - b.y)).toBeGreaterThan(a.r + b.r - 1);
    const home = made.anchors.get("cluster:a") as { x: number; y: number };
    expect(Math.hypot(a.x - home.x, a.y - home.y)).toBeLessThan(a.r * 1.5);
  });

  it("has north at the top", () => {
    const [europe, asia] = [made.anchors.get("cluster:a"), made.anchors.get("cluster:c")];
    expect(asia?.x).toBeGreaterThan(europe?.x ?? 0);
    expect(asia?.y).toBeGreaterThan(europe?.y ?? 0);
  });

  it("docks clusters without a region, below the map and nowhere else", () => {
    for (const key of ["cluster:nowhere", "cluster:lab"]) {
      const at = made.hulls.get(key) as { x: number; y: number; r: number };
      expect(made.anchors.has(key)).toBe(false);
      expect(at.y - at.r).toBeGreaterThan(made.dock?.y0 ?? Number.POSITIVE_INFINITY);
      expect(at.y + at.r).toBeLessThan(made.dock?.y1 ?? 0);
    }
    expect(ground(new Map([["cluster:a", 50]]), places).dock).toBeNull();
  });

  it("draws the land once for a size, without the south pole", () => {
    const width = widthFor([100]);
    expect(landPath(width)).toBe(landPath(width));
    const lowest = Math.max(...[...landPath(width).matchAll(/,(-?[\d.]+)/g)].map((one) => Number(one[1])));
    expect(lowest).toBeLessThanOrEqual(projected(width)({ lat: -57.9, lon: 11 }).y);
  });

  it("does not resize the world for one more agent", () => {
    expect(widthFor([100, 100])).toBe(widthFor([100, 101]));
    expect(widthFor(Array.from({ length: 40 }, () => 300))).toBeGreaterThan(widthFor([100]));
  });
});

describe("outlines", () => {
  it("contain their circles and not what is next to them", () => {
    const around = outline(
      [
        { x: 0, y: 0, r: 10 },
        { x: 100, y: 0, r: 20 },
      ],
      5,
      { x: 50, y: 0 },
    );
    expect(within(around, -60, 0)).toBe(true);
    expect(within(around, 65, 15)).toBe(true);
    expect(within(around, 0, 40)).toBe(false);
    expect(within(around, -70, 0)).toBe(false);
  });
});

describe("the model", () => {
  const node = (id: string, messages: number) => ({
    kind: "node",
    id,
    version: 1,
    messages,
    agent_type: "t",
    cluster_id: "c",
    state: "active",
  });

  it("reports senders, but not for a snapshot", () => {
    const model = new Model();
    expect(model.put({ whole: true, put: [node("a", 5)], dropped: [] })).toMatchObject({
      members: true,
      sent: [],
    });
    const news = model.put({ whole: false, put: [node("a", 8)], dropped: [] });
    expect(news).toMatchObject({ members: false, nodes: true, sent: [{ id: "a", count: 3 }] });
    expect(model.put({ whole: true, put: [node("a", 20)], dropped: [] }).sent).toEqual([]);
  });

  it("drops what a snapshot no longer has", () => {
    const model = new Model();
    model.put({ whole: true, put: [node("a", 1), node("b", 1)], dropped: [] });
    expect(model.put({ whole: true, put: [node("b", 1)], dropped: [] }).members).toBe(true);
    expect([...model.nodes.keys()]).toEqual(["b"]);
  });

  it("uses the gateway's sign over the built-in one", () => {
    const model = new Model();
    const sign = {
      kind: "sign",
      id: "idle",
      version: 1,
      state: "idle",
      colour: "#123456",
      mark: "~",
      shape: "circle",
      flashing: false,
    };
    model.put({ whole: false, put: [sign], dropped: [] });
    expect(model.signs.idle).toMatchObject({ colour: "#123456", mark: "~", word: "idle" });
  });
});

describe("forks", () => {
  it("burst again only when they grow, and disappear after some seconds", () => {
    const forks = new Forks();
    const record = { id: "1", agent_id: "a", to: ["b", "b", "c"], children: 2 };
    forks.take([record], 0);
    forks.take([record], 500);
    expect(forks.all).toMatchObject([{ begun: 0, children: ["b", "c"] }]);
    forks.take([{ ...record, children: 3 }], 1_000);
    expect(forks.all).toMatchObject([{ begun: 1_000, count: 3 }]);
    forks.step(1_000 + STAYS_MS);
    expect(forks.all).toEqual([]);
  });
});

describe("the palette", () => {
  it("gives each type two letters", () => {
    expect(["web_researcher", "planner", "codeRunner", "", null, "fact-checker"].map(glyph)).toEqual([
      "WR",
      "Pl",
      "CR",
      "?",
      "?",
      "FC",
    ]);
  });

  it("picks the worse of two states", () => {
    expect(worse("active", "dead")).toBe("dead");
    expect(worse("alert_entropy", "blocked")).toBe("alert_entropy");
  });

  it("abbreviates figures", () => {
    expect([0, 0.05, 3.456, 12.4, 1_234, 5_600_000].map(short)).toEqual([
      "0",
      "0.05",
      "3.46",
      "12",
      "1.23k",
      "5.6M",
    ]);
    expect([0, 0.002, 0.31, 32].map(perMinute)).toEqual(["", "$0.0020/min", "$0.31/min", "$32/min"]);
  });

  it("distinguishes light from dark", () => {
    expect(lightness("#fbfbfc")).toBeGreaterThan(0.9);
    expect(lightness("#0b0e14")).toBeLessThan(0.1);
    expect(faded("#ef4444", 0.5)).toBe("rgba(239,68,68,0.5)");
  });
});
