// An alert in one line: the detector's finding if known, else the map's text. Pure.
import type { AlertItem, AlertNotice } from "~/protocol/openapi";
import { loopText, plain } from "~/widgets/loopText";

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
    const violation = notices.find((one) => one.kind === "violation" && one.agent_id === alarm.id);
    return violation
      ? violation.text.replace(/^.*?(?=breaks the schema)/, "")
      : (alarm.text ?? "its last message broke the schema");
  }
  const circles = alarm.kind === "loop" || alarm.kind === "warning";
  const alert = circles ? worst(alarm, open) : undefined;
  if (!alert) return alarm.text ?? alarm.kind.replaceAll("_", " ");
  const head = alarm.kind === "loop" ? "loop" : "repeats itself";
  const { tool_call, intent } = alert.repeated_pattern;
  if (!tool_call && !intent && alert.reason) return `${head}: ${alert.reason}`;
  const often = alert.occurrence_count >= alert.window_size;
  return plain(loopText(alert, often ? " in a row" : ` in its last ${alert.window_size} steps`, head));
}

/** Of this agent's alerts in this session, the one with the highest count. */
function worst(alarm: Alarmed, open: readonly AlertItem[]): AlertItem | undefined {
  return open
    .filter(
      (one) => one.session_id === alarm.session_id && (one.agent_id === null || one.agent_id === alarm.id),
    )
    .sort((a, b) => b.occurrence_count - a.occurrence_count)[0];
}

const PAUSABLE = new Set(["loop", "warning", "schema_violation"]);

/** Pausing helps only if the agent is still active; silent, held or paused agents are only inspected. */
export function pausable(kind: string): boolean {
  return PAUSABLE.has(kind);
}
