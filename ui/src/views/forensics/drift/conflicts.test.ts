import { describe, expect, it } from "vitest";
import type { ConflictItem } from "~/protocol/openapi";
import { agentsOf, agentsToCorrect, ordered, place, sinceWhen } from "./conflicts";

const conflict = (subject: string, sides: [string, [string, string][]][], reconciled = false) =>
  ({
    subject,
    scope: "session:s-1",
    sides: sides.map(([value, holders]) => ({
      value,
      holders: holders.map(([agent_id, at]) => ({ agent_id, at })),
    })),
    reconciled: reconciled ? { value: "1" } : null,
  }) as unknown as ConflictItem;

const shares = conflict("shares", [
  [
    "48.2 million",
    [
      ["a", "T1"],
      ["c", "T7"],
    ],
  ],
  ["51.7 million", [["b", "T4"]]],
]);

describe("a conflict", () => {
  it("is as old as the second value", () => {
    expect(sinceWhen(shares)).toBe("T4");
    expect(sinceWhen(conflict("x", []))).toBeNull();
  });

  it("notifies every agent that holds another value, once", () => {
    expect(agentsToCorrect(shares, "48.2 Million ")).toEqual(["b"]);
    expect(agentsToCorrect(shares, "50 million")).toEqual(["a", "c", "b"]);
    expect(agentsOf([{ agent_id: "a" }, { agent_id: "a" }, { agent_id: null }] as never)).toEqual([
      "a",
      "unknown",
    ]);
  });

  it("sorts before resolved ones, newest first", () => {
    const old = conflict("old", [
      ["1", [["a", "T0"]]],
      ["2", [["b", "T0"]]],
    ]);
    const ruled = conflict(
      "ruled",
      [
        ["1", [["a", "T9"]]],
        ["2", [["b", "T9"]]],
      ],
      true,
    );
    expect(ordered([ruled, old, shares]).map((one) => one.subject)).toEqual(["shares", "old", "ruled"]);
  });

  it("says where", () => expect(place("cluster:aws-1:b")).toEqual({ kind: "cluster", id: "aws-1:b" }));
});
