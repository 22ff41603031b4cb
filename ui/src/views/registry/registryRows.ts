// The registry as rows: agents grouped by type or capability, searched, filtered and sorted as in the URL.
// Totals are the gateway's (`/v1/capabilities`); the agents behind them come from the registry. Pure.
import type { AgentItem, CapabilityItem } from "~/protocol/openapi";
import { LIVENESS, LIVES, type Liveness } from "~/widgets/liveness";

export type Breaker = CapabilityItem["breaker"];
export { LIVENESS, LIVES, type Liveness };
export const BREAKERS: Record<NonNullable<Breaker>, { mark: string; word: string; tone: string }> = {
  closed: { mark: "✓", word: "closed", tone: "good" },
  half_open: { mark: "½", word: "half-open", tone: "blocked" },
  open: { mark: "×", word: "open", tone: "alert" },
};
export const TRUSTS: Record<AgentItem["trust_level"], string> = {
  unverified: "unverified",
  tenant_verified: "tenant",
  federation_verified: "federation",
};
/** The group of agents without a type; it cannot be routed to. */
export const NO_TYPE = "(no type)";

export type Spread = Record<string, number>;
export interface Group {
  name: string;
  /** A type, a capability that is not a type, or the agents without a type. */
  kind: "type" | "capability" | "none";
  agents: AgentItem[];
  /** All its agents, including those a filter leaves out. */
  healthy: number;
  total: number;
  versions: Spread;
  models: Spread;
  trusts: Spread;
  clusters: Spread;
  capabilities: string[];
  hubs: string[];
  breaker: Breaker;
  weights: Record<string, number> | null;
}

export type SortKey =
  | "name"
  | "health"
  | "version"
  | "model"
  | "trust"
  | "capabilities"
  | "hub"
  | "cluster"
  | "circuit";
export interface Filters {
  q: string;
  kind: "all" | "types" | "capabilities";
  live: Liveness[];
  open: boolean;
  sort: SortKey;
  down: boolean;
}
/** Whether a column sorts largest first by default. */
const DOWN_FIRST: Record<SortKey, boolean> = {
  name: false,
  health: true,
  version: false,
  model: false,
  trust: false,
  capabilities: false,
  hub: false,
  cluster: false,
  circuit: true,
};

export function readFilters(url: Record<string, string | undefined>): Filters {
  const wanted = new Set((url.live ?? "").split(","));
  const [name, way] = (url.sort ?? "").split(":");
  const sort = name && Object.hasOwn(DOWN_FIRST, name) ? (name as SortKey) : "name";
  return {
    q: (url.q ?? "").trim(),
    kind: url.kind === "types" || url.kind === "capabilities" ? url.kind : "all",
    live: LIVENESS.filter((one) => wanted.has(one)),
    open: url.circuit === "open",
    sort,
    down: way === "down" ? true : way === "up" ? false : DOWN_FIRST[sort],
  };
}

export function pressedSort(now: Pick<Filters, "sort" | "down">, column: SortKey): string {
  const down = now.sort === column ? !now.down : DOWN_FIRST[column];
  return `${column}:${down ? "down" : "up"}`;
}

export function isFiltered({ q, kind, live, open }: Filters): boolean {
  return q !== "" || kind !== "all" || live.length > 0 || open;
}

export function toggled(live: readonly Liveness[], one: Liveness): string {
  const next = live.includes(one) ? live.filter((each) => each !== one) : [...live, one];
  return LIVENESS.filter((each) => next.includes(each)).join(",");
}

function spread(values: Iterable<string | null>): Spread {
  const counts: Spread = {};
  for (const value of values) if (value) counts[value] = (counts[value] ?? 0) + 1;
  return Object.fromEntries(Object.entries(counts).sort((a, b) => b[1] - a[1]));
}

/** All agents of the fleet, over all types; an agent with two capabilities counts once. */
export function spreadOf(agents: readonly AgentItem[], column: "model" | "capability_version"): Spread {
  return spread(agents.filter((one) => one.liveness !== "evicted").map((one) => one[column]));
}

export function groupsOf(pages: readonly CapabilityItem[], agents: readonly AgentItem[]): Group[] {
  const able = new Map<string, AgentItem[]>();
  const plain: AgentItem[] = [];
  for (const agent of agents) {
    for (const capability of agent.capabilities) {
      const known = able.get(capability);
      if (known) known.push(agent);
      else able.set(capability, [agent]);
    }
    if (agent.capabilities.length === 0) plain.push(agent);
  }
  const groups = pages.map((page): Group => {
    const theirs = able.get(page.capability) ?? [];
    return {
      name: page.capability,
      kind: page.is_agent_type ? "type" : "capability",
      agents: theirs,
      healthy: page.healthy,
      total: page.total,
      versions: page.versions,
      models: page.models,
      trusts: page.trust_levels,
      clusters: page.clusters,
      capabilities: [...new Set(theirs.flatMap((one) => one.capabilities))].filter(
        (one) => one !== page.capability,
      ),
      hubs: Object.keys(spread(theirs.map((one) => one.hub_address))),
      breaker: page.breaker,
      weights: page.weights,
    };
  });
  if (plain.length > 0) groups.push(unnamed(plain));
  return groups;
}

function unnamed(agents: AgentItem[]): Group {
  const there = agents.filter((one) => one.liveness !== "evicted");
  return {
    name: NO_TYPE,
    kind: "none",
    agents,
    healthy: there.filter((one) => one.liveness === "healthy").length,
    total: there.length,
    versions: spread(there.map((one) => one.capability_version)),
    models: spread(there.map((one) => one.model)),
    trusts: spread(there.map((one) => one.trust_level)),
    clusters: spread(there.map((one) => one.cluster_id)),
    capabilities: [],
    hubs: Object.keys(spread(there.map((one) => one.hub_address))),
    breaker: null,
    weights: null,
  };
}

