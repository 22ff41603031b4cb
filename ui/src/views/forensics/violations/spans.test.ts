import { describe, expect, it } from "vitest";
import { keyOf, partWords, sinceOf, spanOf } from "./spans";

describe("times of violations", () => {
  it("default to the last hour", () => {
    expect([spanOf(undefined), spanOf("7d"), spanOf("toString"), spanOf("1y")]).toEqual([
      "1h",
      "7d",
      "1h",
      "1h",
    ]);
    const at = Date.parse("2026-11-16T14:38:33Z");
    expect(sinceOf("15m", at)).toBe("2026-11-16T14:24:00.000Z");
    expect(sinceOf("15m", at + 20_000)).toBe(sinceOf("15m", at));
  });

  it("have a group for each agent, version and reason", () => {
    const one = { agent_id: null, capability_version: "v1", reason: "r" } as never;
    expect(keyOf(one)).toBe(" v1 r");
    expect(partWords(2, 5, "2026-11-16T14:00:00Z", 60)).toMatch(/^5 from .*02/);
  });
});
