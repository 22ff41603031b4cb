// Certificates as text: expiry, subject, and the status of an inventory. Pure.

import { plural } from "~/plural";
import type { CertificateItem, CertificatesAnswer } from "~/protocol/openapi";

export type CertificateStatus = CertificateItem["standing"];

export interface Sign {
  mark: string;
  /** As in `data-tone` of a mark. */
  tone: "good" | "blocked" | "alert" | "idle";
}

const SIGNS: Record<CertificateStatus, Sign> = {
  current: { mark: "✓", tone: "good" },
  expiring: { mark: "!", tone: "blocked" },
  expired: { mark: "×", tone: "alert" },
  not_yet: { mark: "…", tone: "idle" },
};

const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;

export function signOf(standing: CertificateStatus): Sign {
  return SIGNS[standing] ?? SIGNS.expiring;
}

function span(ms: number): string {
  const of = plural;
  if (ms >= DAY) return of(Math.floor(ms / DAY), "day");
  if (ms >= 60 * MINUTE) return of(Math.floor(ms / (60 * MINUTE)), "hour");
  return of(Math.max(1, Math.floor(ms / MINUTE)), "minute");
}

/** "expires in 12 days", "expired 3 hours ago", "valid in 2 days". */
export function endsIn(one: { not_before: string; not_after: string }, now: number): string {
  const until = Date.parse(one.not_after) - now;
  const since = now - Date.parse(one.not_before);
  if (until < 0) return `expired ${span(-until)} ago`;
  return since < 0 ? `valid in ${span(-since)}` : `expires in ${span(until)}`;
}

/** The display name of a subject: its common name if it has one. RFC 4514 escapes commas with a backslash. */
export function nameOf(subject: string): string {
  const found = /(?:^|,)CN=((?:\\.|[^,\\])*)/.exec(subject);
  return found?.[1]?.replaceAll(/\\(.)/g, "$1") || subject || "without a name";
}

const WORST: readonly CertificateStatus[] = ["expired", "expiring", "not_yet", "current"];

/** The certificate in use to report first: the worst, among equals the one that expires first. */
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
  none: "Client certificates are off: agents are identified by their keys alone.",
  optional: "Client certificates are optional: an agent that presents one is identified by it.",
  required: "Client certificates are required to connect.",
};
