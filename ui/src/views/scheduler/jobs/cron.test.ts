import { describe, expect, it } from "vitest";
import { fieldsOf, pointAt, underline } from "./cron";

const NOT = (field: string) => `the cron line cannot be parsed: invalid field: ${field}`;
const FIVE =
  "the cron line cannot be parsed: it needs five fields (minute, hour, day of month, month, day of week), or six with seconds first";

describe("the pointer into a cron expression", () => {
  it.each([
    ["61 * * * *", "minute", "^^"],
    ["0 25 * * *", "hour", "  ^^"],
    ["0  9 * JANU *", "month", "       ^^^^"],
    ["0 0 9 * * 8", "day-of-week", "          ^"],
    ["99 0 9 * * 1", "second", "^^"],
  ])("%s, at its %s", (cron, field, marks) => {
    const found = pointAt(cron, NOT(field));
    expect(found && underline(found)).toBe(marks);
    expect(found?.says).toContain("is invalid");
  });

  it("reports missing and surplus fields", () => {
    expect(pointAt("0 9 * *", FIVE)).toMatchObject({ start: 7, says: "day of week is missing" });
    expect(pointAt("soon", FIVE)?.says).toBe("hour, day of month, month, day of week are missing");
    expect(pointAt("0 0 9 * * 1 2027", FIVE)).toMatchObject({ start: 12, length: 4 });
  });

  it("points nowhere when the error concerns the whole expression", () => {
    expect(pointAt("0 0 30 2 *", "the cron line matches no time in the next 50 years")).toBeNull();
  });

  it("reads six fields as seconds first", () => {
    expect(fieldsOf("1 2 3 4 5 6").map(({ name }) => name)[0]).toBe("second");
    expect(fieldsOf("1 2 3 4 5").map(({ name }) => name)[0]).toBe("minute");
  });
});
