import { describe, expect, it } from "vitest";
import { heights, said, stretch } from "./times";

const bins = [0, 2, 100].map((count, n) => ({
  from: new Date(n * 60_000).toISOString(),
  to: new Date((n + 1) * 60_000).toISOString(),
  count,
}));

describe("when it was said (S666)", () => {
  it("stands as high as it is many, and is seen when it is few", () => {
    expect(heights(bins)).toEqual([0, 0.03, 1]);
    expect(heights([])).toEqual([]);
  });
  it("is narrowed to what lies between two bars, ends included once", () => {
    expect(stretch(bins, 2, 1)).toEqual({
      since: "1970-01-01T00:01:00.000Z",
      until: "1970-01-01T00:02:59.999Z",
    });
    expect(stretch(bins, 0, 9)).toBeNull();
  });
  it("has a text", () => {
    expect(said(bins[1] as never, 180_000)).toMatch(/: 2 messages$/);
  });
});
