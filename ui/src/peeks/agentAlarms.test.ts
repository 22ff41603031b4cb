import { expect, test } from "vitest";
import type { AlertNotice } from "~/protocol/openapi";
import { folded } from "./agentAlarms";

const notice = (n: number, agent_id: string, text: string) =>
  ({ id: `alert:${n}`, agent_id, text, sequence_number: n }) as AlertNotice;

test("the same alert is listed once, with its count and the newest", () => {
  const found = folded(
    [
      notice(9, "a", "a breaks it"),
      notice(8, "b", "b breaks it"),
      notice(7, "a", "a breaks it"),
      notice(6, "a", "loop"),
    ],
    "a",
  );
  expect(found.map((one) => [one.text, one.times, one.last.id])).toEqual([
    ["breaks it", 2, "alert:9"],
    ["loop", 1, "alert:6"],
  ]);
});

test("an agent whose name has the same prefix is another agent", () => {
  expect(folded([notice(1, "a1", "a1 x")], "a")).toEqual([]);
});
