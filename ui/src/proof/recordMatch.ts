// Whether a proven record is the one shown next to its badge. The proof covers bytes read for it; what the
// page shows came in another response, which a dishonest server could alter alone. Pure.
import { type Json, type JsonObject, jcs } from "./canonical";

export interface About {
  /** The event as the page shows it: every member must match the record. */
  event?: unknown;
  /** Members that the record's body must have. */
  body?: Record<string, unknown>;
}

/** The difference between what is shown and what was proven, as a sentence; null if there is none. */
export function otherThan(record: JsonObject, about: About | undefined): string | null {
  if (about?.event !== undefined && !isSame(about.event, record))
    return "The proven record is not the one shown here: the gateway sent this page something else.";
  const body = (record.body ?? {}) as JsonObject;
  for (const [name, value] of Object.entries(about?.body ?? {}))
    if (!Object.hasOwn(body, name) || !isSame(value, body[name]))
      return `The proven record differs from what is shown here: its ${name.replaceAll("_", " ")} is another.`;
  return null;
}

function isSame(shown: unknown, proven: Json | undefined): boolean {
  try {
    return jcs(shown as Json) === jcs(proven as Json);
  } catch {
    return false; // no value of a record
  }
}
