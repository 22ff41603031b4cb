import { describe, expect, it } from "vitest";
import type { SearchHit } from "~/protocol/openapi";
import { isHere, KEPT, PAGE, Pages, type Part } from "./pages";

function archive(size: number) {
  const asked: string[] = [];
  const part = (from: number): Part => ({
    items: Array.from({ length: Math.min(PAGE, size - from) }, (_, n) => ({
      sequence_number: size - from - n,
      message_id: `m${from + n}`,
    })) as SearchHit[],
    next_cursor: from + PAGE < size ? String(from + PAGE) : null,
  });
  const fetch = async (cursor: string) => {
    asked.push(cursor);
    return part(Number(cursor));
  };
  return { asked, pages: new Pages(part(0), fetch) };
}
const settle = () => new Promise((done) => setTimeout(done));

describe("an archive without an end (S665)", () => {
  it("is fetched as it scrolls into view, once", async () => {
    const { asked, pages } = archive(250);
    expect(pages.rows).toHaveLength(100);
    pages.see(0, 30);
    expect(asked).toEqual([]);
    pages.see(50, 80);
    pages.see(51, 81);
    await settle();
    expect(asked).toEqual(["100"]);
    expect(pages.rows).toHaveLength(200);
    pages.see(150, 199);
    await settle();
    expect(pages.rows).toHaveLength(250);
    expect(pages.hasMore).toBe(false);
  });
  it("holds a few thousand, and fetches evicted pages again unchanged", async () => {
    const { asked, pages } = archive(20_000);
    for (let at = 0; at < 9_900; at += 90) {
      pages.see(at, at + 30);
      await settle();
    }
    const here = pages.rows.filter(isHere);
    expect(here.length).toBeLessThanOrEqual((KEPT + 2) * PAGE);
    expect(isHere(pages.rows[0])).toBe(true);
    expect(isHere(pages.rows[1_000])).toBe(false);
    asked.length = 0;
    pages.see(1_000, 1_030);
    await settle();
    expect(asked).toEqual(["1000"]);
    expect(pages.rows[1_000]).toMatchObject({ message_id: "m1000" });
  });
  it("stops querying an unreachable gateway until retried by hand", async () => {
    let away = true;
    const first: Part = { items: Array.from({ length: PAGE }, () => ({})) as SearchHit[], next_cursor: "1" };
    const pages = new Pages(first, async () => {
      if (away) throw new Error("away");
      return { items: [], next_cursor: null };
    });
    pages.see(90, 99);
    await settle();
    expect(pages.trouble?.message).toBe("away");
    away = false;
    pages.see(90, 99);
    await settle();
    expect(pages.trouble).not.toBeNull();
    pages.again();
    await settle();
    expect(pages.trouble).toBeNull();
    expect(pages.hasMore).toBe(false);
  });
});
