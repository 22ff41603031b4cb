// Heartbeats as cells: silence in steps, so that a cell changes only when its step does. Pure.
import type { AgentItem } from "~/protocol/openapi";
import { span } from "~/widgets/format";
import { LIVENESS, type Liveness } from "~/widgets/liveness";

/**
 * Seconds of silence from which a cell is one step fainter; the gateway checks every 30 s and evicts after
 * 90.
 */
const STEPS = [10, 20, 30, 45, 60, 90] as const;
export const FAINTEST = STEPS.length;

export function silenceOf(agent: AgentItem, now: number): number | null {
  const heard = agent.last_heartbeat_at;
  return heard === null ? null : Math.max(0, now - Date.parse(heard));
}

/** 0: just now; higher is fainter; agents without a heartbeat are the faintest. */
export function fadeOf(agent: AgentItem, now: number): number {
  const silent = silenceOf(agent, now);
  if (silent === null || agent.liveness === "evicted") return FAINTEST;
  return STEPS.filter((step) => silent >= step * 1000).length;
}

export interface Beat {
  agent_id: string;
  live: Liveness;
  fade: number;
  type: string;
}

export const NO_TYPE = "(no type)";

export interface Group {
  type: string;
  beats: Beat[];
  silent: number;
}

export interface HeartbeatFilters {
  q: string;
  live: Liveness[];
}

export function readShown(url: Record<string, string | undefined>): HeartbeatFilters {
  const asked = (url.live ?? "").split(",");
  return { q: url.q ?? "", live: LIVENESS.filter((one) => asked.includes(one)) };
}

function fits(agent: AgentItem, text: string): boolean {
  return (
    !text ||
    [agent.agent_id, agent.agent_type, agent.cluster_id, agent.status].some((one) =>
      one?.toLowerCase().includes(text),
    )
  );
}

/** By type and name, so that a cell does not move with its state. */
export function groupsOf(agents: readonly AgentItem[], { q, live }: HeartbeatFilters, now: number): Group[] {
  const text = q.trim().toLowerCase();
  const groups = new Map<string, Beat[]>();
  for (const agent of agents) {
    if ((live.length > 0 && !live.includes(agent.liveness)) || !fits(agent, text)) continue;
    const type = agent.agent_type ?? NO_TYPE;
    const beat = { agent_id: agent.agent_id, live: agent.liveness, fade: fadeOf(agent, now), type };
    const group = groups.get(type);
    if (group) group.push(beat);
    else groups.set(type, [beat]);
  }
  return [...groups]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([type, beats]) => ({
      type,
      beats: beats.sort((a, b) => a.agent_id.localeCompare(b.agent_id)),
      silent: beats.filter((one) => one.live === "zombie").length,
    }));
}

/** Agents with overdue heartbeats, the longest silent first; evicted ones for an hour after. */
export function zombies(agents: readonly AgentItem[], now: number): AgentItem[] {
  const lately = (at: string | null) => at !== null && now - Date.parse(at) < 3_600_000;
  return agents
    .filter((one) => one.liveness === "zombie" || (one.liveness === "evicted" && lately(one.evicted_at)))
    .sort(
      (a, b) =>
        Number(a.liveness === "evicted") - Number(b.liveness === "evicted") ||
        (a.last_heartbeat_at ?? "").localeCompare(b.last_heartbeat_at ?? ""),
    );
}

export function counted(agents: readonly AgentItem[]): Record<Liveness, number> {
  const counts: Record<Liveness, number> = { healthy: 0, zombie: 0, unknown: 0, evicted: 0 };
  for (const { liveness } of agents) counts[liveness] += 1;
  return counts;
}

/** A silence as a clock: `47 s`, `3 min 05 s`. */
export function timer(ms: number): string {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3_600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  return span(ms);
}

export function toggled(live: readonly Liveness[], one: Liveness): string {
  const next = live.includes(one) ? live.filter((each) => each !== one) : [...live, one];
  return LIVENESS.filter((each) => next.includes(each)).join(",");
}
