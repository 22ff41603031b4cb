// What people did in a session, read for the console: the three states of a pause, what can be taken back,
// whether an agent listens. Pure.
import type { AgentItem, HoldItem, InterventionItem, SessionMember } from "~/protocol/openapi";
import { span } from "~/widgets/words";

/** A diamond of the session's live graph; it knows the moments earlier than a list that is asked for. */
export interface LiveCommand {
  id: string;
  acknowledged_at: string | null;
  proven: boolean | null;
  confirmed_at: string | null;
  reversed_at: string | null;
}

/** The list with what the live graph knows since, newest first. `missing` tells that a command is not listed yet. */
export function together(
  listed: readonly InterventionItem[],
  live: readonly LiveCommand[],
): { items: InterventionItem[]; missing: boolean } {
  const known = new Map(live.map((one) => [one.id, one]));
  const items = listed.map((item) => {
    const now = known.get(item.intervention_id);
    known.delete(item.intervention_id);
    if (!now) return item;
    const acknowledged_at = item.acknowledged_at ?? now.acknowledged_at;
    const confirmed_at = item.confirmed_at ?? now.confirmed_at;
    const reversed_at = item.reversed_at ?? now.reversed_at;
    const proven = item.proven ?? now.proven;
    return { ...item, acknowledged_at, proven, confirmed_at, reversed_at };
  });
  return { items: items.sort((a, b) => b.sequence_number - a.sequence_number), missing: known.size > 0 };
}

export interface Stage {
  word: "requested" | "acknowledged" | "acknowledged (unproven)" | "confirmed";
  at: string | null;
  means: string;
}

/** The pause in force of an agent, or null. `items` newest first. */
export function pauseInForce(items: readonly InterventionItem[], agent: string): InterventionItem | null {
  const last = items.find((item) => item.agent_id === agent && ["pause", "unpause"].includes(item.command));
  return last?.command === "pause" && last.reversed_at === null ? last : null;
}

export function stagesOf(pause: InterventionItem): [Stage, Stage, Stage] {
  return [
    { word: "requested", at: pause.issued_at, means: "the gateway holds what it sends" },
    {
      word: acknowledged(pause.proven),
      at: pause.acknowledged_at,
      means: pause.proven === false ? UNPROVEN : "the agent has said that it knows",
    },
    { word: "confirmed", at: pause.confirmed_at, means: "it has kept still since" },
  ];
}

export const UNPROVEN =
  "any key of an agent could have said that it knows: `observatory keys bind` gives it a key of its own";

/** What an acknowledgement is worth: without a key or certificate of the agent's own it proves nothing. */
export function acknowledged(proven: boolean | null | undefined): Stage["word"] {
  return proven === false ? "acknowledged (unproven)" : "acknowledged";
}

const PATIENCE_MS = 5_000;

/** What an unfinished pause means, once it takes longer than it should; null while all is well. */
export function slow(pause: InterventionItem, nowMs: number): string | null {
  if (pause.confirmed_at !== null) return null;
  if (pause.acknowledged_at === null) {
    const waited = nowMs - Date.parse(pause.issued_at);
    if (waited < PATIENCE_MS) return null;
    return `It has not answered for ${span(waited)}. What it sends is held all the same.`;
  }
  if (nowMs - Date.parse(pause.acknowledged_at) < PATIENCE_MS) return null;
  return "It knows, and keeps sending. What it sends is held all the same.";
}

/** Whether a command can still be taken back, by what is seen here; the gateway decides. */
export function canUndo(item: InterventionItem, held: ReadonlySet<string>): boolean {
  if (item.reversed_at !== null) return false;
  if (item.command === "pause") return true;
  if (item.command === "inject") return item.acknowledged_at === null;
  return item.command === "rewrite" && item.message_id !== null && held.has(item.message_id);
}

/** A reversal is a command of its own in the list: the same kind, of the same message, saying so in its note. */
export const COMMANDS: Record<InterventionItem["command"], { word: string; did: string }> = {
  pause: { word: "Pause", did: "paused" },
  unpause: { word: "Unpause", did: "let go on" },
  inject: { word: "Inject", did: "prompted" },
  rewrite: { word: "Edit message", did: "changed what is held of" },
  approve: { word: "Approve", did: "forwarded a message of" },
  edit: { word: "Edit and forward", did: "edited and forwarded a message of" },
  reject: { word: "Reject", did: "never forwards a message of" },
  cancel: { word: "Cancel", did: "ended the work of" },
};

/** Why a prompt may not be read soon; empty when nothing speaks against it. */
export function doubts(
  agent: Pick<AgentItem, "liveness" | "last_heartbeat_at"> | undefined,
  items: readonly InterventionItem[],
  agentId: string,
  nowMs: number,
): string[] {
  const told: string[] = [];
  const mine = items.filter((item) => item.agent_id === agentId);
  const answered = mine.some((item) => item.acknowledged_at !== null);
  if (agent?.liveness === "evicted")
    told.push("It was evicted. The prompt waits in its inbox until it registers again.");
  else if (agent?.liveness === "zombie") {
    const since = agent.last_heartbeat_at ? ` for ${span(nowMs - Date.parse(agent.last_heartbeat_at))}` : "";
    told.push(`No heartbeat${since}. The prompt waits in its inbox until it connects again.`);
  } else if (agent?.liveness === "unknown" && !answered)
    told.push(
      "It has no channel that we know of: it sends no heartbeat and has acknowledged no command here. An agent without the SDK reads its prompts only if it asks its inbox.",
    );
  const pause = pauseInForce(items, agentId);
  const late = pause && pause.acknowledged_at === null ? slow(pause, nowMs) : null;
  if (late) told.push("It has not acknowledged its pause, so it may not be listening.");
  return told;
}

/** Which agent the console is about: chosen by hand, else selected in the graph, else the busiest. */
export function agentOf(
  members: readonly SessionMember[],
  chosen: string | undefined,
  selected: string | undefined,
): string | null {
  if (chosen) return chosen;
  if (selected) return selected;
  const busiest = [...members].sort((a, b) => b.messages - a.messages)[0];
  return busiest?.agent_id ?? null;
}

const CAUSES: Record<HoldItem["cause"], string> = {
  pause: "its agent is paused",
  gate: "waits for an answer",
  ancestor: "follows from one that waits",
  order: "comes after one that is held",
  kill: "a kill-switch is on",
};

export function whyHeld(hold: Pick<HoldItem, "cause" | "gate">): string {
  if (hold.gate === "approved") return "approved, waits for its turn";
  return hold.gate === "open" ? CAUSES.gate : CAUSES[hold.cause];
}

/** Those of the agent first, each group in the order it came. */
export function inLine(holds: readonly HoldItem[], agent: string | null): HoldItem[] {
  return [...holds].sort(
    (a, b) =>
      Number(b.agent_id === agent) - Number(a.agent_id === agent) || a.sequence_number - b.sequence_number,
  );
}
