import { expect, it } from "vitest";
import type { BudgetItem } from "~/protocol/openapi";
import { BLANK, bodyOf, nameOf, nearness, paceOf, typedOf } from "./budget";

it("has a readable name", () => {
  expect(nameOf({ scope: "tenant", target: "tnt_default" })).toBe("the whole tenant");
  expect(nameOf({ scope: "session", target: "*" })).toBe("each session separately");
  expect(nameOf({ scope: "agent", target: "writer-1" })).toBe("agent writer-1");
});

it.each([
  [{ soft: "", hard: "" }, /soft cap, a hard cap or both/],
  [{ soft: "-1" }, /soft cap must be/],
  [{ hard: "many" }, /hard cap must be/],
  [{ hard: "1e400" }, /hard cap must be/],
  [{ soft: "5", hard: "4" }, /must not exceed/],
  [{ scope: "agent", hard: "4" }, /Enter the agent/],
  [{ scope: "cluster", target: "*", hard: "4" }, /Enter a cluster name/],
  [{ scope: "agent", target: "*", hard: "4", period: "daily" }, /choose no period/],
] as const)("an invalid cap is refused with a sentence", (typed, words) => {
  const read = bodyOf({ ...BLANK, ...typed });
  expect("fault" in read && read.fault).toMatch(words);
});

it("is sent as the gateway expects it, and read back the same", () => {
  const typed = { ...BLANK, scope: "agent", target: " writer-1 ", soft: "4", hard: "5.5" } as const;
  expect(bodyOf(typed)).toEqual({
    body: { scope: "agent", target: "writer-1", period: "daily", soft: 4, hard: 5.5 },
  });
  expect(bodyOf({ ...BLANK, hard: "0" })).toMatchObject({ body: { target: null, hard: 0, soft: null } });
  const item = { scope: "tenant", target: "tnt_default", period: "none", soft: null, hard: 3 } as BudgetItem;
  expect(typedOf(item)).toEqual({ scope: "tenant", target: "", period: "none", soft: "", hard: "3" });
});

it("shows how near it is, and how fast it gets there", () => {
  expect(nearness({ spent: 1, soft: 2, hard: 3 }).tone).toBe("calm");
  expect(nearness({ spent: 2, soft: 2, hard: 3 }).tone).toBe("soft");
  expect(nearness({ spent: 3, soft: 2, hard: 3 }).tone).toBe("hard");
  expect(paceOf(undefined)).toBe("no spend now");
  expect(paceOf({ per_min_5m: 0.5, hard_in_s: null })).toBe("$0.50/min");
  expect(paceOf({ per_min_5m: 0.5, hard_in_s: 7_200 })).toBe("$0.50/min, hard cap in 2 h");
});
