/**
 * Ids, names of steps, trace context and times, in the gateway's form (protocol/identity, steps, otel, clock).
 *
 * Rule: a new id is a UUIDv7 from the system's randomness; a UUID has one form, lower-case with hyphens;
 * a step's span id is the beginning of the SHA-256 of its name, so every side computes the same one.
 */

import { hex, sha1, sha256, utf8 } from "./hash.ts";

const LOWER = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const HEX = /^[0-9a-f]{32}$/;
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NAMESPACE = "a1b2c3d4e5f67890abcdef1234567890";
const ZERO_SPAN = "0".repeat(16);
const ZERO_TRACE = "0".repeat(32);

export function hyphenated(digits: string): string {
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    digits.slice(12, 16),
    digits.slice(16, 20),
    digits.slice(20),
  ].join("-");
}

/** A UUIDv7 (RFC 9562 §5.7). */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  let ms = Date.now();
  for (let i = 5; i >= 0; i--) {
    bytes[i] = ms % 256;
    ms = Math.floor(ms / 256);
  }
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return hyphenated(hex(bytes));
}

export function canonicalUuid(text: string): string | null {
  const lower = text.toLowerCase();
  if (LOWER.test(lower)) return lower;
  return HEX.test(lower) ? hyphenated(lower) : null;
}

/** A UUID in its canonical form; any other id unchanged. */
export function canonicalId(text: string): string {
  return canonicalUuid(text) ?? text;
}

/** The id of a step when it is a UUID; any other text is unique only within its session (ruling 2d). */
export function stepName(sessionId: string, stepId: string): string {
  return canonicalUuid(stepId) === stepId ? stepId : `${sessionId}/${stepId}`;
}

export function stepOfName(name: string): string {
  const at = name.indexOf("/");
  return (at < 0 ? "" : name.slice(at + 1)) || name;
}

export function spanIdOf(stepId: string): string {
  const span = hex(sha256(utf8(stepId))).slice(0, 16);
  return span === ZERO_SPAN ? `${ZERO_SPAN.slice(1)}1` : span;
}

/** A session's trace id: its own digits when it is a UUID, else the UUIDv5 of its name. */
export function traceIdOfSession(sessionId: string): string {
  const digits = canonicalUuid(sessionId)?.replaceAll("-", "");
  if (digits !== undefined && digits !== ZERO_TRACE) return digits;
  const space = Uint8Array.from({ length: 16 }, (_, n) =>
    Number.parseInt(NAMESPACE.slice(2 * n, 2 * n + 2), 16),
  );
  const made = sha1(Uint8Array.from([...space, ...utf8(sessionId)])).slice(0, 16);
  made[6] = ((made[6] as number) & 0x0f) | 0x50;
  made[8] = ((made[8] as number) & 0x3f) | 0x80;
  return hex(made);
}

/** The trace id of a `traceparent`; null for one to be ignored (W3C Trace Context 3.2). */
export function traceIdOfParent(header: string): string | null {
  const match = TRACEPARENT.exec(header.trim());
  if (match === null) return null;
  const [, version, trace, span, , more] = match;
  if (version === "ff" || (version === "00" && more) || trace === ZERO_TRACE || span === ZERO_SPAN)
    return null;
  return trace as string;
}

/** Now, or that many seconds from now, with nine digits as times on the wire have them. */
export function timestamp(inS = 0): string {
  return new Date(Date.now() + inS * 1000).toISOString().replace("Z", "000000Z");
}
