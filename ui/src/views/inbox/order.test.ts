// Working down the inbox by keys.
import { describe, expect, it } from "vitest";
import { beside, nameOf, shownOf, stays } from "./order";

const ITEMS = [
  { kind: "gate", id: "msg_1" },
  { kind: "decision", id: "dec_1" },
  { kind: "review", id: "7" },
] as const;

describe("beside", () => {
  it.each([
    ["gate:msg_1", 1, "decision:dec_1"],
    ["decision:dec_1", -1, "gate:msg_1"],
    ["review:7", 1, null],
    ["gate:msg_1", -1, null],
    ["gate:gone", 1, "gate:msg_1"],
    [undefined, 1, "gate:msg_1"],
  ] as const)("of %s by %i is %s", (name, by, to) => {
    expect(beside(ITEMS, name, by)).toBe(to);
  });

  it("of an empty list is nothing", () => {
    expect(beside([], "gate:msg_1", 1)).toBeNull();
  });
});

describe("shownOf", () => {
  it("keeps the gateway's order and the kind asked for", () => {
    expect(shownOf(ITEMS, undefined).map(nameOf)).toEqual(["gate:msg_1", "decision:dec_1", "review:7"]);
    expect(shownOf(ITEMS, "review").map(nameOf)).toEqual(["review:7"]);
  });
});

describe("what is shown", () => {
  const [gate, decision, review] = ITEMS;

  it("is the most urgent while nothing was chosen or shown", () => {
    expect(stays(ITEMS, ITEMS, undefined, null)).toEqual({ item: gate, gone: false });
  });

  it("stays when something more urgent comes, and is the newer record of itself", () => {
    const now = [{ kind: "gate", id: "msg_0" } as const, ...ITEMS];
    expect(stays(now, now, undefined, { ...gate })).toEqual({ item: gate, gone: false });
    expect(stays(now, now, undefined, { ...gate }).item).toBe(gate);
  });

  it("stays, marked as gone, when it leaves the list", () => {
    const left: (typeof ITEMS)[number][] = [decision];
    expect(stays(left, left, undefined, gate)).toEqual({ item: gate, gone: true });
    expect(stays(left, left, "gate:msg_1", gate)).toEqual({ item: gate, gone: true });
  });

  it("is what is wanted, or nothing where that was never seen", () => {
    expect(stays(ITEMS, [gate], "review:7", gate)).toEqual({ item: review, gone: false });
    expect(stays(ITEMS, ITEMS, "gate:old", gate)).toEqual({ item: undefined, gone: false });
  });
});
