// Interventions and pauses for the console: the three states of a pause, what can be undone, whether an agent
// is reachable. Pure.
import type { AgentItem, HoldItem, InterventionItem, SessionMember } from "~/protocol/openapi";
import { span } from "~/widgets/format";

/** An intervention of the live graph; it has the times earlier than the fetched list. */
export interface LiveCommand {
  id: string;
  acknowledged_at: string | null;
  proven: boolean | null;
  confirmed_at: string | null;
  reversed_at: string | null;
}

/** The list updated with the live graph, newest first. `missing`: a command is not listed yet. */
export function mergedInterventions(
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

/** The active pause of an agent, or null. `items` newest first. */
export function pauseInForce(items: readonly InterventionItem[], agent: string): InterventionItem | null {
  const last = items.find((item) => item.agent_id === agent && ["pause", "unpause"].includes(item.command));
  return last?.command === "pause" && last.reversed_at === null ? last : null;
}

export function stagesOf(pause: InterventionItem): [Stage, Stage, Stage] {
  return [
    { word: "requested", at: pause.issued_at, means: "the gateway holds its messages" },
    {
      word: acknowledged(pause.proven),
      at: pause.acknowledged_at,
      means: pause.proven === false ? UNPROVEN : "the agent acknowledged the pause",
    },
    { word: "confirmed", at: pause.confirmed_at, means: "it has sent nothing since" },
  ];
}

export const UNPROVEN =
  "any agent key could have sent this acknowledgement: bind a key to the agent with `observatory keys bind`";

/** Whether an acknowledgement is proven: without the agent's own key or certificate it proves nothing. */
export function acknowledged(proven: boolean | null | undefined): Stage["word"] {
  return proven === false ? "acknowledged (unproven)" : "acknowledged";
}

const PATIENCE_MS = 5_000;

/** A warning about an unfinished pause that takes longer than it should; null otherwise. */
export function pauseWarning(pause: InterventionItem, nowMs: number): string | null {
  if (pause.confirmed_at !== null) return null;
  if (pause.acknowledged_at === null) {
    const waited = nowMs - Date.parse(pause.issued_at);
    if (waited < PATIENCE_MS) return null;
    return `Not acknowledged for ${span(waited)}. Its messages are held regardless.`;
  }
  if (nowMs - Date.parse(pause.acknowledged_at) < PATIENCE_MS) return null;
  return "Acknowledged, but still sending. Its messages are held regardless.";
}

/** Whether a command can still be undone, as far as the page knows; the gateway decides. */
export function canUndo(item: InterventionItem, held: ReadonlySet<string>): boolean {
  if (item.reversed_at !== null) return false;
  if (item.command === "pause") return true;
  if (item.command === "inject") return item.acknowledged_at === null;
  return item.command === "rewrite" && item.message_id !== null && held.has(item.message_id);
}

/** An undo is a command of its own in the list: the same kind, of the same message, with a note. */
export const COMMANDS: Record<InterventionItem["command"], { word: string; did: string }> = {
  pause: { word: "Pause", did: "paused" },
  unpause: { word: "Resume", did: "resumed" },
  inject: { word: "Inject", did: "prompted" },
  rewrite: { word: "Edit message", did: "edited a held message of" },
  approve: { word: "Approve", did: "approved a message of" },
  edit: { word: "Edit and approve", did: "edited and approved a message of" },
  reject: { word: "Reject", did: "rejected a message of" },
  cancel: { word: "Cancel", did: "cancelled the work of" },
};

/** Why a prompt may not be read soon; empty if there is no reason. */
export function injectWarnings(
  agent: Pick<AgentItem, "liveness" | "last_heartbeat_at"> | undefined,
  items: readonly InterventionItem[],
  agentId: string,
  nowMs: number,
): string[] {
  const warnings: string[] = [];
  const mine = items.filter((item) => item.agent_id === agentId);
  const answered = mine.some((item) => item.acknowledged_at !== null);
  if (agent?.liveness === "evicted")
    warnings.push("The agent is evicted. The prompt stays in its inbox until it registers again.");
  else if (agent?.liveness === "zombie") {
    const since = agent.last_heartbeat_at ? ` for ${span(nowMs - Date.parse(agent.last_heartbeat_at))}` : "";
    warnings.push(`No heartbeat${since}. The prompt stays in its inbox until it connects again.`);
  } else if (agent?.liveness === "unknown" && !answered)
    warnings.push(
      "No known channel: no heartbeat and no acknowledged command. An agent without the SDK receives prompts only by polling its inbox.",
    );
  const pause = pauseInForce(items, agentId);
  const late = pause && pause.acknowledged_at === null ? pauseWarning(pause, nowMs) : null;
  if (late) warnings.push("The agent has not acknowledged its pause, so it may not be listening.");
  return warnings;
}

/** The console's agent: chosen by hand, else selected in the graph, else the busiest. */
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
  pause: "agent paused",
  gate: "waiting for a decision",
  ancestor: "depends on a held message",
  order: "follows a held message",
  kill: "kill switch engaged",
};

export function whyHeld(hold: Pick<HoldItem, "cause" | "gate">): string {
  if (hold.gate === "approved") return "approved, queued";
  return hold.gate === "open" ? CAUSES.gate : CAUSES[hold.cause];
}

/** The selected agent's first, each group in order of arrival. */
export function inLine(holds: readonly HoldItem[], agent: string | null): HoldItem[] {
  return [...holds].sort(
    (a, b) =>
      Number(b.agent_id === agent) - Number(a.agent_id === agent) || a.sequence_number - b.sequence_number,
  );
}
