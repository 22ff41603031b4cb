import { describe, expect, it } from "vitest";
import type { RuleItem } from "~/protocol/openapi";
import { conditionText, draftOf, FRESH, levelsOf, read, standingOf, suggestionText } from "./triggers";

const RULE: RuleItem = {
  rule_id: "scl_1",
  purpose: "scaling",
  name: "More coders",
  condition: "queue_depth",
  scope: "capability",
  target: "coder",
  compare: "above",
  threshold: 50,
  window_s: null,
  for_s: 0,
  cooldown_s: 300,
  severity: "warning",
  direction: "up",
  amount: 2,
  endpoint_ids: [],
  enabled: true,
  muted_until: null,
  open: 0,
  created_at: "",
  created_by: "",
  updated_at: "",
  updated_by: "",
};
const level = (value: number, breaches = false) => ({
  rule_id: "scl_1",
  of: 1,
  subjects: [{ subject: "capability:coder", value, breaches }],
});

describe("scaling triggers", () => {
  it("read as a sentence", () => {
    expect(conditionText(RULE)).toBe("unacknowledged messages of type coder ≥ 50");
    expect(
      conditionText({
        ...RULE,
        condition: "burn_rate",
        scope: "tenant",
        target: null,
        for_s: 900,
        threshold: 0.5,
      }),
    ).toBe("spend per minute of the tenant ≥ $0.50 for 15 min");
    expect(conditionText({ ...RULE, condition: "breaker", target: null })).toBe("circuit open of any type");
    expect([suggestionText(RULE), suggestionText({ direction: "down", amount: 1 })]).toEqual([
      "▲ 2 more",
      "▼ 1 fewer",
    ]);
  });

  it("show how close the level is, from above and from below", () => {
    expect(levelsOf(RULE, level(25))[0]).toMatchObject({ subject: "type:coder", share: 0.5 });
    expect(levelsOf(RULE, level(500, true))[0]?.share).toBe(1);
    const low = { ...RULE, compare: "below" as const, threshold: 10 };
    expect(levelsOf(low, level(40))[0]?.share).toBe(0.25);
    expect(levelsOf(low, level(0, true))[0]?.share).toBe(1);
    expect(levelsOf(RULE, undefined)).toEqual([]);
  });

  it("have a state, muted before firing", () => {
    const until = new Date(10_000).toISOString();
    expect(standingOf({ ...RULE, open: 1 }, 0).word).toBe("triggered");
    expect(standingOf({ ...RULE, open: 1, muted_until: until }, 0).word).toBe("muted");
    expect(standingOf({ ...RULE, enabled: false }, 0).word).toBe("off");
  });

  it("are parsed from the form, with every fault at its field", () => {
    expect(read(FRESH).faults).toEqual({ name: "Enter a name." });
    expect(read({ ...draftOf(RULE), threshold: "many", amount: "0", cooldown_s: "1.5" }).faults).toEqual({
      threshold: "Enter a number.",
      amount: "Must be from 1 to 1000.",
      cooldown_s: "Enter a whole number.",
    });
    expect(read({ ...draftOf(RULE), compare: "below", target: "" }).faults.target).toContain(
      "Enter a target",
    );
    expect(read(draftOf(RULE)).body).toMatchObject({
      target: "coder",
      threshold: 50,
      amount: 2,
      direction: "up",
    });
  });
});
