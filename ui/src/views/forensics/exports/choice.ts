// The selected export range from the URL: everything, a time range, or a range of sequence numbers. Pure.

export const WHATS = ["all", "1h", "24h", "7d", "numbers"] as const;
export type What = (typeof WHATS)[number];
const HOURS = { "1h": 1, "24h": 24, "7d": 168 } as const;

export interface Choice {
  what: What;
  from: string;
  to: string;
  payloads: boolean;
}

export function choiceOf(url: Record<string, string | undefined>): Choice {
  const what = WHATS.find((one) => one === url.what) ?? "all";
  return { what, from: url.from ?? "", to: url.to ?? "", payloads: url.payloads !== "0" };
}

export type Query = { from?: number; to?: number; since?: string; payloads: boolean };

/** The query for the gateway, or why it is invalid. */
export function queryOf({ what, from, to, payloads }: Choice, nowMs: number): Query | string {
  if (what === "all") return { payloads };
  if (what !== "numbers") {
    const minute = Math.floor(nowMs / 60_000) * 60_000;
    return { since: new Date(minute - HOURS[what] * 3_600_000).toISOString(), payloads };
  }
  const [first, last] = [from.trim() === "" ? 1 : Number(from), to.trim() === "" ? null : Number(to)];
  if (!Number.isSafeInteger(first) || first < 1)
    return "The first number must be a whole number of at least 1.";
  if (last !== null && (!Number.isSafeInteger(last) || last < first))
    return "The last number must be a whole number, not before the first; leave it empty for the newest.";
  return { from: first, ...(last !== null && { to: last }), payloads };
}
