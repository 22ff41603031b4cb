// Traffic weights: what was typed, what is wrong with it, and what it will do. `effectOf` is the router's law
// (ruling 28, S137) told beforehand: of the liveliest instances each target gets its share, a target without
// one lends it to the others, what no target names is asked only when no named one has an instance. Pure.
import type { AgentItem, EdgeItem } from "~/protocol/openapi";

export type Instance = Pick<AgentItem, "agent_id" | "entity_id" | "cluster_id" | "liveness">;
/** Target (`cluster:ID` or an agent's name) → what stands in its field. */
export type Draft = Record<string, string>;
export type Weights = Record<string, number>;
export const MOST_TARGETS = 200;
const TIER: Record<Instance["liveness"], number> = { healthy: 0, unknown: 1, zombie: 2, evicted: 3 };

export function draftOf(weights: Weights): Draft {
  return Object.fromEntries(Object.entries(weights).map(([target, weight]) => [target, String(weight)]));
}

export function isOf(agent: Instance, target: string): boolean {
  if (target.startsWith("cluster:")) return agent.cluster_id === target.slice("cluster:".length);
  return agent.agent_id === target || agent.entity_id === target;
}

/** What is wrong with one field, in words. */
export function faultIn(text: string): string | null {
  const typed = text.trim();
  if (typed === "") return "Give a number; 0 keeps work away.";
  const weight = Number(typed);
  if (Number.isNaN(weight)) return `“${typed}” is no number.`;
  if (!Number.isFinite(weight)) return "It must be a finite number.";
  if (weight < 0) return "It may not be negative; 0 keeps work away.";
  return null;
}

export interface Read {
  weights: Weights | null;
  /** Why they cannot be saved, one sentence; null when they can. */
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
      ? "Name at least one target: a cluster or an agent."
      : names.length > MOST_TARGETS
        ? `At most ${MOST_TARGETS} targets can have a weight.`
        : Object.keys(faults).length > 0
          ? "A weight cannot be used; see below it."
          : sum === 0
            ? "The weights may not all be zero: nobody would get the work. To stop it, open the circuit."
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

/** Weights are proportions, not percentages; say so when they do not add up to 100. */
export function sumSentence({ weights, sum }: Read): string | null {
  if (!weights || Math.abs(sum - 100) < 1e-9) return null;
  const shares = Object.entries(weights)
    .slice(0, 4)
    .map(([target, weight]) => `${percent(weight / sum)} ${plain(target)}`);
  const more = Object.keys(weights).length > 4 ? ", …" : "";
  return `They add up to ${Number(sum.toFixed(3))}, not 100: as shares they are ${shares.join(", ")}${more}.`;
}

export function plain(target: string): string {
  return target.startsWith("cluster:") ? target.slice("cluster:".length) : target;
}

export interface Effect {
  /** Of each named target, what it really gets. */
  targets: Record<string, number>;
  agents: Record<string, number>;
  /** What goes to agents no target names. */
  rest: number;
  notes: string[];
}

function best<T extends Instance>(agents: readonly T[]): T[] {
  const there = agents.filter((agent) => agent.liveness !== "evicted");
  const tier = Math.min(...there.map((agent) => TIER[agent.liveness]));
  return there.filter((agent) => TIER[agent.liveness] === tier);
}

/** null: no weights, so evenly among the liveliest. */
export function effectOf(weights: Weights | null, instances: readonly Instance[]): Effect {
  const effect: Effect = { targets: {}, agents: {}, rest: 0, notes: [] };
  const give = (agents: readonly Instance[], share: number) => {
    for (const one of agents)
      effect.agents[one.agent_id] = (effect.agents[one.agent_id] ?? 0) + share / agents.length;
  };
  const able = instances.filter((agent) => agent.liveness !== "evicted");
  if (able.length === 0) effect.notes.push("No instance is there: work waits until one comes.");
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
        `No target with a weight has an instance: ${count(others.length)} beside them get everything.`,
      );
    else if (able.length > 0) effect.notes.push("Nobody with a weight is there: work waits until one comes.");
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
      `${count(idle)} that no target names ${idle === 1 ? "gets" : "get"} nothing while a named one is there.`,
    );
  return effect;
}

function count(instances: number): string {
  return instances === 1 ? "1 instance" : `${instances} instances`;
}

export interface Hour {
  total: number;
  agents: Record<string, number>;
}

/** What the instances were sent in the last hour, by name or by type. */
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
  /** Shares by the weights that are saved and by those that would be. */
  now: number;
  next: number;
  /** Messages it got in the last hour, and those it would have got. */
  got: number;
  would: number;
}

/** One line a target, saved or new, and a last one (`""`) for whoever none of them names. */
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

/** Whole percents by instances that are there: what "evenly" comes to, written as weights. */
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

/** The border between two neighbours of the bar is moved: what one gains the other gives, the rest stays. */
export function moved(draft: Draft, left: string, right: string, by: number): Draft {
  const [one, other] = [Number(draft[left]), Number(draft[right])];
  if (!Number.isFinite(one) || !Number.isFinite(other)) return draft;
  const step = Math.max(-one, Math.min(other, by));
  const tidy = (value: number) => String(Number(value.toFixed(2)));
  return { ...draft, [left]: tidy(one + step), [right]: tidy(other - step) };
}

/** "70 % to aws-eu, 30 % to onprem": what the button says it does. */
export function saying(weights: Weights): string {
  const sum = Object.values(weights).reduce((total, weight) => total + weight, 0);
  const all = Object.entries(weights).sort((a, b) => b[1] - a[1]);
  const said = all.slice(0, 2).map(([target, weight]) => `${percent(weight / sum)} to ${plain(target)}`);
  return all.length > 2 ? `${said.join(", ")} and ${all.length - 2} more` : said.join(", ");
}
