import { describe, expect, it } from "vitest";
import type { AgentItem, KillSwitchItem } from "~/protocol/openapi";
import {
  type Armed,
  faultOf,
  headline,
  NOTHING,
  previewOf,
  readMeant,
  readThrow,
  stepOf,
  unfinished,
  warningOf,
  wordOf,
} from "./throwing";

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

describe("where a kill-switch stands", () => {
  it.each([
    [null, undefined, "choose"],
    [armed, undefined, "first"],
    [armed, [row("armed")], "first"],
    // An answer that never came: the gateway counts it, the second token is nobody's.
    [armed, [row("confirmed")], "lost"],
    [{ ...armed, confirmed: true }, [row("armed")], "second"],
    [{ ...armed, confirmed: true }, [row("confirmed")], "second"],
    [{ ...armed, confirmed: true }, [row("engaged")], "thrown"],
    // Thrown though no answer came.
    [armed, [row("engaged")], "thrown"],
    [armed, [row("lapsed")], "lapsed"],
    [{ ...armed, expires_at: "2026-11-16T11:59:59Z" }, undefined, "lapsed"],
    [{ ...armed, expires_at: "2026-11-16T11:59:59Z" }, [row("engaged")], "thrown"],
  ] as const)("is told by the gateway before what the page thinks", (mine, items, step) => {
    expect(stepOf(mine, items, NOW)).toBe(step);
  });

  it("is said to stop nobody where no agent has that name", () => {
    expect(warningOf(armed)).toBeNull();
    expect(warningOf({ ...armed, known: false })).toMatch(/No agent has the type writer: this stops nobody/);
  });
  it("is said plainly to whoever was signed out in the middle", () => {
    expect(unfinished(armed, "first")).toMatch(/class writer was NOT thrown: it waits for both/);
    expect(unfinished(armed, "second")).toMatch(/NOT thrown: it waits for its second/);
    expect(unfinished(armed, "lapsed")).toMatch(/NOT thrown/);
    expect(unfinished(armed, "thrown")).toMatch(/WAS thrown/);
    expect(unfinished(armed, "choose")).toBeNull();
  });
  it("is never said not to be thrown while that is not known", () => {
    const second = { ...armed, confirmed: true };
    expect(unfinished(second, "second", true)).toMatch(/NOT KNOWN whether the kill-switch for class writer/);
    expect(unfinished(second, "lapsed", true)).toMatch(/NOT KNOWN/);
    expect(unfinished(second, "thrown", true)).toMatch(/WAS thrown/);
    expect(unfinished(armed, "first", true)).toMatch(/was NOT thrown/);
  });
});

it("keeps what was typed, and takes nonsense for nothing", () => {
  expect(readThrow(JSON.stringify({ reason: "x", armed })).armed?.kill_id).toBe("kil_1");
  expect(readThrow("{")).toEqual(NOTHING);
  expect(readThrow(null)).toEqual(NOTHING);
  expect(readMeant("class", "writer")).toEqual({ scope: "class", target: "writer" });
  expect(readMeant("agent", "ada")).toEqual({ scope: "agent", target: "ada" });
  expect(readMeant("cluster", undefined)).toEqual({ scope: "cluster", target: "" });
  expect(readMeant("planet", "x")).toEqual({ scope: "global", target: "" });
});

it("asks for two different words", () => {
  expect(wordOf(armed, "Default", "first")).toBe("writer");
  expect(wordOf(armed, "Default", "second")).toBe("stop writer");
  const all = { scope: "global", target: "" } as const;
  expect(wordOf(all, "Default", "first")).toBe("Default");
  expect(wordOf(all, "Default", "second")).toBe("stop everything");
  // While nobody knows the tenant's name something is typed all the same; what is typed is trimmed.
  expect(wordOf(all, "", "first")).toBe("everything");
  expect(wordOf({ scope: "class", target: " writer " }, "", "first")).toBe("writer");
});

it.each([
  [{ scope: "class", target: "" } as const, "why", /Choose a class/],
  [{ scope: "cluster", target: "" } as const, "why", /Choose a cluster/],
  [{ scope: "agent", target: "" } as const, "why", /Choose an agent/],
  [{ scope: "global", target: "" } as const, "  ", /Say why/],
  [{ scope: "global", target: "" } as const, "x".repeat(1_001), /1,000/],
  [{ scope: "global", target: "" } as const, "a\u0007b", /control/],
])("is not armed without target and reason", (meant, reason, words) => {
  expect(faultOf(meant, reason)).toMatch(words);
});

it("tells beforehand who will pause and who stays", () => {
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

it("says in one sentence what is stopped", () => {
  expect(headline([row("armed"), row("released")])).toBe("Nothing is stopped.");
  expect(headline([row("engaged")])).toBe("class writer is stopped.");
  expect(headline([row("engaged"), row("engaged", { scope: "global" })])).toBe("Everything is stopped.");
  expect(headline([row("releasing")])).toBe("What was stopped goes on, in stages.");
});
