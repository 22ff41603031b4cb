// Audit events of one agent: each event as a line with its kind, so that its lifecycle can be read without
// the messages in between. Heartbeats as a strip: when it was seen, and for how long it was not. Pure.
import type { AlertNotice, AuditEvent } from "~/protocol/openapi";

export type Kind = "message" | "life" | "heartbeat" | "trouble" | "command";
export interface Line {
  id: string;
  number: number;
  at: string;
  type: string;
  kind: Kind;
  text: string;
  message_id: string | null;
  session_id: string | null;
}
export const KINDS: Record<Kind, { word: string; mark: string; tone: string }> = {
  life: { word: "lifecycle", mark: "◆", tone: "good" },
  heartbeat: { word: "heartbeats", mark: "♥", tone: "good" },
  command: { word: "commands", mark: "‖", tone: "blocked" },
  trouble: { word: "trouble", mark: "!", tone: "alert" },
  message: { word: "messages", mark: "→", tone: "idle" },
};
const COMMANDS =
  /^(hitl_|message_(held|released|rewritten|rejected|refused)|policy_|decision_|instruction|kill_)/;
const TROUBLE =
  /violation|entropy|loop|evicted|undeliverable|budget|discrepancy|denied|security|unknown|mismatch|conflict|failed/;

export function kindOf(type: string, severity: number): Kind {
  if (type === "heartbeat") return "heartbeat";
  if (TROUBLE.test(type)) return "trouble";
  if (COMMANDS.test(type)) return "command";
  if (type.startsWith("message_")) return severity >= 13 ? "trouble" : "message";
  return severity >= 17 ? "trouble" : "life";
}

export function lineOf(event: AuditEvent): Line {
  const { body, attributes } = event;
  const type = String(body.event_type ?? "event");
  return {
    id: event.audit_event_id,
    number: event.hash_chain.sequence_number,
    at: event.observed_timestamp,
    type,
    kind: kindOf(type, event.severity_number),
    text: String(body.summary ?? type.replaceAll("_", " ")),
    message_id: typeof body.message_id === "string" ? body.message_id : null,
    session_id:
      typeof attributes["av.conversation.id"] === "string"
        ? (attributes["av.conversation.id"] as string)
        : null,
  };
}

/** Alerts about it (evicted, looping, a violation): their actor is the gateway. */
export function noticed(notices: readonly AlertNotice[], agent_id: string): Line[] {
  return notices
    .filter((notice) => notice.agent_id === agent_id)
    .map((notice) => ({
      id: `alert ${notice.sequence_number}`,
      number: notice.sequence_number,
      at: notice.at,
      type: notice.kind,
      kind: "trouble",
      text: notice.text,
      message_id: null,
      session_id: notice.session_id,
    }));
}

/** Newest first, each number once: an event has more detail than its alert. */
export function merged(lines: readonly Line[], notices: readonly Line[]): Line[] {
  const found = new Map(notices.map((line) => [line.number, line]));
  for (const line of lines) found.set(line.number, line);
  return [...found.values()].sort((a, b) => b.number - a.number);
}

export function readKinds(text: string | undefined): Kind[] {
  const wanted = new Set((text ?? "").split(","));
  return (Object.keys(KINDS) as Kind[]).filter((kind) => wanted.has(kind));
}

export function toggledKind(kinds: readonly Kind[], one: Kind): string {
  const next = kinds.includes(one) ? kinds.filter((kind) => kind !== one) : [...kinds, one];
  return (Object.keys(KINDS) as Kind[]).filter((kind) => next.includes(kind)).join(",");
}

export interface Cell {
  /** Start of the minute. */
  at: number;
  beats: number;
  others: number;
}

/** The last minutes, oldest first: heartbeats and other events in each. */
export function minutes(lines: readonly Line[], nowMs: number, count: number): Cell[] {
  const last = Math.floor(nowMs / 60_000);
  const cells = Array.from({ length: count }, (_, n) => ({
    at: (last - count + 1 + n) * 60_000,
    beats: 0,
    others: 0,
  }));
  for (const line of lines) {
    const cell = cells[Math.floor(Date.parse(line.at) / 60_000) - (last - count + 1)];
    if (!cell) continue;
    if (line.kind === "heartbeat") cell.beats += 1;
    else cell.others += 1;
  }
  return cells;
}

/** How far back it is known: to the oldest loaded line, or to when the agent was first seen. */
export function reaches(lines: readonly Line[], whole: boolean, first_seen_at: string): number {
  const born = Math.floor(Date.parse(first_seen_at) / 60_000) * 60_000;
  if (whole) return born;
  const oldest = lines.at(-1);
  return oldest ? Math.max(born, Date.parse(oldest.at)) : Number.POSITIVE_INFINITY;
}
