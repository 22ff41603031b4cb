// What an alarm says in a line: the detector's own finding where it is known, else the map's words. Pure.
import type { AlertItem, AlertNotice } from "~/protocol/openapi";
import { looped, plain } from "~/widgets/looping";

export interface Alarmed {
  /** The agent. */
  id: string;
  kind: string;
  text: string | null;
  session_id: string | null;
}

type Notice = Pick<AlertNotice, "kind" | "agent_id" | "text">;

/** "loop: same failing `serp_search` 5 times in a row" */
export function sentence(
  alarm: Alarmed,
  open: readonly AlertItem[],
  notices: readonly Notice[] = [],
): string {
  if (alarm.kind === "schema_violation") {
    const told = notices.find((one) => one.kind === "violation" && one.agent_id === alarm.id);
    return told
      ? told.text.replace(/^.*?(?=breaks the schema)/, "")
      : (alarm.text ?? "its last message broke the schema");
  }
  const circles = alarm.kind === "loop" || alarm.kind === "warning";
  const alert = circles ? worst(alarm, open) : undefined;
  if (!alert) return alarm.text ?? alarm.kind.replaceAll("_", " ");
  const head = alarm.kind === "loop" ? "loop" : "repeats itself";
  const { tool_call, intent } = alert.repeated_pattern;
  if (!tool_call && !intent && alert.reason) return `${head}: ${alert.reason}`;
  const often = alert.occurrence_count >= alert.window_size;
  return plain(looped(alert, often ? " in a row" : ` in its last ${alert.window_size} steps`, head));
}

/** Of the alarms of this agent in this session the one that counted most. */
function worst(alarm: Alarmed, open: readonly AlertItem[]): AlertItem | undefined {
  return open
    .filter(
      (one) => one.session_id === alarm.session_id && (one.agent_id === null || one.agent_id === alarm.id),
    )
    .sort((a, b) => b.occurrence_count - a.occurrence_count)[0];
}

const PAUSABLE = new Set(["loop", "warning", "schema_violation"]);

/** Pausing helps against what is still going on; who is silent, held or paused already is only looked at. */
export function pausable(kind: string): boolean {
  return PAUSABLE.has(kind);
}
