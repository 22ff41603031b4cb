// The job form: text fields, parsed into the gateway's request, with every fault at its field. Pure.
import type { ChangeJobBody, JobBody, JobItem } from "~/protocol/openapi";

export type TargetKind = JobBody["target"]["kind"];
export interface Draft {
  name: string;
  kind: "cron" | "once";
  cron: string;
  /** The value of `<input type="datetime-local">`, in the viewer's zone. */
  at: string;
  zone: string;
  target_kind: TargetKind;
  target_name: string;
  intent: string;
  payload: string;
  session_id: string;
  misfire: NonNullable<JobBody["misfire"]>;
  overlap: NonNullable<JobBody["overlap"]>;
  jitter_s: string;
  grace_s: string;
  max_tries: string;
}

export function fresh(zone: string): Draft {
  return {
    name: "",
    kind: "cron",
    cron: "0 9 * * 1-5",
    at: "",
    zone,
    target_kind: "capability",
    target_name: "",
    intent: "",
    payload: "{}",
    session_id: "",
    misfire: "run_once",
    overlap: "allow",
    jitter_s: "0",
    grace_s: "60",
    max_tries: "5",
  };
}

function localOf(at: string | null): string {
  if (at === null) return "";
  const moment = new Date(at);
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function draftOf(job: JobItem): Draft {
  return {
    name: job.name,
    kind: job.kind,
    cron: job.cron ?? "",
    at: localOf(job.at),
    zone: job.zone,
    target_kind: job.target.kind,
    target_name: job.target.name,
    intent: job.intent,
    payload: JSON.stringify(job.payload ?? {}, null, 2),
    session_id: job.session_id ?? "",
    misfire: job.misfire,
    overlap: job.overlap,
    jitter_s: String(job.jitter_s),
    grace_s: String(job.grace_s),
    max_tries: String(job.max_tries),
  };
}

export type Faults = Partial<Record<keyof Draft, string>>;

function whole(text: string, low: number, high: number): number | string {
  if (!/^\d+$/.test(text.trim())) return "Enter a whole number.";
  const value = Number(text);
  return value < low || value > high ? `Must be from ${low} to ${high}.` : value;
}

/** The request body, or its faults. The cron expression is validated by the gateway. */
export function read(draft: Draft): { body: JobBody | null; faults: Faults } {
  const faults: Faults = {};
  if (!draft.name.trim()) faults.name = "Enter a name.";
  if (!draft.target_name.trim()) faults.target_name = "Enter a target.";
  if (!draft.intent.trim()) faults.intent = "Enter an intent.";
  if (draft.kind === "cron" && !draft.cron.trim()) faults.cron = "Enter a cron expression.";
  const moment = Date.parse(draft.at);
  if (draft.kind === "once" && Number.isNaN(moment)) faults.at = "Enter a date and time.";
  const payload = payloadOf(draft.payload);
  if (typeof payload === "string") faults.payload = payload;
  const numbers = {
    jitter_s: whole(draft.jitter_s, 0, 86_400),
    grace_s: whole(draft.grace_s, 1, 86_400),
    max_tries: whole(draft.max_tries, 1, 20),
  };
  for (const name of ["jitter_s", "grace_s", "max_tries"] as const) {
    const found = numbers[name];
    if (typeof found === "string") faults[name] = found;
  }
  if (Object.keys(faults).length > 0) return { body: null, faults };
  const body: JobBody = {
    name: draft.name.trim(),
    target: { kind: draft.target_kind, name: draft.target_name.trim() },
    intent: draft.intent.trim(),
    ...(draft.kind === "cron" ? { cron: draft.cron.trim() } : { at: new Date(moment).toISOString() }),
    zone: draft.zone.trim() || "UTC",
    payload: payload as Record<string, unknown>,
    session_id: draft.session_id.trim() || null,
    misfire: draft.misfire,
    overlap: draft.overlap,
    jitter_s: numbers.jitter_s as number,
    grace_s: numbers.grace_s as number,
    max_tries: numbers.max_tries as number,
  };
  return { body, faults };
}

function payloadOf(text: string): Record<string, unknown> | string {
  if (!text.trim()) return {};
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value))
      return value as Record<string, unknown>;
    return "The payload must be an object: { … }.";
  } catch (error) {
    return `Invalid JSON: ${(error as Error).message}`;
  }
}

/** A job's settings as they can be sent again, for an undo. */
export function bodyOf(job: JobItem): ChangeJobBody {
  return {
    name: job.name,
    target: job.target,
    intent: job.intent,
    ...(job.kind === "cron" ? { cron: job.cron } : { at: job.at }),
    zone: job.zone,
    payload: (job.payload ?? {}) as Record<string, unknown>,
    session_id: job.session_id,
    misfire: job.misfire,
    overlap: job.overlap,
    jitter_s: job.jitter_s,
    grace_s: job.grace_s,
    max_tries: job.max_tries,
  };
}

/** The field a refusal of the gateway belongs to; null if none. */
export function fieldOf(reason: string, message: string): keyof Draft | null {
  if (reason === "name_taken") return "name";
  if (reason === "bad_schedule") return /zone/.test(message) ? "zone" : /^at /.test(message) ? "at" : "cron";
  if (reason === "bad_payload") return "payload";
  return null;
}

/** A job whose only time is past: restored, it would run at once, so there is no undo. */
export function isOver({ at }: Pick<JobItem, "at">, nowMs = Date.now()): boolean {
  return at !== null && Date.parse(at) <= nowMs;
}
