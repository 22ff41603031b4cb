// A session as a list row, and its texts: status with mark, severity, reason for being stuck. Pure.
import type { SessionItem } from "~/protocol/openapi";
import type { SessionStatus } from "~/widgets/status";

export { type SessionStatus, STATUSES } from "~/widgets/status";

export interface SessionCap {
  budget_id: string;
  scope: "tenant" | "cluster" | "session" | "agent";
  target: string;
  soft: number | null;
  hard: number | null;
  spent: number;
  share: number;
}

/** The table's fields of a session, from HTTP or from the live topic; both have the same members. */
export type SessionRow = Omit<SessionItem, "status" | "cap"> & {
  status: SessionStatus;
  goal: string | null;
  confidence: number | null;
  entropy_trail: number[];
  cap: SessionCap | null;
  agent_names: string[];
  paused: number;
};

/** Most urgent first; also the order of the filter. */
export const STATUS_ORDER: SessionStatus[] = ["looping", "stuck", "waiting", "paused", "running", "ended"];

export const SEVERITIES: Record<SessionItem["severity"], { word: string; tone: string; means: string }> = {
  loop: { word: "loop", tone: "alert", means: "the last steps are nearly equal" },
  warning: { word: "repetitive", tone: "blocked", means: "steps begin to come again" },
  normal: { word: "varied", tone: "idle", means: "steps differ" },
};
export const SEVERITY_ORDER: SessionItem["severity"][] = ["loop", "warning", "normal"];

/**
 * A record of the live topic or an item of a page. Earlier gateway versions send fewer members: missing ones
 * are unknown.
 */
export function rowOf(partial: Partial<SessionRow> & { session_id: string }): SessionRow {
  const row = partial as SessionRow;
  return {
    ...row,
    goal: row.goal ?? null,
    confidence: row.confidence ?? null,
    entropy_trail: row.entropy_trail ?? [],
    cap: row.cap ?? null,
    agent_names: row.agent_names ?? [],
    paused: row.paused ?? 0,
    status: row.status ?? guessed(row),
  };
}

function guessed(row: SessionRow): SessionStatus {
  if (row.severity === "loop" || row.loop_detected_at) return "looping";
  if (row.held > 0) return "waiting";
  return row.stuck ? "stuck" : "running";
}

/** Why it is stuck, as a sentence without the time. */
export function whyStuck(reason: SessionItem["stuck_reason"]): string {
  if (reason === "pending") return "a call is pending";
  if (reason === "silent") return "no activity";
  return "no progress";
}

export type CapState = "none" | "under" | "soft" | "hard";

/** The reached cap of its closest budget. */
export function capState(cap: SessionCap | null): CapState {
  if (cap === null) return "none";
  if (cap.hard !== null && cap.spent >= cap.hard) return "hard";
  if (cap.soft !== null && cap.spent >= cap.soft) return "soft";
  return "under";
}

export function goalOf(row: { goal: string | null; session_id: string }): string {
  return row.goal ?? `session ${row.session_id}`;
}
