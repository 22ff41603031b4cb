// What came by OTLP, as lines for people: what was taken, what was not and why, what nobody told.
import type { OtlpAnswer } from "~/protocol/openapi";

export interface Line {
  name: string;
  count: number;
  /** Why it matters, or what to do. */
  means: string;
}

export const isSilent = (came: OtlpAnswer) => came.spans + came.log_records === 0;

/** First what came, then only what is so. */
export function linesOf(came: OtlpAnswer): Line[] {
  const told: Line[] = [
    { name: "spans", count: came.spans, means: "came to /v1/traces" },
    { name: "log records", count: came.log_records, means: "came to /v1/logs" },
    { name: "steps recorded", count: came.recorded, means: "they are in sessions, graph and trail" },
  ];
  const noted: Line[] = [
    { name: "refused", count: came.refused, means: "the sender was told why, record by record" },
    {
      name: "not agents'",
      count: came.not_agents,
      means: "no agent's words in them; filter them in your collector",
    },
    {
      name: "without tokens",
      count: came.without_tokens,
      means: "calls of a model that told none: unknown, not zero",
    },
    {
      name: "without cost",
      count: came.without_cost,
      means: "calls of a model that told none: unknown, not zero",
    },
    {
      name: "before their parent",
      count: came.early,
      means: "in their trace's own session; name the conversation on every span",
    },
    {
      name: "sums left out",
      count: came.sums_left,
      means: "an agent's sum over its own calls, which count already",
    },
    { name: "texts cut", count: came.cut, means: "longer than 16,384 characters" },
  ];
  return [...told, ...noted.filter((one) => one.count > 0)];
}
