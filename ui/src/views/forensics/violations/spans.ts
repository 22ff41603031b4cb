// Time ranges of the violations board, and the key of a group. Pure.

import type { ViolationGroup } from "~/protocol/openapi";
import { clockToSecond } from "~/widgets/clock";

export const SPANS = {
  "15m": { minutes: 15, words: "the last 15 minutes" },
  "1h": { minutes: 60, words: "the last hour" },
  "6h": { minutes: 360, words: "the last 6 hours" },
  "24h": { minutes: 1_440, words: "the last day" },
  "7d": { minutes: 10_080, words: "the last 7 days" },
} as const;
export type Span = keyof typeof SPANS;

export function spanOf(text: string | undefined): Span {
  return text !== undefined && Object.hasOwn(SPANS, text) ? (text as Span) : "1h";
}

/** To the whole minute: within it the query is the same, and its response is shared. */
export function sinceOf(span: Span, nowMs: number): string {
  return new Date((Math.floor(nowMs / 60_000) - SPANS[span].minutes + 1) * 60_000).toISOString();
}

export function keyOf({ agent_id, capability_version, reason }: ViolationGroup): string {
  return `${agent_id ?? ""} ${capability_version ?? ""} ${reason}`;
}

/** The label of an interval of the strip. */
export function partWords(n: number, count: number, since: string, bucket_s: number): string {
  const at = new Date(Date.parse(since) + n * bucket_s * 1000);
  return `${count} from ${clockToSecond(at)}`;
}
