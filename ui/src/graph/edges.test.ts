// Edges: sums, curves and hit testing; dots only for real traffic.
import { describe, expect, it } from "vitest";
import { alongX, alongY, type Body, distance, Link, lay, linked, openFrom, openTo, widthStep } from "./edges";
import { BodyIndex, LinkIndex, neighbour } from "./hit";
import { MAX_DOTS, Traffic } from "./traffic";
import type { EdgeRecord } from "./types";

const body = (id: string, x: number, y: number, hull = { x: 0, y: 0 }): Body => ({
  id,
  x,
  y,
  r: 11,
  hull,
  dim: false,
});
const edge = (from: string, to: string | null, more: Partial<EdgeRecord> = {}): EdgeRecord => ({
  id: `${from} → ${to ?? ""}`,
  from,
  to,
  messages: 10,
  rate_per_s: 1,
  status: "Healthy",
  reason: null,
  ...more,
});
const between = (a: Body, b: Body): Link => {
  const link = new Link("x", a, b);
  link.add(edge(a.id, b.id));
  link.sum();
  lay(link);
  return link;
};

describe("edges", () => {
  it("opposite directions are two lines", () => {
    const a = body("a", 0, 0);
    const b = body("b", 100, 0);
    const there = between(a, b);
    const back = between(b, a);
    expect(Math.sign(there.cy)).toBe(-Math.sign(back.cy));
  });

  it("between the same two hulls are bundled", () => {
    const left = { x: 0, y: 0 };
    const right = { x: 1_000, y: 0 };
    const far = between(body("a", 0, -200, left), body("b", 1_000, -200, right));
    const near = between(body("c", 0, 200, left), body("d", 1_000, 200, right));
    expect(Math.abs(alongY(far, 0.5) - alongY(near, 0.5))).toBeLessThan(320);
    expect(far.x0).toBe(0);
    expect(far.y1).toBe(-200);
  });

  it("have a width by the logarithm of their rate", () => {
    expect([0, 0.02, 0.1, 0.5, 5, 50, 5_000].map(widthStep)).toEqual([0, 1, 1, 2, 3, 4, 4]);
  });

  it("add up between groups, with the worst status and its reason", () => {
    const groups = new Map([
      ["a", body("A", 0, 0)],
      ["b", body("B", 100, 0)],
    ]);
    const groupOf = (id: string) => groups.get(id.charAt(0)) ?? null;
    const records = [
      edge("a1", "b1"),
      edge("a2", "b1", { status: "Alert", reason: "late" }),
      edge("a1", "b2", { status: "Blocked", reason: "paused" }),
      edge("a1", "a2"),
      edge("a1", "elsewhere"),
    ];
    const { links, of } = linked(records, groupOf, false);
    expect([...links.keys()]).toEqual(["A ⇒ B"]);
    const link = links.get("A ⇒ B") as Link;
    expect(link).toMatchObject({ rate: 3, status: "Blocked", reason: "paused", look: "Blocked" });
    expect(of.get("a2 → b1")).toBe(link);
    expect(of.has("a1 → a2")).toBe(false);
  });

  it("a bundle looks unhealthy only when half of it is, but is marked", () => {
    const a = body("A", 0, 0);
    const b = body("B", 100, 0);
    const link = new Link("x", a, b);
    for (let at = 0; at < 9; at++) link.add(edge("a", `b${at}`));
    link.add(edge("a", "z", { status: "Blocked", reason: "paused" }));
    expect(link.sum()).toBe(true);
    expect(link).toMatchObject({ status: "Blocked", look: "Healthy" });
    expect(link.sum()).toBe(false);
  });

  it("without a receiver end in free space", () => {
    const { links } = linked([edge("a", null, { address: "capability:x" })], (id) => body(id, 50, 0), true);
    const [link] = [...links.values()] as [Link];
    lay(link);
    expect(Math.hypot(link.x1 - link.x0, link.y1 - link.y0)).toBeGreaterThan(20);
  });

  it("run between the rims of their ends", () => {
    const link = between(body("a", 0, 0), body("b", 100, 0));
    expect(openFrom(link, 0)).toBeCloseTo(0.11);
    expect(openTo(link, 0)).toBeCloseTo(0.89);
  });
});

