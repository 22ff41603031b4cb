// Traffic weights: typed input, its errors, and its effect. `effectOf` previews the router's rule (ruling 28,
// S137): of the healthiest instances each target gets its share, a target without one passes it to the
// others, agents without a target are used only when no target has an instance. Pure.

import { noun, plural } from "~/plural";
import type { AgentItem, EdgeItem } from "~/protocol/openapi";

export type Instance = Pick<AgentItem, "agent_id" | "entity_id" | "cluster_id" | "liveness">;
/** Target (`cluster:ID` or an agent's name) → its field's text. */
export type Draft = Record<string, string>;
export type Weights = Record<string, number>;
export const MAX_TARGETS = 200;
const TIER: Record<Instance["liveness"], number> = { healthy: 0, unknown: 1, zombie: 2, evicted: 3 };

export function draftOf(weights: Weights): Draft {
  return Object.fromEntries(Object.entries(weights).map(([target, weight]) => [target, String(weight)]));
}

export function isOf(agent: Instance, target: string): boolean {
  if (target.startsWith("cluster:")) return agent.cluster_id === target.slice("cluster:".length);
  return agent.agent_id === target || agent.entity_id === target;
}

/** The error of one field. */
export function faultIn(text: string): string | null {
  const typed = text.trim();
  if (typed === "") return "Enter a number; 0 sends no work.";
  const weight = Number(typed);
  if (Number.isNaN(weight)) return `“${typed}” is not a number.`;
  if (!Number.isFinite(weight)) return "It must be a finite number.";
  if (weight < 0) return "It must not be negative; 0 sends no work.";
  return null;
}

export interface Read {
  weights: Weights | null;
  /** Why they cannot be saved, one sentence; null if they can. */
  fault: string | null;
  faults: Record<string, string>;
  sum: number;
}

export function readDraft(draft: Draft): Read {
  const faults: Record<string, string> = {};
  const weights: Weights = {};
  for (const [target, text] of Object.entries(draft)) {
    const fault = faultIn(text);
    if (fault) faults[target] = fault;
    else weights[target] = Number(text);
  }
  const sum = Object.values(weights).reduce((total, weight) => total + weight, 0);
  const names = Object.keys(draft);
  const fault =
    names.length === 0
      ? "Add at least one target: a cluster or an agent."
      : names.length > MAX_TARGETS
        ? `At most ${MAX_TARGETS} targets can have a weight.`
        : Object.keys(faults).length > 0
          ? "Invalid weight; see its field."
          : sum === 0
            ? "The weights must not all be zero: no agent would get work. To stop it, force the circuit open."
            : Number.isFinite(sum)
              ? null
              : "The weights are too large to be added up.";
  return { weights: fault ? null : weights, fault, faults, sum };
}

export function isSame(a: Weights, b: Weights): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

export function percent(share: number): string {
  const value = share * 100;
  if (value === 0 || value >= 99.95) return `${Math.round(value)} %`;
  return value < 0.1 ? "< 0.1 %" : `${Number(value.toFixed(1))} %`;
}

/** Weights are proportions, not percentages; show a note when they do not add up to 100. */
export function sumSentence({ weights, sum }: Read): string | null {
  if (!weights || Math.abs(sum - 100) < 1e-9) return null;
  const shares = Object.entries(weights)
    .slice(0, 4)
    .map(([target, weight]) => `${percent(weight / sum)} ${plain(target)}`);
  const more = Object.keys(weights).length > 4 ? ", …" : "";
  return `The weights add up to ${Number(sum.toFixed(3))}, not 100: the shares are ${shares.join(", ")}${more}.`;
}

export function plain(target: string): string {
  return target.startsWith("cluster:") ? target.slice("cluster:".length) : target;
}

export interface Effect {
  /** The actual share of each target. */
  targets: Record<string, number>;
  agents: Record<string, number>;
  /** The share of agents without a target. */
  rest: number;
  notes: string[];
}

function best<T extends Instance>(agents: readonly T[]): T[] {
  const there = agents.filter((agent) => agent.liveness !== "evicted");
  const tier = Math.min(...there.map((agent) => TIER[agent.liveness]));
  return there.filter((agent) => TIER[agent.liveness] === tier);
}

/** null: no weights, so evenly across healthy instances. */
export function effectOf(weights: Weights | null, instances: readonly Instance[]): Effect {
  const effect: Effect = { targets: {}, agents: {}, rest: 0, notes: [] };
  const give = (agents: readonly Instance[], share: number) => {
    for (const one of agents)
      effect.agents[one.agent_id] = (effect.agents[one.agent_id] ?? 0) + share / agents.length;
  };
  const able = instances.filter((agent) => agent.liveness !== "evicted");
  if (able.length === 0) effect.notes.push("No instances: work is queued until one registers.");
  if (weights === null) {
    give(best(able), able.length ? 1 : 0);
    return effect;
  }
  const named = new Set<string>();
  const asked: { target: string; weight: number; theirs: Instance[] }[] = [];
  for (const [target, weight] of Object.entries(weights)) {
    effect.targets[target] = 0;
    const theirs = able.filter((agent) => isOf(agent, target));
    for (const one of theirs) named.add(one.agent_id);
    if (weight > 0 && theirs.length > 0) asked.push({ target, weight, theirs });
    else if (weight > 0 && able.length > 0)
      effect.notes.push(`${plain(target)} has no instance: its share goes to the others.`);
  }
  const good = new Set(best(asked.flatMap((one) => one.theirs)).map((one) => one.agent_id));
  if (good.size === 0) {
    const others = best(able.filter((agent) => !named.has(agent.agent_id)));
    effect.rest = others.length ? 1 : 0;
    give(others, effect.rest);
    if (others.length > 0)
      effect.notes.push(
        `No target with a weight has an instance: ${plural(others.length, "other instance gets", "other instances get")} everything.`,
      );
    else if (able.length > 0)
      effect.notes.push("No target with a weight has an instance: work is queued until one registers.");
    return effect;
  }
  const live = asked.map((one) => ({ ...one, left: one.theirs.filter((agent) => good.has(agent.agent_id)) }));
  const sum = live.reduce((total, one) => total + (one.left.length ? one.weight : 0), 0);
  for (const { target, weight, left } of live) {
    if (left.length === 0) {
      effect.notes.push(`${plain(target)} has no live instance: its share goes to the others.`);
      continue;
    }
    effect.targets[target] = weight / sum;
    give(left, weight / sum);
  }
  const idle = able.filter((agent) => !named.has(agent.agent_id)).length;
  if (idle > 0)
    effect.notes.push(
      `${count(idle)} without a target ${noun(idle, "gets", "get")} nothing while a target has an instance.`,
    );
  return effect;
}

