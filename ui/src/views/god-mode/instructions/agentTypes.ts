// Agent types with instructions, the progress of each roll-out, and a draft's relation to the current
// version. Pure.
import type { AgentItem, InstructedAgent, InstructionsItem } from "~/protocol/openapi";

export interface Kind {
  name: string;
  /** null: never instructed. */
  version: number | null;
  agents: number;
  taken: number;
}

/** Every type with an agent or with instructions, by name. */
export function kindsOf(items: readonly InstructionsItem[], agents: readonly AgentItem[]): Kind[] {
  const kinds = new Map<string, Kind>();
  for (const { agent_type, evicted_at } of agents) {
    if (agent_type === null || evicted_at !== null) continue;
    const kind = kinds.get(agent_type) ?? { name: agent_type, version: null, agents: 0, taken: 0 };
    kind.agents += 1;
    kinds.set(agent_type, kind);
  }
  for (const { agent_type, version, agents: all, acknowledged } of items)
    kinds.set(agent_type, { name: agent_type, version, agents: all, taken: acknowledged });
  return [...kinds.values()].sort((a, b) => a.name.localeCompare(b.name));
}

export interface Draft {
  text: string;
  note: string;
  /** The current version when editing started, 0 for none. */
  was: number;
}

export function readDraft(text: string | null): Draft | null {
  if (text === null) return null;
  try {
    const { text: words, note, was } = JSON.parse(text) as Draft;
    return typeof words === "string" ? { text: words, note: note ?? "", was: was ?? 0 } : null;
  } catch {
    return null;
  }
}

const LARGEST = 64 << 10;

/** Why a draft cannot be issued, or null. */
export function faultOf(draft: Draft, current: string): string | null {
  if (draft.text.trim() === "") return "Instructions cannot be empty.";
  if (new TextEncoder().encode(draft.text).length > LARGEST) return "Instructions have at most 64 KiB.";
  if (draft.text === current) return "No changes yet.";
  if (draft.note.length > 1_000) return "A note has at most 1,000 characters.";
  return null;
}

export interface Rollout {
  all: number;
  taken: number;
  waiting: InstructedAgent[];
}

/** Agents still present; the longest unseen come last. */
export function rolloutOf(agents: readonly InstructedAgent[]): Rollout {
  const here = agents.filter((one) => !one.evicted);
  const waiting = here.filter((one) => one.pending);
  waiting.sort((a, b) => (b.last_seen_at ?? "").localeCompare(a.last_seen_at ?? ""));
  return { all: here.length, taken: here.length - waiting.length, waiting };
}
