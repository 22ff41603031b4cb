// Layout: the same for the same mesh in any order, stable when an agent joins, no overlaps.
import { describe, expect, it } from "vitest";
import { Arrangement, type Form, type Member, packed, rim, roomFor, Seats, seat, spread } from "./layout";
import { AGENT_R } from "./zoom";

function mesh(count: number): Member[] {
  return Array.from({ length: count }, (_, at) => {
    const type = `type${at % 8}`;
    return { id: `${type}-${at}`, inner: `group:c${at % 5}/${type}`, outer: `type:${type}` };
  });
}

const arranged = (members: Member[]) => new Arrangement().arrange("logical", members, undefined, "even");

describe("seats", () => {
  it("are all apart, and none is left out", () => {
    for (let a = 0; a < 120; a++) {
      for (let b = 0; b < a; b++) {
        expect(Math.hypot(seat(a).x - seat(b).x, seat(a).y - seat(b).y)).toBeGreaterThan(AGENT_R * 2.2);
      }
    }
  });

  it("stay with their agent when others come and go", () => {
    const seats = new Seats();
    const before = new Map(seats.take(["a", "b", "c", "d", "e"]));
    const after = seats.take(["a", "b", "d", "e", "f", "g"]);
    for (const id of ["a", "b", "d", "e"]) expect(after.get(id)).toBe(before.get(id));
    expect(new Set(after.values()).size).toBe(6);
  });

  it("are nearly the same after a reload with one more agent", () => {
    const ids = Array.from({ length: 40 }, (_, at) => `agent-${at}`);
    const before = new Seats().take(ids);
    const after = new Seats().take([...ids, "agent-new"]);
    const moved = ids.filter((id) => before.get(id) !== after.get(id));
    expect(moved.length).toBeLessThan(10);
  });

  it("grow in steps", () => {
    expect([1, 2, 5, 7, 8, 13].map(roomFor)).toEqual([1, 2, 7, 7, 12, 18]);
    expect(rim(7).r).toBeGreaterThan(rim(3).r);
  });
});

describe("hulls", () => {
  it("contain their groups", () => {
    const hull = packed(
      new Map([
        ["a", 12],
        ["b", 3],
        ["c", 1],
      ]),
    );
    for (const group of hull.groups.values()) {
      expect(Math.hypot(group.x, group.y) + group.r).toBeLessThanOrEqual(hull.r + 1e-6);
    }
  });

  it("do not overlap, and stay when another comes", () => {
    const sizes = new Map(Array.from({ length: 12 }, (_, at) => [`h${at}`, 60 + (at % 4) * 40]));
    const before = spread(sizes, new Map());
    const all = [...before.values()];
    for (const [at, a] of all.entries()) {
      for (const b of all.slice(at + 1)) expect(Math.hypot(a.x - b.x, a.y - b.y)).toBeGreaterThan(a.r + b.r);
    }
    const after = spread(new Map([...sizes, ["new", 80]]), before);
    for (const [key, circle] of before) {
      expect(after.get(key)?.x).toBeCloseTo(circle.x, 6);
      expect(after.get(key)?.y).toBeCloseTo(circle.y, 6);
    }
  });

  it("fill a canvas that is wide, wider, or a phone", () => {
    const sizes = new Map(Array.from({ length: 8 }, (_, at) => [`h${at}`, 80]));
    const span = (form: Form) => {
      const all = [...spread(sizes, new Map(), form).values()];
      const wide = Math.max(...all.map((one) => one.x)) - Math.min(...all.map((one) => one.x));
      const high = Math.max(...all.map((one) => one.y)) - Math.min(...all.map((one) => one.y));
      return wide / high;
    };
    expect(span("even")).toBeGreaterThan(1.1);
    expect(span("wide")).toBeGreaterThan(span("even") * 1.3);
    expect(span("tall")).toBeLessThan(0.9);
  });
});

describe("an arrangement", () => {
  it("is the same for the same mesh, in whatever order it comes", () => {
    const members = mesh(200);
    const one = arranged(members);
    const other = arranged([...members].reverse());
    for (const [id, at] of one.agents) {
      expect(other.agents.get(id)?.x).toBeCloseTo(at.x, 6);
      expect(other.agents.get(id)?.y).toBeCloseTo(at.y, 6);
    }
  });

  it("moves no agent when one joins a group with free seats", () => {
    const members = mesh(400);
    const arrangement = new Arrangement();
    const before = new Map(arrangement.arrange("x", members, undefined, "even").agents);
    const join = { id: "type0-new", inner: "group:c0/type0", outer: "type:type0" };
    const after = arrangement.arrange("x", [...members, join], undefined, "even").agents;
    for (const [id, at] of before) expect(after.get(id)).toEqual(at);
    expect(after.has("type0-new")).toBe(true);
  });

  it("puts no two of a thousand agents on one spot", () => {
    const places = [...arranged(mesh(1_000)).agents.values()];
    const keys = new Set(places.map((at) => `${Math.round(at.x / AGENT_R)} ${Math.round(at.y / AGENT_R)}`));
    expect(keys.size).toBe(1_000);
  });
});
