import { expect, test } from "vitest";
import { clock, clockToSecond, dateClock, exact, weekdayClock } from "./clock";

test("times of day go by 24 hours, whatever the viewer's language does", () => {
  const evening = new Date(2026, 10, 16, 21, 5, 9);
  expect(clock(evening)).toBe("21:05");
  expect(clock(new Date(2026, 10, 16, 0, 5))).toBe("00:05");
  expect(clockToSecond(evening.toISOString())).toBe("21:05:09");
  for (const told of [weekdayClock, dateClock, exact]) {
    expect(told(evening)).toContain("21:05");
    expect(told(evening)).not.toMatch(/[AP]M/i);
  }
});

test("what is no time is shown as it came", () => {
  expect(exact("soon")).toBe("soon");
});
