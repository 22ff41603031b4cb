import { expect, test } from "vitest";
import type { HeatmapAnswer } from "~/protocol/openapi";
import { cellSpan, heatRows, moved, STEPS, warmth } from "./heat";

const answer: HeatmapAnswer = {
  by: "cluster",
  bucket: "minute",
  columns: ["2026-02-16T14:31:00Z", "2026-02-16T14:32:00Z"],
  rows: [
    { id: "onprem-zrh", total: 3, values: [1, 2] },
    { id: null, total: 1, values: [1, 0] },
  ],
  others: [0, 0],
  totals: [2, 2],
  max: 2,
  total: 4,
};

test("nothing is cold, the least is visible, the most expensive is warmest", () => {
  expect(warmth(0, 5)).toBe(0);
  expect(warmth(0.0001, 5)).toBe(1);
  expect(warmth(5, 5)).toBe(STEPS);
  expect(warmth(1, 0)).toBe(0);
});

test("warmth never falls as cost rises", () => {
  let before = 0;
  for (let value = 0; value <= 100; value += 1) {
    const now = warmth(value, 100);
    expect(now).toBeGreaterThanOrEqual(before);
    before = now;
  }
});

test("others are a row only if they spent anything", () => {
  expect(heatRows(answer).map((row) => row.name)).toEqual(["onprem-zrh", "no cluster"]);
  expect(heatRows({ ...answer, others: [0, 2] }).at(-1)).toMatchObject({ name: "all others", total: 2 });
});

test("a cell asks for its own minute only", () => {
  expect(cellSpan("2026-02-16T14:32:00Z", "minute")).toEqual({
    since: "2026-02-16T14:32:00.000Z",
    until: "2026-02-16T14:32:59.000Z",
  });
  expect(cellSpan("2026-02-16T14:00:00Z", "hour").until).toBe("2026-02-16T14:59:59.000Z");
});

test("the keyboard stays in the grid", () => {
  expect(moved("ArrowLeft", { row: 0, column: 0 }, 2, 3)).toEqual({ row: 0, column: 0 });
  expect(moved("ArrowDown", { row: 1, column: 2 }, 2, 3)).toEqual({ row: 1, column: 2 });
  expect(moved("End", { row: 1, column: 0 }, 2, 3)).toEqual({ row: 1, column: 2 });
  expect(moved("x", { row: 0, column: 0 }, 2, 3)).toBeNull();
});
