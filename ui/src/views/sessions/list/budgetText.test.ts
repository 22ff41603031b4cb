import { describe, expect, it } from "vitest";
import { against, bar, nameOf, outlook } from "./budgetText";
import { points } from "./Sparkline";
import { standing } from "./StuckSessions";
import { capState, rowOf } from "./session";
import { moved } from "./useCursor";

describe("a budget as text", () => {
  const budget = { soft: 3, hard: 5, soft_in_s: null, hard_in_s: null, spent: 1, per_min_5m: 0.2 };
  it.each([
    [{ ...budget, hard_in_s: 720 }, "hard cap in 12 min"],
    [{ ...budget, spent: 4, hard_in_s: 60 }, "over soft cap, hard cap in 60 s"],
    [{ ...budget, spent: 5, hard_in_s: 0 }, "hard cap reached: messages are refused"],
    [{ ...budget, hard: null, soft_in_s: 3_600 }, "soft cap in 60 min"],
    [{ ...budget, per_min_5m: 0 }, "no spend now"],
    [{ ...budget, hard: null, spent: 4 }, "over soft cap, next cap not in sight"],
  ])("%#", (one, said) => expect(outlook(one)).toBe(said));
  it("is named by its scope", () => {
    expect(nameOf({ scope: "tenant", target: "t", whose: null, period: "daily" })).toBe(
      "all sessions, daily",
    );
    expect(nameOf({ scope: "session", target: "*", whose: "s-1", period: "none" }, "NVDA note")).toBe(
      "session “NVDA note”",
    );
    expect(nameOf({ scope: "agent", target: "*", whose: "w-1", period: "none" })).toBe("agent w-1");
  });
  it("is compared with its hard cap, else its soft one", () => {
    expect(against(4.2, 3, 5)).toBe("$4.20 of $5.00");
    expect(against(4.2, 3, null)).toBe("$4.20 of $3.00 (soft)");
  });
});

describe("the bar of a budget", () => {
  it("ends at the hard cap, or at what was spent beyond it", () => {
    expect(bar(1, 3, 5)).toEqual({ filled: 0.2, soft: 0.6, hard: 1, tone: "under" });
    expect(bar(10, 3, 5)).toEqual({ filled: 1, soft: 0.3, hard: 0.5, tone: "hard" });
    expect(bar(4, 3, 5).tone).toBe("soft");
    expect(bar(0, null, 0)).toMatchObject({ filled: 0, tone: "hard" });
  });
  it("agrees with the filter", () => {
    expect(capState(null)).toBe("none");
  });
});

describe("small list helpers", () => {
  it("draws a low score low", () => {
    const [high, low] = points([1, 0], 10, 10);
    expect(high?.[1]).toBeLessThan(low?.[1] ?? 0);
    expect(points([2, -1], 10, 10).every(([, y]) => y >= 0 && y <= 10)).toBe(true);
  });
  it("lists stuck sessions, the longest first, and prefers the live row", () => {
    const stuck = (session_id: string, stuck_since: string, is = true) =>
      rowOf({ session_id, stuck: is, stuck_since });
    const [old, young, freed] = [
      stuck("a", "2026-01-01T00:00:00Z"),
      stuck("b", "2026-01-01T01:00:00Z"),
      stuck("c", ""),
    ];
    expect(standing([young, { ...freed, stuck: false }], [old, freed]).map((row) => row.session_id)).toEqual([
      "a",
      "b",
    ]);
  });
  it("moves the cursor inside the list", () => {
    const rows = [{ session_id: "a" }, { session_id: "b" }];
    expect([
      moved(rows, null, 1),
      moved(rows, "a", 1),
      moved(rows, "b", 1),
      moved(rows, "gone", -1),
      moved([], "a", 1),
    ]).toEqual(["a", "b", "b", "b", null]);
  });
});
