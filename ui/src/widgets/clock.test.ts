import { expect, test } from "vitest";
import { clock, clockToSecond, dateClock, exact, weekdayClock } from "./clock";

test("times use the 24-hour clock, in every language", () => {
  const evening = new Date(2026, 10, 16, 21, 5, 9);
  expect(clock(evening)).toBe("21:05");
  expect(clock(new Date(2026, 10, 16, 0, 5))).toBe("00:05");
  expect(clockToSecond(evening.toISOString())).toBe("21:05:09");
  for (const format of [weekdayClock, dateClock, exact]) {
    expect(format(evening)).toContain("21:05");
    expect(format(evening)).not.toMatch(/[AP]M/i);
  }
});

test("an invalid time is shown unchanged", () => {
  expect(exact("soon")).toBe("soon");
});
