import { expect, test } from "vitest";
import { bars, shareOf, topOf } from "./latencyScale";

const format = (ms: number) => `${ms} ms`;

test("the scale ends at a round step above the slowest", () => {
  expect(topOf([3, 870])).toBe(1000);
  expect(topOf([])).toBe(10);
  expect(topOf([1000])).toBe(1000);
});

test("a tenth of the time is a step less, not a tenth of the width", () => {
  expect(shareOf(1, 1000)).toBe(0);
  expect(shareOf(10, 1000)).toBeCloseTo(1 / 3);
  expect(shareOf(1000, 1000)).toBe(1);
  expect(shareOf(99_999, 1000)).toBe(1);
  expect(shareOf(0, 1000)).toBe(0);
});

test("bars are named by their bounds, empty ends are left out", () => {
  const made = bars([10, 50, 100], [0, 4, 0, 2], format);
  expect(made.map((bar) => bar.name)).toEqual(["10 ms to 50 ms", "50 ms to 100 ms", "over 100 ms"]);
  expect(made.map((bar) => bar.share)).toEqual([1, 0, 0.5]);
  expect(bars([10, 50, 100], [1, 0, 0, 0], format)[0]?.name).toBe("up to 10 ms");
});

test("nothing measured is no bar", () => {
  expect(bars([10], [0, 0], format)).toEqual([]);
});
