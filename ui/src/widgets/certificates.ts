// Certificates in words: when one ends, whose it is, and how a whole inventory stands. Pure.
import type { CertificateItem, CertificatesAnswer } from "~/protocol/openapi";

export type Standing = CertificateItem["standing"];

export interface Sign {
  mark: string;
  /** As in `data-tone` of a mark. */
  tone: "good" | "blocked" | "alert" | "idle";
}

const SIGNS: Record<Standing, Sign> = {
  current: { mark: "✓", tone: "good" },
  expiring: { mark: "!", tone: "blocked" },
  expired: { mark: "×", tone: "alert" },
  not_yet: { mark: "…", tone: "idle" },
};

const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;

export function signOf(standing: Standing): Sign {
  return SIGNS[standing] ?? SIGNS.expiring;
}

function span(ms: number): string {
  const of = (n: number, word: string) => `${n} ${word}${n === 1 ? "" : "s"}`;
  if (ms >= DAY) return of(Math.floor(ms / DAY), "day");
  if (ms >= 60 * MINUTE) return of(Math.floor(ms / (60 * MINUTE)), "hour");
  return of(Math.max(1, Math.floor(ms / MINUTE)), "minute");
}

/** "ends in 12 days", "ended 3 hours ago", "begins in 2 days". */
export function endsIn(one: { not_before: string; not_after: string }, now: number): string {
  const until = Date.parse(one.not_after) - now;
  const since = now - Date.parse(one.not_before);
  if (until < 0) return `ended ${span(-until)} ago`;
  return since < 0 ? `begins in ${span(-since)}` : `ends in ${span(until)}`;
}

/** What a subject is called: its common name if it has one. RFC 4514 escapes commas with a backslash. */
export function nameOf(subject: string): string {
  const found = /(?:^|,)CN=((?:\\.|[^,\\])*)/.exec(subject);
  return found?.[1]?.replaceAll(/\\(.)/g, "$1") || subject || "without a name";
}

const WORST: readonly Standing[] = ["expired", "expiring", "not_yet", "current"];

/** The one in use that a person should know of first: the worst, of equals the one that ends first. */
export function foremost(items: readonly CertificateItem[]): CertificateItem | undefined {
  return items
    .filter((one) => one.in_use)
    .toSorted(
      (a, b) =>
        WORST.indexOf(a.standing) - WORST.indexOf(b.standing) ||
        Date.parse(a.not_after) - Date.parse(b.not_after),
    )[0];
}

export const ASKED: Record<CertificatesAnswer["tls"]["client_certs"], string> = {
  none: "Client certificates are off: agents are known by their keys alone.",
  optional: "Client certificates are optional: who shows one is known by it.",
  required: "Client certificates are required: nobody connects without one.",
};
