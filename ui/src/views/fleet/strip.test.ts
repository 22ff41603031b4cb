import { expect, test } from "vitest";
import { atOf, backFrom, backOf, replayLabel, shareOf, stepped, stripAt, ticks } from "./strip";

const NOW = Date.parse("2026-02-16T14:44:31Z");
const hour = stripAt(NOW, 60);

test("the right end is live, the left end is as far back as it reaches", () => {
  expect(atOf(backOf(1, hour), hour)).toBeNull();
  expect(atOf(backOf(0, hour), hour)).toBe("2026-02-16T13:44:00Z");
  expect(backOf(7, hour)).toBe(0);
});

test("every minute of the strip survives a round trip", () => {
  for (let back = 1; back <= 60; back += 1) {
    const at = atOf(back, hour);
    expect(at).not.toBeNull();
    expect(backFrom(at, hour)).toBe(back);
    const share = shareOf(Date.parse(at ?? ""), hour);
    expect(backOf(share ?? -1, hour)).toBe(back);
  }
});

test("what is older than the strip has no position on it", () => {
  expect(shareOf(NOW - 3 * 3600_000, hour)).toBeNull();
});

test("arrows step a minute, pages ten, and nothing passes the ends", () => {
  expect(stepped("ArrowLeft", 0, 60)).toBe(1);
  expect(stepped("ArrowRight", 1, 60)).toBe(0);
  expect(stepped("ArrowRight", 0, 60)).toBe(0);
  expect(stepped("PageDown", 55, 60)).toBe(60);
  expect(stepped("Home", 3, 60)).toBe(60);
  expect(stepped("End", 3, 60)).toBe(0);
  expect(stepped("a", 3, 60)).toBeNull();
});

test("a replay shows its minute and how long ago that is", () => {
  expect(replayLabel("2026-02-16T14:32:00Z", NOW, "UTC")).toBe("replaying 14:32, 12 min ago");
  expect(replayLabel("2026-02-16T10:44:00Z", NOW, "UTC")).toBe("replaying 10:44, 4 h ago");
});

test("ticks are round times, oldest first", () => {
  expect(ticks(hour, "UTC").map((tick) => tick.text)).toEqual([
    "13:50",
    "14:00",
    "14:10",
    "14:20",
    "14:30",
    "14:40",
  ]);
});
