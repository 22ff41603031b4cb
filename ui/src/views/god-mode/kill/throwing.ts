// The way of a kill-switch from a thought to the second confirmation, and what is true of it at any moment. The
// gateway decides (ruling 26); this only never claims more than it knows. Pure.
import type { AgentItem, ArmedKillSwitch, KillSwitchItem } from "~/protocol/openapi";

export type Scope = "global" | "class" | "cluster" | "agent";
export interface Meant {
  scope: Scope;
  target: string;
}
/** Armed by this page: only it has the token of the next confirmation. */
export interface Armed extends Meant {
  kill_id: string;
  token: string;
  /** The first confirmation was answered. */
  confirmed: boolean;
  expires_at: string;
  /** An agent has that name. */
  known: boolean;
  agents: number;
  sessions: number;
}
/** What outlives the component: kept in the page's memory, never in the browser's storage. */
export interface Throw {
  reason: string;
  typed: string;
  armed: Armed | null;
  /** What was refused or broke off, in a sentence. */
  told: string | null;
  /** The last confirmation had no answer: it may have counted. */
  unsure: boolean;
}
export const NOTHING: Throw = { reason: "", typed: "", armed: null, told: null, unsure: false };
export type Step = "choose" | "first" | "second" | "thrown" | "lapsed" | "lost";

export function readThrow(text: string | null): Throw {
  if (text === null) return NOTHING;
  try {
    return { ...NOTHING, ...(JSON.parse(text) as Partial<Throw>) };
  } catch {
    return NOTHING;
  }
}

export function readMeant(scope: string | undefined, target: string | undefined): Meant {
  if (scope === "class" || scope === "cluster" || scope === "agent") return { scope, target: target ?? "" };
  return { scope: "global", target: "" };
}

export function armedOf(answer: ArmedKillSwitch): Armed {
  return {
    kill_id: answer.kill_id,
    scope: answer.scope,
    target: answer.target ?? "",
    token: answer.token,
    confirmed: false,
    expires_at: answer.expires_at ?? "",
    known: answer.would_hold.known,
    agents: answer.would_hold.agents,
    sessions: answer.would_hold.sessions,
  };
}

/** Where it stands: by what the gateway lists, and where it lists nothing yet by what it answered. */
export function stepOf(
  armed: Armed | null,
  items: readonly KillSwitchItem[] | undefined,
  nowMs: number,
): Step {
  if (!armed) return "choose";
  const row = items?.find((one) => one.kill_id === armed.kill_id);
  if (row && ["engaged", "releasing", "released"].includes(row.state)) return "thrown";
  if (row?.state === "lapsed" || Date.parse(armed.expires_at) <= nowMs) return "lapsed";
  // The first confirmation counted, its answer with the second token never came.
  if (row?.state === "confirmed" && !armed.confirmed) return "lost";
  return armed.confirmed ? "second" : "first";
}

export function whatOf({ scope, target }: Meant): string {
  if (scope === "global") return "everything in this tenant";
  return `${scope} ${target}`;
}

/** Of a name that no agent has: a kill-switch for it would look as if something had been stopped. */
export function warningOf(armed: Armed): string | null {
  if (armed.known) return null;
  const noun = { global: "", class: "type", cluster: "cluster", agent: "name" }[armed.scope];
  return `No agent has the ${noun} ${armed.target}: this stops nobody, only agents of that ${noun} that may come. Check the spelling.`;
}

/** What is typed for the first and for the second confirmation: never nothing, also while the tenant is unknown. */
export function wordOf(meant: Meant, tenant: string, step: "first" | "second"): string {
  const all = (step === "first" && tenant.trim()) || "everything";
  const name = meant.scope === "global" ? all : meant.target.trim();
  return step === "first" ? name : `stop ${name}`;
}

/** For whoever was signed out in the middle. `unsure`: its confirmation is under way, or had no answer. */
export function unfinished(armed: Armed, step: Step, unsure = false): string | null {
  const what = whatOf(armed);
  // Only the second throws: of the first it is known that nothing is stopped by it.
  if (unsure && armed.confirmed && step !== "thrown")
    return `It is NOT KNOWN whether the kill-switch for ${what} was thrown: no answer came to its second confirmation. Sign in and look.`;
  if (step === "thrown")
    return `The kill-switch for ${what} WAS thrown. It holds whether anybody is signed in or not.`;
  if (step === "first" || step === "second") {
    const waits = step === "first" ? "both confirmations" : "its second confirmation";
    return `The kill-switch for ${what} was NOT thrown: it waits for ${waits} and lapses by itself. What you typed is kept; sign in to go on at the same step.`;
  }
  if (step === "lapsed" || step === "lost")
    return `The kill-switch for ${what} was NOT thrown. What you typed is kept; sign in to arm it again.`;
  return null;
}

/** Everything below a space but tab and line feed: the gateway refuses just these. */
function hasControls(text: string): boolean {
  return [...text].some((one) => one === "\u007f" || (one < " " && one !== "\n" && one !== "\t"));
}

/** Why it cannot be armed yet, or null. */
export function faultOf({ scope, target }: Meant, reason: string): string | null {
  if (scope === "class" && !target) return "Choose a class.";
  if (scope === "cluster" && !target) return "Choose a cluster.";
  if (scope === "agent" && !target) return "Choose an agent.";
  if (!reason.trim()) return "Say why: everybody sees the reason, and the record keeps it.";
  if (reason.length > 1_000) return "A reason has at most 1,000 characters.";
  if (hasControls(reason)) return "A reason holds no control characters.";
  return null;
}

export interface Preview {
  pauses: AgentItem[];
  stays: AgentItem[];
  /** Of those that pause: how many by type, most first. */
  kinds: [string, number][];
  evicted: number;
}

export function inScope({ scope, target }: Meant, agent: AgentItem): boolean {
  if (scope === "global") return true;
  if (scope === "agent") return agent.agent_id === target || agent.entity_id === target;
  return (scope === "class" ? agent.agent_type : agent.cluster_id) === target;
}

export function previewOf(meant: Meant, agents: readonly AgentItem[]): Preview {
  const chosen = meant.scope === "global" || meant.target !== "";
  const pauses = chosen ? agents.filter((agent) => inScope(meant, agent)) : [];
  const inside = new Set(pauses);
  return {
    pauses,
    stays: agents.filter((agent) => !inside.has(agent)),
    kinds: counted(pauses, ({ agent_type }) => agent_type ?? "without a type"),
    evicted: pauses.filter((agent) => agent.evicted_at !== null).length,
  };
}

/** Most first, then by name. */
export function counted(
  agents: readonly AgentItem[],
  nameOf: (agent: AgentItem) => string | null,
): [string, number][] {
  const counts = new Map<string, number>();
  for (const agent of agents) {
    const name = nameOf(agent);
    if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort(([a, n], [b, m]) => m - n || a.localeCompare(b));
}

/** The sentence above everything: what is stopped now. */
export function headline(items: readonly KillSwitchItem[]): string {
  const on = items.filter((one) => one.state === "engaged");
  const going = items.filter((one) => one.state === "releasing");
  if (on.some((one) => one.scope === "global")) return "Everything is stopped.";
  if (on.length > 0)
    return `${on.map((one) => whatOf({ scope: one.scope, target: one.target ?? "" })).join(", ")} ${on.length === 1 ? "is" : "are"} stopped.`;
  return going.length > 0 ? "What was stopped goes on, in stages." : "Nothing is stopped.";
}
