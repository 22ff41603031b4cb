// Working down the inbox by keys.
import { describe, expect, it } from "vitest";
import { nameOf, neighbour, shownItem, stayingItem } from "./order";

const ITEMS = [
  { kind: "gate", id: "msg_1" },
  { kind: "decision", id: "dec_1" },
  { kind: "review", id: "7" },
] as const;

describe("neighbour", () => {
  it.each([
    ["gate:msg_1", 1, "decision:dec_1"],
    ["decision:dec_1", -1, "gate:msg_1"],
    ["review:7", 1, null],
    ["gate:msg_1", -1, null],
    ["gate:gone", 1, "gate:msg_1"],
    [undefined, 1, "gate:msg_1"],
  ] as const)("of %s by %i is %s", (name, by, to) => {
    expect(neighbour(ITEMS, name, by)).toBe(to);
  });

  it("of an empty list is nothing", () => {
    expect(neighbour([], "gate:msg_1", 1)).toBeNull();
  });
});

describe("shownOf", () => {
  it("keeps the gateway's order and the kind asked for", () => {
    expect(shownItem(ITEMS, undefined).map(nameOf)).toEqual(["gate:msg_1", "decision:dec_1", "review:7"]);
    expect(shownItem(ITEMS, "review").map(nameOf)).toEqual(["review:7"]);
  });
});

describe("what is shown", () => {
  const [gate, decision, review] = ITEMS;

  it("is the most urgent while nothing was selected or shown", () => {
    expect(stayingItem(ITEMS, ITEMS, undefined, null)).toEqual({ item: gate, gone: false });
  });

  it("stays when something more urgent arrives, updated to its newest record", () => {
    const now = [{ kind: "gate", id: "msg_0" } as const, ...ITEMS];
    expect(stayingItem(now, now, undefined, { ...gate })).toEqual({ item: gate, gone: false });
    expect(stayingItem(now, now, undefined, { ...gate }).item).toBe(gate);
  });

  it("stays, marked as gone, when it leaves the list", () => {
    const left: (typeof ITEMS)[number][] = [decision];
    expect(stayingItem(left, left, undefined, gate)).toEqual({ item: gate, gone: true });
    expect(stayingItem(left, left, "gate:msg_1", gate)).toEqual({ item: gate, gone: true });
  });

  it("is the requested one, or nothing if it was never seen", () => {
    expect(stayingItem(ITEMS, [gate], "review:7", gate)).toEqual({ item: review, gone: false });
    expect(stayingItem(ITEMS, ITEMS, "gate:old", gate)).toEqual({ item: undefined, gone: false });
  });
});
