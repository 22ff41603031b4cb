import { describe, expect, it } from "vitest";
import { choiceOf, queryOf } from "./choice";

const at = Date.parse("2026-11-16T14:38:33Z");

describe("what is exported", () => {
  it("defaults to everything with payloads", () => {
    expect(queryOf(choiceOf({}), at)).toEqual({ payloads: true });
    expect(queryOf(choiceOf({ what: "moon", payloads: "0" }), at)).toEqual({ payloads: false });
  });

  it("of a time range starts at the whole minute", () => {
    expect(queryOf(choiceOf({ what: "24h" }), at)).toEqual({
      since: "2026-11-15T14:38:00.000Z",
      payloads: true,
    });
  });

  it("of a number range has a first and an optional last", () => {
    expect(queryOf(choiceOf({ what: "numbers", from: "5" }), at)).toEqual({ from: 5, payloads: true });
    expect(queryOf(choiceOf({ what: "numbers", from: "5", to: "9" }), at)).toEqual({
      from: 5,
      to: 9,
      payloads: true,
    });
  });

  it.each([{ from: "0" }, { from: "x" }, { from: "1.5" }, { from: "9", to: "5" }, { to: "-1" }])(
    "refuses %j in words",
    (numbers) => expect(queryOf(choiceOf({ what: "numbers", ...numbers }), at)).toMatch(/whole number/),
  );
});
