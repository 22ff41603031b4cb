// Whether a proven record is the one of what is shown beside its badge. A proof is of bytes that were read for it; what a
// page shows came in another answer, and a server that lies may bend that one alone. Pure.
import { type Json, type JsonObject, jcs } from "./canonical";

export interface About {
  /** The event as the page shows it: every member must be that of the record. */
  event?: unknown;
  /** Members that the record's body must have. */
  body?: Record<string, unknown>;
}

/** What is shown and is not what was proven, as a sentence; null when it is. */
export function otherThan(record: JsonObject, about: About | undefined): string | null {
  if (about?.event !== undefined && !isSame(about.event, record))
    return "The record that was proven is not the one shown here: the gateway told this page something else.";
  const body = (record.body ?? {}) as JsonObject;
  for (const [name, value] of Object.entries(about?.body ?? {}))
    if (!Object.hasOwn(body, name) || !isSame(value, body[name]))
      return `The record that was proven tells of something else than is shown here: its ${name.replaceAll("_", " ")} is another.`;
  return null;
}

function isSame(shown: unknown, proven: Json | undefined): boolean {
  try {
    return jcs(shown as Json) === jcs(proven as Json);
  } catch {
    return false; // no value of a record
  }
}
