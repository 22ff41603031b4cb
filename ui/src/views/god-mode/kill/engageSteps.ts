// The steps of engaging a kill switch up to the second confirmation, and its state at any moment. The gateway
// decides (ruling 26); the page never claims more than it knows. Pure.

import { noun } from "~/plural";
import type { AgentItem, ArmedKillSwitch, KillSwitchItem } from "~/protocol/openapi";

export type Scope = "global" | "class" | "cluster" | "agent";
export interface KillTarget {
  scope: Scope;
  target: string;
}
/** Armed by this page: only it has the token of the next confirmation. */
export interface Armed extends KillTarget {
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
/** State that survives the component: in the page's memory, never in the browser's storage. */
export interface EngageDraft {
  reason: string;
  typed: string;
  armed: Armed | null;
  /** The refusal or interruption, as a sentence. */
  problem: string | null;
  /** The last confirmation had no response: it may have been recorded. */
  unsure: boolean;
}
export const EMPTY_DRAFT: EngageDraft = { reason: "", typed: "", armed: null, problem: null, unsure: false };
export type EngageStep = "choose" | "first" | "second" | "engaged" | "lapsed" | "lost";

export function parseDraft(text: string | null): EngageDraft {
  if (text === null) return EMPTY_DRAFT;
  try {
    return { ...EMPTY_DRAFT, ...(JSON.parse(text) as Partial<EngageDraft>) };
  } catch {
    return EMPTY_DRAFT;
  }
}

export function parseTarget(scope: string | undefined, target: string | undefined): KillTarget {
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

/** The current step: by the gateway's list, and by its last response until the list is refreshed. */
export function stepOf(
  armed: Armed | null,
  items: readonly KillSwitchItem[] | undefined,
  nowMs: number,
): EngageStep {
  if (!armed) return "choose";
  const row = items?.find((one) => one.kill_id === armed.kill_id);
  if (row && ["engaged", "releasing", "released"].includes(row.state)) return "engaged";
  if (row?.state === "lapsed" || Date.parse(armed.expires_at) <= nowMs) return "lapsed";
  // The first confirmation was recorded, its response with the second token never came.
  if (row?.state === "confirmed" && !armed.confirmed) return "lost";
  return armed.confirmed ? "second" : "first";
}

export function targetText({ scope, target }: KillTarget): string {
  if (scope === "global") return "everything in this tenant";
  return `${scope === "class" ? "agent type" : scope} ${target}`;
}

/** A warning for a name that no agent has: the kill switch would look as if it had stopped something. */
export function warningOf(armed: Armed): string | null {
  if (armed.known) return null;
  const label = { global: "", class: "type", cluster: "cluster", agent: "name" }[armed.scope];
  return `No agent has the ${label} ${armed.target}: this stops nothing now, only future agents of that ${label}. Check the spelling.`;
}

/** The text to type for the first and second confirmation: never empty, also while the tenant is unknown. */
export function confirmationText(meant: KillTarget, tenant: string, step: "first" | "second"): string {
  const all = (step === "first" && tenant.trim()) || "everything";
  const name = meant.scope === "global" ? all : meant.target.trim();
  return step === "first" ? name : `stop ${name}`;
}

/**
 * For a user who was signed out in the middle. `unsure`: the confirmation is under way, or had no response.
 */
export function unfinishedSentence(armed: Armed, step: EngageStep, unsure = false): string | null {
  const what = targetText(armed);
  // Only the second confirmation engages it: after the first nothing is stopped.
  if (unsure && armed.confirmed && step !== "engaged")
    return `It is UNKNOWN whether the kill switch for ${what} was engaged: its second confirmation had no response. Sign in to check.`;
  if (step === "engaged")
    return `The kill switch for ${what} WAS engaged. It stays engaged while you are signed out.`;
  if (step === "first" || step === "second") {
    const waits = step === "first" ? "both confirmations" : "its second confirmation";
    return `The kill switch for ${what} was NOT engaged: it waits for ${waits} and lapses automatically. Your input is kept; sign in to continue.`;
  }
  if (step === "lapsed" || step === "lost")
    return `The kill switch for ${what} was NOT engaged. Your input is kept; sign in to arm it again.`;
  return null;
}

/** Everything below a space but tab and line feed: the gateway refuses just these. */
function hasControls(text: string): boolean {
  return [...text].some((one) => one === "\u007f" || (one < " " && one !== "\n" && one !== "\t"));
}

/** Why it cannot be armed yet, or null. */
export function faultOf({ scope, target }: KillTarget, reason: string): string | null {
  if (scope === "class" && !target) return "Select an agent type.";
  if (scope === "cluster" && !target) return "Select a cluster.";
  if (scope === "agent" && !target) return "Select an agent.";
  if (!reason.trim()) return "Enter a reason: it is shown to everyone and recorded.";
  if (reason.length > 1_000) return "A reason has at most 1,000 characters.";
  if (hasControls(reason)) return "A reason must not contain control characters.";
  return null;
}

export interface Preview {
  pauses: AgentItem[];
  stays: AgentItem[];
  /** Agents that pause, counted by type, most first. */
  kinds: [string, number][];
  evicted: number;
}

export function inScope({ scope, target }: KillTarget, agent: AgentItem): boolean {
  if (scope === "global") return true;
  if (scope === "agent") return agent.agent_id === target || agent.entity_id === target;
  return (scope === "class" ? agent.agent_type : agent.cluster_id) === target;
}

export function previewOf(meant: KillTarget, agents: readonly AgentItem[]): Preview {
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

/** The headline: what is stopped now. */
export function headline(items: readonly KillSwitchItem[]): string {
  const on = items.filter((one) => one.state === "engaged");
  const going = items.filter((one) => one.state === "releasing");
  if (on.some((one) => one.scope === "global")) return "Everything is stopped.";
  if (on.length > 0)
    return `${on.map((one) => targetText({ scope: one.scope, target: one.target ?? "" })).join(", ")} ${noun(on.length, "is", "are")} stopped.`;
  return going.length > 0 ? "Resuming in stages." : "No kill switch active.";
}
