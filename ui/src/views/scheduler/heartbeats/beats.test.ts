import { describe, expect, it } from "vitest";
import type { AgentItem } from "~/protocol/openapi";
import { counted, FAINTEST, fadeOf, groupsOf, readShown, timer, toggled, zombies } from "./beats";

const NOW = Date.parse("2026-11-16T12:00:00Z");
const agent = (agent_id: string, liveness: AgentItem["liveness"], silent_s: number | null): AgentItem =>
  ({
    agent_id,
    agent_type: agent_id.split("-")[0],
    liveness,
    cluster_id: "eu",
    status: null,
    last_heartbeat_at: silent_s === null ? null : new Date(NOW - silent_s * 1000).toISOString(),
    evicted_at: liveness === "evicted" ? new Date(NOW - 60_000).toISOString() : null,
  }) as unknown as AgentItem;
const FLEET = [
  agent("writer-2", "healthy", 2),
  agent("writer-1", "zombie", 47),
  agent("coder-1", "evicted", 200),
  agent("coder-2", "unknown", null),
  agent("coder-3", "zombie", 80),
];

describe("heartbeats", () => {
  it("fade with silence, step by step", () => {
    expect([0, 9, 15, 25, 47, 80, 500].map((s) => fadeOf(agent("a-1", "healthy", s), NOW))).toEqual([
      0,
      0,
      1,
      2,
      4,
      5,
      FAINTEST,
    ]);
    expect(fadeOf(agent("a-1", "unknown", null), NOW)).toBe(FAINTEST);
  });

  it("are sorted by type and name, so that a cell does not move", () => {
    const groups = groupsOf(FLEET, { q: "", live: [] }, NOW);
    expect(groups.map(({ type, silent }) => [type, silent])).toEqual([
      ["coder", 1],
      ["writer", 1],
    ]);
    expect(groups[1]?.beats.map((one) => one.agent_id)).toEqual(["writer-1", "writer-2"]);
    expect(groupsOf(FLEET, { q: "WRIT", live: ["zombie"] }, NOW)[0]?.beats).toHaveLength(1);
  });

  it("list overdue agents, longest silent first, evicted last", () => {
    expect(zombies(FLEET, NOW).map((one) => one.agent_id)).toEqual(["coder-3", "writer-1", "coder-1"]);
    expect(counted(FLEET)).toEqual({ healthy: 1, zombie: 2, unknown: 1, evicted: 1 });
  });

  it("format a silence to the second", () => {
    expect([timer(47_900), timer(65_000), timer(7_200_000)]).toEqual(["47 s", "1 min 05 s", "2 h"]);
  });

  it("are filtered by the URL", () => {
    expect(readShown({ live: "zombie,nonsense" }).live).toEqual(["zombie"]);
    expect(toggled(["zombie"], "healthy")).toBe("healthy,zombie");
  });
});
