import { describe, expect, it } from "vitest";
import type { AgentItem, KillSwitchItem } from "~/protocol/openapi";
import {
  type Armed,
  confirmationText,
  EMPTY_DRAFT,
  faultOf,
  headline,
  parseDraft,
  parseTarget,
  previewOf,
  stepOf,
  unfinishedSentence,
  warningOf,
} from "./engageSteps";

const NOW = Date.parse("2026-11-16T12:00:00Z");
const armed: Armed = {
  kill_id: "kil_1",
  scope: "class",
  target: "writer",
  token: "t",
  confirmed: false,
  expires_at: "2026-11-16T12:02:00Z",
  known: true,
  agents: 2,
  sessions: 1,
};
const row = (state: KillSwitchItem["state"], more: Partial<KillSwitchItem> = {}) =>
  ({ kill_id: "kil_1", scope: "class", target: "writer", state, ...more }) as KillSwitchItem;
const agent = (agent_id: string, agent_type: string | null, cluster_id: string, evicted_at: string | null) =>
  ({ agent_id, agent_type, cluster_id, evicted_at }) as AgentItem;

describe("progress of a kill switch", () => {
  it.each([
    [null, undefined, "choose"],
    [armed, undefined, "first"],
    [armed, [row("armed")], "first"],
    // A response that never came: the gateway has recorded it, and the second token is lost.
    [armed, [row("confirmed")], "lost"],
    [{ ...armed, confirmed: true }, [row("armed")], "second"],
    [{ ...armed, confirmed: true }, [row("confirmed")], "second"],
    [{ ...armed, confirmed: true }, [row("engaged")], "engaged"],
    // Engaged although no response came.
    [armed, [row("engaged")], "engaged"],
    [armed, [row("lapsed")], "lapsed"],
    [{ ...armed, expires_at: "2026-11-16T11:59:59Z" }, undefined, "lapsed"],
    [{ ...armed, expires_at: "2026-11-16T11:59:59Z" }, [row("engaged")], "engaged"],
  ] as const)("follows the gateway before the page's own state", (mine, items, step) => {
    expect(stepOf(mine, items, NOW)).toBe(step);
  });

  it("warns that it stops no agent if none has that name", () => {
    expect(warningOf(armed)).toBeNull();
    expect(warningOf({ ...armed, known: false })).toMatch(/No agent has the type writer: this stops nothing/);
  });
  it("is shown plainly to a user who was signed out in the middle", () => {
    expect(unfinishedSentence(armed, "first")).toMatch(
      /agent type writer was NOT engaged: it waits for both/,
    );
    expect(unfinishedSentence(armed, "second")).toMatch(/NOT engaged: it waits for its second/);
    expect(unfinishedSentence(armed, "lapsed")).toMatch(/NOT engaged/);
    expect(unfinishedSentence(armed, "engaged")).toMatch(/WAS engaged/);
    expect(unfinishedSentence(armed, "choose")).toBeNull();
  });
  it("is never called not engaged while that is unknown", () => {
    const second = { ...armed, confirmed: true };
    expect(unfinishedSentence(second, "second", true)).toMatch(
      /UNKNOWN whether the kill switch for agent type writer/,
    );
    expect(unfinishedSentence(second, "lapsed", true)).toMatch(/UNKNOWN/);
    expect(unfinishedSentence(second, "engaged", true)).toMatch(/WAS engaged/);
    expect(unfinishedSentence(armed, "first", true)).toMatch(/was NOT engaged/);
  });
});

it("keeps typed input, and treats invalid input as none", () => {
  expect(parseDraft(JSON.stringify({ reason: "x", armed })).armed?.kill_id).toBe("kil_1");
  expect(parseDraft("{")).toEqual(EMPTY_DRAFT);
  expect(parseDraft(null)).toEqual(EMPTY_DRAFT);
  expect(parseTarget("class", "writer")).toEqual({ scope: "class", target: "writer" });
  expect(parseTarget("agent", "ada")).toEqual({ scope: "agent", target: "ada" });
  expect(parseTarget("cluster", undefined)).toEqual({ scope: "cluster", target: "" });
  expect(parseTarget("planet", "x")).toEqual({ scope: "global", target: "" });
});

it("asks for two different words", () => {
  expect(confirmationText(armed, "Default", "first")).toBe("writer");
  expect(confirmationText(armed, "Default", "second")).toBe("stop writer");
  const all = { scope: "global", target: "" } as const;
  expect(confirmationText(all, "Default", "first")).toBe("Default");
  expect(confirmationText(all, "Default", "second")).toBe("stop everything");
  // While the tenant's name is unknown, a confirmation is still required; input is trimmed.
  expect(confirmationText(all, "", "first")).toBe("everything");
  expect(confirmationText({ scope: "class", target: " writer " }, "", "first")).toBe("writer");
});

it.each([
  [{ scope: "class", target: "" } as const, "why", /Select an agent type/],
  [{ scope: "cluster", target: "" } as const, "why", /Select a cluster/],
  [{ scope: "agent", target: "" } as const, "why", /Select an agent/],
  [{ scope: "global", target: "" } as const, "  ", /Enter a reason/],
  [{ scope: "global", target: "" } as const, "x".repeat(1_001), /1,000/],
  [{ scope: "global", target: "" } as const, "a\u0007b", /control/],
])("is not armed without target and reason", (meant, reason, words) => {
  expect(faultOf(meant, reason)).toMatch(words);
});

it("previews which agents pause and which keep running", () => {
  const agents = [
    agent("w1", "writer", "eu", null),
    agent("w2", "writer", "us", "2026-01-01T00:00:00Z"),
    agent("p1", "planner", "eu", null),
    agent("x", null, "eu", null),
  ];
  const names = (some: AgentItem[]) => some.map((one) => one.agent_id);
  const byClass = previewOf({ scope: "class", target: "writer" }, agents);
  expect([names(byClass.pauses), names(byClass.stays), byClass.evicted]).toEqual([
    ["w1", "w2"],
    ["p1", "x"],
    1,
  ]);
  expect(names(previewOf({ scope: "cluster", target: "eu" }, agents).pauses)).toEqual(["w1", "p1", "x"]);
  expect(names(previewOf({ scope: "agent", target: "p1" }, agents).pauses)).toEqual(["p1"]);
  expect(previewOf({ scope: "global", target: "" }, agents).kinds).toEqual([
    ["writer", 2],
    ["planner", 1],
    ["without a type", 1],
  ]);
  expect(previewOf({ scope: "class", target: "" }, agents).pauses).toEqual([]);
});

it("summarises in one sentence what is stopped", () => {
  expect(headline([row("armed"), row("released")])).toBe("No kill switch active.");
  expect(headline([row("engaged")])).toBe("agent type writer is stopped.");
  expect(headline([row("engaged"), row("engaged", { scope: "global" })])).toBe("Everything is stopped.");
  expect(headline([row("releasing")])).toBe("Resuming in stages.");
});
