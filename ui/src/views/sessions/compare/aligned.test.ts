import { describe, expect, it } from "vitest";
import type { ComparedStep } from "~/protocol/openapi";
import { differing, figures, lines, nextDifference, outcome, type Totals, words } from "./aligned";

const step = (change: ComparedStep["change"]): ComparedStep => ({
  change,
  cost_delta: 0,
  differs: [],
  left: null,
  right: null,
});
const steps = (text: string) =>
  [...text].map((sign) =>
    step(({ "=": "same", "!": "changed", "<": "left_only", ">": "right_only" } as const)[sign as "="]),
  );

describe("steps side by side", () => {
  it("folds long runs of equal steps and leaves short ones", () => {
    const shown = lines(steps("=====!==>"), true);
    expect(
      shown.map((line) => (line.kind === "fold" ? `fold ${line.from}+${line.count}` : line.index)),
    ).toEqual(["fold 0+5", 5, 6, 7, 8]);
  });
  it("shows an opened fold, and everything on request", () => {
    expect(lines(steps("=====!"), true, new Set([0]))).toHaveLength(6);
    expect(lines(steps("=====!"), false)).toHaveLength(6);
  });
  it("moves from difference to difference, wrapping around", () => {
    const all = steps("=!==<");
    expect([nextDifference(all, -1, 1), nextDifference(all, 1, 1), nextDifference(all, 4, 1)]).toEqual([
      1, 4, 1,
    ]);
    expect([nextDifference(all, 4, -1), nextDifference(all, 0, -1)]).toEqual([1, 4]);
    expect(nextDifference(steps("==="), 0, 1)).toBeNull();
    expect(nextDifference([], 0, 1)).toBeNull();
    expect(nextDifference(steps("!"), 0, 1)).toBe(0);
  });
  it("names what differs in plain words", () => {
    expect(differing(["agent_type", "input", "status"])).toBe("role, tool input, status");
  });
});

describe("figures", () => {
  const side = (overrides: Partial<Totals>): Totals => ({
    session_id: "s",
    steps: 10,
    outcome: "ended:success",
    failures: 0,
    agents_count: 3,
    cost: 1,
    tokens: 100,
    duration_ms: 90_000,
    ...overrides,
  });
  it("shows right minus left, and nothing if equal", () => {
    const overrides = figures({
      left: side({}),
      right: side({ steps: 7, cost: 2.5, outcome: "open:failure" }),
    });
    const delta = Object.fromEntries(overrides.map((one) => [one.name, one.delta]));
    expect(delta).toMatchObject({
      Steps: "−3",
      Cost: "+$1.50",
      Agents: null,
      Tokens: null,
      Outcome: "other",
    });
  });
  it("reads an outcome", () => {
    expect([outcome("ended:success"), outcome("open:unknown")]).toEqual(["ended, success", "not ended"]);
  });
});

describe("words that differ", () => {
  const marked = (left: string, right: string) =>
    words(left, right).map((side) => side.filter((word) => word.differs).map((word) => word.text));
  it("marks only those without a counterpart", () => {
    expect(marked("Find revenue of 2024", "Find net revenue of 2025")).toEqual([["2024"], ["net", "2025"]]);
    expect(marked("Find the strike price", "Find the lease reset dates")).toEqual([
      ["strike price"],
      ["lease reset dates"],
    ]);
    expect(marked("same words", "same words")).toEqual([[], []]);
  });
  it("loses no word", () => {
    const [left, right] = words("a b  c", "x b c y");
    expect(left.map((word) => word.text).join("")).toBe("a b  c");
    expect(right.map((word) => word.text).join("")).toBe("x b c y");
  });
  it("skips very long texts but still reports that they differ", () => {
    const long = "word ".repeat(200);
    expect(words(long, `${long}!`)[0]).toEqual([{ text: long, differs: true }]);
  });
});
