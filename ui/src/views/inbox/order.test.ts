// Working down the inbox by keys.
import { describe, expect, it } from "vitest";
import { beside, nameOf, shownOf } from "./order";

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
