import { describe, expect, it } from "vitest";
import { carried, isApart } from "./paging";

const self = (n: number) => n;
const page = (items: number[], next_cursor: string | null = "older") => ({ items, next_cursor });

describe("a list that is refetched at its top", () => {
  it("keeps seen rows that have left the first page", () => {
    expect(carried([5, 4, 3], page([6, 5]), self)).toEqual([6, 5, 4, 3]);
    const seen = [5, 4];
    expect(carried(seen, page([5, 4]), self)).toBe(seen);
  });

  it("restarts when the newest page no longer reaches the seen rows", () => {
    expect(isApart([5, 4], page([9, 8]), self)).toBe(true);
    expect(carried([5, 4], page([9, 8]), self)).toBeNull();
    expect(carried([5, 4], page([9, 8], null), self)).toEqual([9, 8, 5, 4]);
    expect(carried([5, 4], page([]), self)).toEqual([5, 4]);
  });

  it("does not grow without end", () => {
    const many = Array.from({ length: 20_000 }, (_, n) => 20_000 - n);
    expect(carried(many, page([20_001, 20_000]), self)).toBeNull();
  });
});
