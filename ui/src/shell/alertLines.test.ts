// Alert links and counts.
import { describe, expect, it } from "vitest";
import type { AlertNotice } from "~/protocol/openapi";
import { linesOf, whereOf } from "./alertLines";

const ALERT: AlertNotice = {
  id: "alert:1",
  kind: "violation",
  severity: "error",
  text: "code-runner-1 breaks the schema",
  at: "2026-11-16T05:04:39Z",
  until: null,
  open: false,
  agent_id: "code-runner-1",
  session_id: null,
  sequence_number: 1,
  link: "/fleet?agent=code-runner-1",
};

describe("whereOf", () => {
  it.each([
    [{}, "/fleet?peek=agent%3Acode-runner-1"],
    [{ session_id: "s1", link: "/sessions/s1?step=9" }, "/sessions/s1?step=9"],
    [{ session_id: "s1", link: "/elsewhere" }, "/sessions/s1"],
    [{ kind: "kill_switch" as const }, "/god-mode"],
    [{ agent_id: null, link: "//evil.example" }, "/fleet"],
    [{ agent_id: null, link: "/fleet?layer=geo" }, "/fleet?layer=geo"],
  ])("of %j is %s", (changed, href) => {
    expect(whereOf({ ...ALERT, ...changed })).toBe(href);
  });
});

describe("linesOf", () => {
  it("merges equal alerts into one line, at its newest, open if any of them is", () => {
    const older = { ...ALERT, id: "alert:0", at: "2026-11-16T05:00:00Z", open: true };
    const other = { ...ALERT, id: "alert:2", agent_id: "code-runner-2", text: "code-runner-2 breaks it" };
    const lines = linesOf([ALERT, other, older]);
    expect(lines.map((line) => [line.alert.id, line.times])).toEqual([
      ["alert:1", 2],
      ["alert:2", 1],
    ]);
    expect(lines[0]?.alert.open).toBe(true);
    expect(lines[0]?.alert.at).toBe(ALERT.at);
  });
});
