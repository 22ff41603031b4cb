import { expect, test } from "vitest";
import { before, daysOf, loses, lossSentence, typedFor, valuesOf } from "./keeping";

test("for ever is the default; days are whole and at least one", () => {
  expect(daysOf(valuesOf({ days: null, thoughts: false }))).toBeNull();
  expect(daysOf(valuesOf({ days: 30, thoughts: false }))).toBe(30);
  for (const days of ["", "0", "-1", "1.5", "ten", "99999"])
    expect(daysOf({ keep: "days", days })).toBeUndefined();
});

test("only what can lose something asks to be typed", () => {
  expect(loses(null, 90, false, false)).toBe(true);
  expect(loses(90, 30, false, false)).toBe(true);
  expect(loses(90, 90, true, false)).toBe(true);
  expect(loses(30, 90, false, false)).toBe(false);
  expect(loses(30, null, false, false)).toBe(false);
  expect(typedFor(1)).toBe("shred after 1 day");
});

test("what will be lost is said with how much and how soon", () => {
  expect(before(1, Date.UTC(2026, 10, 16)).toISOString()).toBe("2026-11-15T00:00:00.000Z");
  expect(lossSentence(0, false)).toContain("Nothing is that old");
  expect(lossSentence(1, false)).toBe("1 archived message loses its content within two minutes.");
  expect(lossSentence(12_000, true)).toBe(
    "at least 12,000 archived messages lose their content over some 3 minutes, the oldest first.",
  );
});
