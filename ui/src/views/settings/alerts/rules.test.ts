import { expect, test } from "vitest";
import type { ConditionItem, RuleItem } from "~/protocol/openapi";
import { limitOf, readRule, startOf, unitOf, valuesOf } from "./rules";

const VIOLATIONS: ConditionItem = {
  condition: "violations",
  text: "messages violate the schema",
  unit: "messages",
  counts_events: true,
  scopes: ["agent", "tenant"],
  threshold: 5,
  window_s: 300,
  scalable: false,
};
const QUEUE: ConditionItem = {
  ...VIOLATIONS,
  condition: "queue_depth",
  counts_events: false,
  scopes: ["capability"],
  threshold: 50,
  window_s: null,
};

test("a new rule starts with its metric's defaults", () => {
  const read = readRule(startOf(VIOLATIONS, "Bad messages"), VIOLATIONS);
  expect(read.body).toMatchObject({ scope: "agent", threshold: 5, window_s: 300, for_s: 0, target: null });
});

test("a level has no window and a count no duration, whatever the hidden field contains", () => {
  const level = readRule({ ...startOf(QUEUE, "Queue"), window_s: "junk", for_s: "1 min" }, QUEUE);
  expect(level.body).toMatchObject({ window_s: null, for_s: 60 });
  const count = readRule({ ...startOf(VIOLATIONS, "V"), for_s: "junk", compare: "below" }, VIOLATIONS);
  expect(count.body).toMatchObject({ for_s: 0, compare: "above" });
});

test("one is singular, seconds stay seconds", () => {
  expect([unitOf(1, "messages"), unitOf(5, "messages"), unitOf(1, "s"), unitOf(1, "")]).toEqual([
    "message",
    "messages",
    "s",
    "",
  ]);
});

test("every fault is reported at once, at its field", () => {
  const bad = { ...startOf(VIOLATIONS, " "), threshold: "lots", window_s: "0", cooldown_s: "2 d" };
  expect(Object.keys(readRule(bad, VIOLATIONS).faults ?? {})).toEqual([
    "name",
    "threshold",
    "window_s",
    "cooldown_s",
  ]);
  const low = readRule({ ...startOf(QUEUE, "Q"), compare: "below" }, QUEUE);
  expect(low.faults?.target).toContain("needs one capability");
});

test("a rule reads as a limit, and round-trips through the form", () => {
  const read = readRule({ ...startOf(VIOLATIONS, "V"), target: "bob" }, VIOLATIONS).body;
  const rule = { ...read, target: "bob" } as unknown as RuleItem;
  expect(limitOf(rule, VIOLATIONS)).toBe("5 messages or more within 5 min, of agent bob");
  expect(readRule(valuesOf(rule), VIOLATIONS).body).toEqual(read);
  const level = { ...read, condition: "queue_depth", for_s: 60, scope: "tenant", target: null };
  expect(limitOf(level as unknown as RuleItem, QUEUE)).toBe("5 messages or more for 1 min");
});
