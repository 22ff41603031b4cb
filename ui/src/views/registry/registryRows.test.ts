import { describe, expect, it } from "vitest";
import type { AgentItem, CapabilityItem } from "~/protocol/openapi";
import {
  groupsOf,
  leading,
  NO_TYPE,
  pick,
  pressedSort,
  readFilters,
  rowId,
  spreadOf,
  toggled,
} from "./registryRows";

function agent(agent_id: string, more: Partial<AgentItem> = {}): AgentItem {
  const agent_type = more.agent_type === undefined ? "writer" : more.agent_type;
  return {
    agent_id,
    entity_id: `agt_${agent_id}`,
    entity_type: "agent",
    tenant_id: "tnt_default",
    display_name: agent_id,
    agent_type,
    capabilities: agent_type ? [agent_type] : [],
    granted: [],
    requested: [],
    capability_version: "1.0.0",
    cluster_id: "eu",
    model: "m-1",
    provider: null,
    hub_address: null,
    owner: null,
    team_id: null,
    workspace_id: null,
    trust_level: "unverified",
    state: "idle",
    colour: "",
    mark: "",
    state_reason: "",
    liveness: "healthy",
    status: null,
    task: null,
    usage: null,
    last_heartbeat_at: null,
    paused_at: null,
    paused_by: null,
    evicted_at: null,
    ghost: false,
    messages: 1,
    first_seen_at: "2026-11-16T10:00:00Z",
    last_seen_at: null,
    certificate: null,
    ...more,
  };
}

function page(capability: string, more: Partial<CapabilityItem> = {}): CapabilityItem {
  return {
    capability,
    is_agent_type: true,
    healthy: 1,
    unknown: 0,
    zombie: 0,
    evicted: 0,
    total: 1,
    versions: { "1.0.0": 1 },
    models: { "m-1": 1 },
    trust_levels: { unverified: 1 },
    clusters: { eu: 1 },
    breaker: null,
    weights: null,
    ...more,
  };
}

const AGENTS = [
  agent("writer-10"),
  agent("writer-2", { liveness: "zombie", model: "m-2", hub_address: "hub.eu:7443" }),
  agent("runner-1", { agent_type: "runner", capabilities: ["runner", "python"], liveness: "unknown" }),
  agent("stray", { agent_type: null }),
];
const GROUPS = groupsOf(
  [
    page("writer", { healthy: 1, total: 2 }),
    page("runner", { healthy: 0, breaker: "open" }),
    page("python", { is_agent_type: false, healthy: 0 }),
  ],
  AGENTS,
);
const filters = (url: Record<string, string>) => readFilters(url);
const ids = (url: Record<string, string>, chosen?: string) =>
  pick(GROUPS, filters(url), chosen).rows.map(rowId);

describe("the registry", () => {
  it("groups agents by type and capability, and those without a type at the end", () => {
    expect(ids({})).toEqual(["group python", "group runner", "group writer", `group ${NO_TYPE}`]);
    expect(GROUPS.find((one) => one.name === "runner")?.capabilities).toEqual(["python"]);
    expect(GROUPS.find((one) => one.name === "writer")?.hubs).toEqual(["hub.eu:7443"]);
  });

  it("shows the instances of the selected one, in natural name order", () => {
    expect(ids({}, "writer")).toEqual([
      "group python",
      "group runner",
      "group writer",
      "agent writer writer-2",
      "agent writer writer-10",
      `group ${NO_TYPE}`,
    ]);
  });

  it.each([
    ["m-2", ["group writer", "agent writer writer-2"]],
    ["HUB.eu", ["group writer", "agent writer writer-2"]],
    ["stray", [`group ${NO_TYPE}`, `agent ${NO_TYPE} stray`]],
    ["nothing at all", []],
  ])("searches for %s", (q, found) => {
    expect(ids({ q })).toEqual(found);
  });

  it("filters by kind, liveness and circuit", () => {
    expect(ids({ kind: "capabilities" })).toEqual(["group python"]);
    expect(ids({ live: "zombie" })).toEqual(["group writer", "agent writer writer-2"]);
    expect(ids({ circuit: "open" })).toEqual(["group runner"]);
  });

  it("counts every agent once, whatever liveness is selected", () => {
    const { counts, agents } = pick(GROUPS, filters({ live: "zombie" }), undefined);
    expect(counts).toEqual({ healthy: 2, zombie: 1, unknown: 1, evicted: 0 });
    expect(agents).toBe(1);
  });

  it("sorts by a column, reversed the second time", () => {
    expect(pressedSort(filters({}), "health")).toBe("health:down");
    expect(pressedSort(filters({ sort: "health:down" }), "health")).toBe("health:up");
    expect(ids({ sort: "health" })[0]).toBe("group writer");
    expect(ids({ sort: "circuit" })[0]).toBe("group runner");
    expect(filters({ sort: "what:ever" }).sort).toBe("name");
  });
});

describe("words", () => {
  it("names the most frequent and the number of others", () => {
    expect(leading({ "2.0": 3, "1.0": 1, "0.9": 1 })).toBe("2.0 +2");
    expect(leading({})).toBe("–");
    expect(leading(["one"])).toBe("one");
  });

  it("toggles a liveness in its order", () => {
    expect(toggled(["evicted"], "healthy")).toBe("healthy,evicted");
    expect(toggled(["evicted"], "evicted")).toBe("");
  });

  it("leaves evicted agents out of a distribution", () => {
    const all = [...AGENTS, agent("gone", { liveness: "evicted", model: "m-9" })];
    expect(spreadOf(all, "model")).toEqual({ "m-1": 3, "m-2": 1 });
  });
});
