// A message's position in the record: its own event, the previous one and the next, and whether their hashes
// link, compared here and not trusted. Pure.
import type { AuditEvent } from "~/protocol/openapi";

export interface Neighbour {
  event: AuditEvent;
  number: number;
  /** A message has a page of its own; another event has not. */
  message_id: string | null;
  says: string;
}

export interface ChainPosition {
  before: Neighbour | null;
  here: Neighbour | null;
  after: Neighbour | null;
  /** Whether each hash is the one its follower names; null without a neighbour to compare. */
  follows: boolean | null;
}

function neighbour(event: AuditEvent): Neighbour {
  const { message_id, summary, event_type } = event.body as Record<string, unknown>;
  // Reads of a message are events about it; the message itself has its own event.
  const isOwn = typeof message_id === "string" && "av.message.digest" in event.attributes;
  return {
    event,
    number: event.hash_chain.sequence_number,
    message_id: isOwn ? (message_id as string) : null,
    says: String(summary ?? event_type ?? "event"),
  };
}

export function placeOf(events: readonly AuditEvent[], number: number): ChainPosition {
  const at = (n: number) => {
    const found = events.find((event) => event.hash_chain.sequence_number === n);
    return found ? neighbour(found) : null;
  };
  const [before, here, after] = [at(number - 1), at(number), at(number + 1)];
  const pairs = [
    [before, here],
    [here, after],
  ].filter(([a, b]) => a && b) as [Neighbour, Neighbour][];
  const follows =
    pairs.length === 0
      ? null
      : pairs.every(([a, b]) => a.event.hash_chain.event_hash === b.event.hash_chain.previous_hash);
  return { before, here, after, follows };
}

/** The recorded digest of the bytes. */
export function digestOf(event: AuditEvent | undefined): string | null {
  const digest = event?.attributes["av.message.digest"];
  return typeof digest === "string" ? digest : null;
}

/** How many values a redaction removed before recording; 0 if none. */
export function redactedIn(event: AuditEvent | undefined): number {
  const replaced = event?.attributes["av.redaction.replaced"];
  return typeof replaced === "number" ? replaced : 0;
}