function count(instances: number): string {
  return plural(instances, "instance");
}

export interface Hour {
  total: number;
  agents: Record<string, number>;
}

/** Messages sent to the instances in the last hour, by name or by type. */
export function hourOf(edges: readonly EdgeItem[], instances: readonly Instance[]): Hour {
  const hour: Hour = { total: 0, agents: {} };
  const known = new Set(instances.map((one) => one.agent_id));
  for (const edge of edges) {
    if (edge.to === null || !known.has(edge.to)) continue;
    hour.agents[edge.to] = (hour.agents[edge.to] ?? 0) + edge.messages;
    hour.total += edge.messages;
  }
  return hour;
}

export interface Line {
  target: string;
  instances: number;
  healthy: number;
  /** Shares by the saved weights and by the draft. */
  now: number;
  next: number;
  /** Messages in the last hour, and the projected number. */
  got: number;
  would: number;
}

/** One line per target, saved or new, and a last one (`""`) for agents without a target. */
export function preview(
  saved: Weights | null,
  next: Weights,
  instances: readonly Instance[],
  hour: Hour,
): Line[] {
  const [now, then] = [effectOf(saved, instances), effectOf(next, instances)];
  const targets = [...new Set([...Object.keys(next), ...Object.keys(saved ?? {})])];
  const sum = (of: Record<string, number>, agents: readonly Instance[]) =>
    agents.reduce((total, one) => total + (of[one.agent_id] ?? 0), 0);
  const line = (target: string, agents: Instance[], before: number, share: number): Line => ({
    target,
    instances: agents.filter((one) => one.liveness !== "evicted").length,
    healthy: agents.filter((one) => one.liveness === "healthy").length,
    now: before,
    next: share,
    got: sum(hour.agents, agents),
    would: Math.round(share * hour.total),
  });
  const lines = targets.map((target) => {
    const theirs = instances.filter((one) => isOf(one, target));
    const share = (of: Effect) => of.targets[target] ?? sum(of.agents, theirs);
    return line(target, theirs, share(now), share(then));
  });
  const others = instances.filter((one) => !targets.some((target) => isOf(one, target)));
  if (others.some((one) => one.liveness !== "evicted"))
    lines.push(line("", others, sum(now.agents, others), sum(then.agents, others)));
  return lines;
}

/** Whole percents by present instances: an even split, written as weights. */
export function byInstances(instances: readonly Instance[]): Weights {
  const there = best(instances);
  const clusters = new Map<string, number>();
  for (const { cluster_id } of there)
    if (cluster_id) clusters.set(`cluster:${cluster_id}`, (clusters.get(`cluster:${cluster_id}`) ?? 0) + 1);
  const sum = [...clusters.values()].reduce((total, n) => total + n, 0);
  const parts = [...clusters].map(([target, n]) => ({
    target,
    whole: Math.floor((n / sum) * 100),
    rest: ((n / sum) * 100) % 1,
  }));
  let left = 100 - parts.reduce((total, part) => total + part.whole, 0);
  for (const part of [...parts].sort((a, b) => b.rest - a.rest)) {
    if (left <= 0) break;
    part.whole += 1;
    left -= 1;
  }
  return Object.fromEntries(parts.map((part) => [part.target, part.whole]));
}

/** Moves the border between two neighbours of the bar: what one gains the other loses, the rest stays. */
export function moved(draft: Draft, left: string, right: string, by: number): Draft {
  const [one, other] = [Number(draft[left]), Number(draft[right])];
  if (!Number.isFinite(one) || !Number.isFinite(other)) return draft;
  const step = Math.max(-one, Math.min(other, by));
  const tidy = (value: number) => String(Number(value.toFixed(2)));
  return { ...draft, [left]: tidy(one + step), [right]: tidy(other - step) };
}

/** "70 % to aws-eu, 30 % to onprem": the label of the save button. */
export function weightsText(weights: Weights): string {
  const sum = Object.values(weights).reduce((total, weight) => total + weight, 0);
  const all = Object.entries(weights).sort((a, b) => b[1] - a[1]);
  const largest = all.slice(0, 2).map(([target, weight]) => `${percent(weight / sum)} to ${plain(target)}`);
  return all.length > 2 ? `${largest.join(", ")} and ${all.length - 2} more` : largest.join(", ");
}