export type Row =
  | { kind: "group"; group: Group; open: boolean }
  | { kind: "agent"; agent: AgentItem; group: Group };

export function rowId(row: Row): string {
  return row.kind === "group" ? `group ${row.group.name}` : `agent ${row.group.name} ${row.agent.agent_id}`;
}

function says(agent: AgentItem, wanted: string): boolean {
  return [
    agent.agent_id,
    agent.display_name,
    agent.capability_version,
    agent.model,
    agent.provider,
    agent.cluster_id,
    agent.hub_address,
    agent.owner,
    ...agent.capabilities,
  ].some((text) => text?.toLowerCase().includes(wanted));
}

export interface FilteredGroups {
  rows: Row[];
  groups: number;
  agents: number;
  /** Agents by liveness, before the liveness filter. */
  counts: Record<Liveness, number>;
}

/** A group is expanded when it is selected, or when a search or filter matches some of its agents. */
export function pick(groups: readonly Group[], filters: Filters, chosen: string | undefined): FilteredGroups {
  const wanted = filters.q.toLowerCase();
  const counts: Record<Liveness, number> = { healthy: 0, zombie: 0, unknown: 0, evicted: 0 };
  const counted = new Set<string>();
  const kept: { group: Group; agents: AgentItem[] }[] = [];
  for (const group of groups) {
    if (filters.kind === "types" && group.kind !== "type") continue;
    if (filters.kind === "capabilities" && group.kind !== "capability") continue;
    if (filters.open && (group.breaker === null || group.breaker === "closed")) continue;
    const named = wanted === "" || group.name.toLowerCase().includes(wanted);
    const found = named ? group.agents : group.agents.filter((agent) => says(agent, wanted));
    for (const agent of found) {
      if (counted.has(agent.entity_id)) continue;
      counted.add(agent.entity_id);
      counts[agent.liveness] += 1;
    }
    const agents = filters.live.length ? found.filter((one) => filters.live.includes(one.liveness)) : found;
    if (agents.length > 0 || (named && filters.live.length === 0)) kept.push({ group, agents });
  }
  kept.sort((a, b) => compared(a.group, b.group, filters));
  const meant = filters.q !== "" || filters.live.length > 0;
  const rows: Row[] = [];
  const seen = new Set<string>();
  for (const { group, agents } of kept) {
    const open = meant || group.name === chosen;
    rows.push({ kind: "group", group, open });
    for (const one of agents) seen.add(one.entity_id);
    if (open) for (const agent of sortedAgents(agents, filters)) rows.push({ kind: "agent", agent, group });
  }
  return { rows, groups: kept.length, agents: seen.size, counts };
}

type Value = number | string;
const RANK = { open: 3, half_open: 2, closed: 1 };
const GROUP_VALUE: Record<SortKey, (group: Group) => Value> = {
  name: (group) => group.name.toLowerCase(),
  health: (group) => group.healthy,
  version: (group) => Object.keys(group.versions)[0] ?? "",
  model: (group) => Object.keys(group.models)[0] ?? "",
  trust: (group) => Object.keys(group.trusts)[0] ?? "",
  capabilities: (group) => group.capabilities.join(" "),
  hub: (group) => group.hubs[0] ?? "",
  cluster: (group) => Object.keys(group.clusters)[0] ?? "",
  circuit: (group) => (group.breaker ? RANK[group.breaker] : 0),
};
const AGENT_VALUE: Record<SortKey, (agent: AgentItem) => Value> = {
  name: (agent) => agent.agent_id.toLowerCase(),
  health: (agent) => -LIVENESS.indexOf(agent.liveness),
  version: (agent) => agent.capability_version ?? "",
  model: (agent) => agent.model ?? "",
  trust: (agent) => agent.trust_level,
  capabilities: (agent) => agent.capabilities.join(" "),
  hub: (agent) => agent.hub_address ?? "",
  cluster: (agent) => agent.cluster_id ?? "",
  circuit: () => 0,
};

/** Unknown values sort last both ways. */
function order(one: Value, other: Value, down: boolean): number {
  if (one === other) return 0;
  if (one === "") return 1;
  if (other === "") return -1;
  const way =
    typeof one === "number"
      ? one - (other as number)
      : one.localeCompare(other as string, "en", { numeric: true });
  return down ? -way : way;
}

function compared(a: Group, b: Group, { sort, down }: Filters): number {
  if ((a.kind === "none") !== (b.kind === "none")) return a.kind === "none" ? 1 : -1;
  const value = GROUP_VALUE[sort];
  return order(value(a), value(b), down) || a.name.localeCompare(b.name, "en");
}

function sortedAgents(agents: readonly AgentItem[], { sort, down }: Filters): AgentItem[] {
  const value = AGENT_VALUE[sort];
  return [...agents].sort(
    (a, b) =>
      order(value(a), value(b), down) || a.agent_id.localeCompare(b.agent_id, "en", { numeric: true }),
  );
}

/** "2.1.0", "2.1.0 +2", "–": the most frequent first. */
export function leading(spread: Spread | readonly string[]): string {
  const names = Array.isArray(spread) ? spread : Object.keys(spread);
  if (names.length < 2) return names[0] ?? "–";
  return `${names[0]} +${names.length - 1}`;
}

/** Every one with its count, for the tooltip. */
export function whole(spread: Spread): string {
  return Object.entries(spread)
    .map(([name, count]) => `${name}: ${count}`)
    .join("\n");
}
