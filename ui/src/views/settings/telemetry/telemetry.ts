// OTLP ingest statistics as lines: received, refused and why, missing data.
import type { OtlpAnswer } from "~/protocol/openapi";

export interface Line {
  name: string;
  count: number;
  /** Why it matters, or what to do. */
  means: string;
}

export const isSilent = (came: OtlpAnswer) => came.spans + came.log_records === 0;

/** Received counts first, then problems that occurred. */
export function linesOf(came: OtlpAnswer): Line[] {
  const received: Line[] = [
    { name: "spans", count: came.spans, means: "received at /v1/traces" },
    { name: "log records", count: came.log_records, means: "received at /v1/logs" },
    { name: "steps recorded", count: came.recorded, means: "visible in sessions, graph and audit trail" },
  ];
  const noted: Line[] = [
    {
      name: "refused",
      count: came.refused,
      means: "the reason was returned to the sender, record by record",
    },
    {
      name: "not agents'",
      count: came.not_agents,
      means: "not from an agent; filter them in your collector",
    },
    {
      name: "without tokens",
      count: came.without_tokens,
      means: "model calls that reported none: unknown, not zero",
    },
    {
      name: "without cost",
      count: came.without_cost,
      means: "model calls that reported none: unknown, not zero",
    },
    {
      name: "before their parent",
      count: came.early,
      means: "in the trace's own session; set the conversation id on every span",
    },
    {
      name: "sums skipped",
      count: came.sums_left,
      means: "an agent's total over its own calls, which are already counted",
    },
    { name: "texts truncated", count: came.cut, means: "longer than 16,384 characters" },
  ];
  return [...received, ...noted.filter((one) => one.count > 0)];
}