describe("what is under the pointer", () => {
  const links = Array.from({ length: 400 }, (_, at) =>
    between(body(`a${at}`, (at % 20) * 120, 0), body(`b${at}`, ((at * 7) % 20) * 120, 900)),
  );

  it("is the same link that a brute-force search finds", () => {
    const index = new LinkIndex(links);
    for (let at = 0; at < 60; at++) {
      const x = (at * 137) % 2_300;
      const y = (at * 61) % 900;
      const nearest = Math.min(...links.map((one) => distance(one, x, y)));
      const hit = index.at(x, y, 12);
      if (nearest > 12) expect(hit).toBeNull();
      else expect(distance(hit as Link, x, y)).toBeCloseTo(nearest, 6);
    }
  });

  it("is hit near the line too, but not far from it", () => {
    const link = between(body("a", 0, 0), body("b", 400, 0));
    const index = new LinkIndex([link]);
    const x = alongX(link, 0.5);
    const y = alongY(link, 0.5);
    expect(index.at(x, y + 6, 7)).toBe(link);
    expect(index.at(x, y + 30, 7)).toBeNull();
  });

  it("is the nearest node, within its circle", () => {
    const all = Array.from({ length: 500 }, (_, at) =>
      body(`n${at}`, (at % 25) * 40, Math.floor(at / 25) * 40),
    );
    const index = new BodyIndex(all);
    expect(index.at(82, 41, 2)?.id).toBe("n27");
    expect(index.at(60, 60, 2)).toBeNull();
    expect(index.at(-9_999, 0, 2)).toBeNull();
  });

  it("arrows go to the neighbour there", () => {
    const all = [
      body("mid", 0, 0),
      body("right", 50, 10),
      body("far", 500, 0),
      body("down", 5, 60),
      body("left", -80, 0),
    ];
    const from = all[0] as Body;
    expect(neighbour(all, from, "right")?.id).toBe("right");
    expect(neighbour(all, from, "down")?.id).toBe("down");
    expect(neighbour(all, from, "left")?.id).toBe("left");
    expect(neighbour(all, from, "up")).toBeNull();
  });
});

describe("traffic", () => {
  const a = body("a", 0, 0);
  const link = between(a, body("b", 100, 0));
  const record = edge("a", "b");
  const linkOf = new Map([[record.id, link]]);
  const busy = (id: string) => (id === "a" ? [record] : []);

  it("makes dots for sent messages only", () => {
    const traffic = new Traffic();
    traffic.take(
      {
        sent: [
          { id: "a", count: 2 },
          { id: "quiet", count: 5 },
        ],
        rose: [],
      },
      busy,
      linkOf,
      0,
    );
    expect(traffic.count).toBe(2);
    expect(traffic.step(100)).toBe(true);
    expect(traffic.step(5_000)).toBe(false);
    expect(traffic.count).toBe(0);
  });

  it("makes one for an edge whose count grew", () => {
    const traffic = new Traffic();
    traffic.take({ sent: [], rose: [record.id, "gone"] }, busy, linkOf, 0);
    expect(traffic.count).toBe(1);
  });

  it("is bounded under any load", () => {
    const traffic = new Traffic();
    const sent = Array.from({ length: 5_000 }, () => ({ id: "a", count: 3 }));
    traffic.take({ sent, rose: [] }, busy, linkOf, 0);
    expect(traffic.count).toBe(MAX_DOTS);
  });

  it("continues along the links of another level, and ends where its edge is no longer drawn", () => {
    const traffic = new Traffic();
    traffic.take({ sent: [{ id: "a", count: 1 }], rose: [] }, busy, linkOf, 0);
    traffic.relink(new Map());
    expect(traffic.step(10)).toBe(false);
  });
});
