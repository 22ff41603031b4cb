// The audit log's query from the URL, and how an event reads. Pure.
import type { AuditEvent } from "~/protocol/openapi";
import { inert } from "~/widgets/inert";

export const SEVERITIES = [
  { value: "", label: "all except heartbeats" },
  { value: "1", label: "including heartbeats" },
  { value: "13", label: "warning and above" },
  { value: "17", label: "error and above" },
  { value: "21", label: "fatal" },
];
export const SPANS = [
  { value: "", label: "any time" },
  { value: "15", label: "last 15 min" },
  { value: "60", label: "last hour" },
  { value: "1440", label: "last 24 h" },
  { value: "between", label: "between…" },
];

/** Heartbeats are the only events below it, and nine of ten: the log opens without them. */
const INFO = 9;

export interface Asked {
  type: string;
  sev: string;
  who: string;
  trace: string;
  within: string;
  since: string;
  until: string;
}

export function readAsked(url: Record<string, string | undefined>): Asked {
  const known = (value: string | undefined, all: { value: string }[]) =>
    all.some((one) => one.value === value) ? (value ?? "") : "";
  const within = known(url.within, SPANS);
  return {
    type: url.type ?? "",
    sev: known(url.sev, SEVERITIES),
    who: url.who ?? "",
    trace: url.trace ?? "",
    within: url.since || url.until ? "between" : within,
    since: url.since ?? "",
    until: url.until ?? "",
  };
}

/** A local time of a field (`2026-11-16T14:30`) with its zone; null if it is not a time. */
export function timeOf(local: string): string | null {
  const moment = Date.parse(local);
  return local && !Number.isNaN(moment) ? new Date(moment).toISOString() : null;
}

export function queryOf(asked: Asked, nowMs: number) {
  const minutes = Number(asked.within);
  const since =
    asked.within === "between"
      ? timeOf(asked.since)
      : minutes > 0
        ? new Date(nowMs - minutes * 60_000).toISOString()
        : null;
  return {
    event_type: asked.type || null,
    severity_min: asked.sev ? Number(asked.sev) : asked.type ? null : INFO,
    entity_id: asked.who || null,
    trace_id: asked.trace || null,
    since,
    until: asked.within === "between" ? timeOf(asked.until) : null,
    limit: 200,
  };
}

export function isAsked({ type, sev, who, trace, within }: Asked): boolean {
  return [type, sev, who, trace, within].some((one) => one !== "");
}

export function toneOf(severity: number): { tone: string; mark: string } {
  if (severity >= 21) return { tone: "alert", mark: "×" };
  if (severity >= 17) return { tone: "alert", mark: "!" };
  if (severity >= 13) return { tone: "blocked", mark: "!" };
  return severity >= 9 ? { tone: "idle", mark: "·" } : { tone: "idle", mark: " " };
}

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);

export interface Read {
  id: string;
  number: number;
  at: string;
  type: string;
  severity: number;
  severityWord: string;
  who: string;
  whom: string | null;
  summary: string;
  session: string | null;
  message: string | null;
}

export function readEvent(event: AuditEvent): Read {
  const { attributes, body } = event;
  const type = text(body.event_type) ?? "event";
  const conversation = text(attributes["av.conversation.id"]);
  return {
    id: event.audit_event_id,
    number: event.hash_chain.sequence_number,
    at: event.observed_timestamp,
    type,
    severity: event.severity_number,
    severityWord: event.severity_text,
    who: text(attributes["av.sender.agent_id"]) ?? text(attributes["av.sender.entity_id"]) ?? "–",
    whom: text(attributes["av.recipient.agent_id"]) ?? text(attributes["av.recipient.entity_id"]),
    summary: inert(text(body.summary) ?? "") || type.replaceAll("_", " "),
    session: text(body.session_id) ?? conversation,
    message: text(body.message_id),
  };
}

/** A served record may be tampered with: whatever is in it is shown, never trusted. */
export function readBytes(bytes: Uint8Array): { event: AuditEvent | null; text: string } {
  const whole = new TextDecoder().decode(bytes).split("\n")[0] ?? "";
  try {
    const event = JSON.parse(whole) as AuditEvent;
    const isWhole = event?.hash_chain && event.attributes && event.body && event.audit_event_id;
    return { event: isWhole ? event : null, text: whole };
  } catch {
    return { event: null, text: whole };
  }
}
