import { expect, test } from "vitest";
import { before, daysOf, loses, lossSentence, typedFor, valuesOf } from "./retentionForm";

test("forever is the default; days are whole and at least one", () => {
  expect(daysOf(valuesOf({ days: null, thoughts: false }))).toBeNull();
  expect(daysOf(valuesOf({ days: 30, thoughts: false }))).toBe(30);
  for (const days of ["", "0", "-1", "1.5", "ten", "99999"])
    expect(daysOf({ keep: "days", days })).toBeUndefined();
});

test("only a change that deletes data requires a typed confirmation", () => {
  expect(loses(null, 90, false, false)).toBe(true);
  expect(loses(90, 30, false, false)).toBe(true);
  expect(loses(90, 90, true, false)).toBe(true);
  expect(loses(30, 90, false, false)).toBe(false);
  expect(loses(30, null, false, false)).toBe(false);
  expect(typedFor(1)).toBe("shred after 1 day");
});

test("the preview says how much is shredded and how soon", () => {
  expect(before(1, Date.UTC(2026, 10, 16)).toISOString()).toBe("2026-11-15T00:00:00.000Z");
  expect(lossSentence(0, false)).toContain("No message is that old");
  expect(lossSentence(1, false)).toBe("1 archived message loses its content within two minutes.");
  expect(lossSentence(12_000, true)).toBe(
    "at least 12,000 archived messages lose their content over some 3 minutes, the oldest first.",
  );
});
