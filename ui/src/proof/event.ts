// One audit event from its exact bytes: canonical form, the seed's event hash, record hash and the log's leaf
// (ruling 34), computed as in ledger/verify.py. Nothing the server says about an event is trusted; everything
// is recomputed.
import { avJson, canonicalObject, escaped, type Json, type JsonObject } from "./canonical";
import { bytesOf, digestInto, hashText, hex, sha256 } from "./sha256";

export const GENESIS = hashText(sha256(bytesOf("agentvault_genesis_v1")));

export type What = "density" | "record" | "tenant" | "chain" | "event_hash" | "leaf" | "log" | "signature";

/** The first thing that does not match, and the sequence number expected there. */
export interface Break {
  sequence_number: number;
  what: What;
  sentence: string;
}

export class Broken extends Error {
  constructor(
    readonly what: What,
    sentence: string,
  ) {
    super(sentence);
  }
}

export interface Checked {
  record: JsonObject;
  sequence_number: number;
  previous_hash: string;
  event_hash: string;
  record_hash: string;
  leaf: string;
  leafHash: Uint8Array;
}

const utf8 = new TextEncoder();
let scratch = new Uint8Array(4096);
const digest = new Uint8Array(32);

/**
 * SHA-256 of a text after a prefix byte (RFC 6962 §2.1 puts a zero before a leaf), without a new array for
 * each.
 */
function digestOfText(text: string, first?: number): void {
  if (text.length * 3 + 1 > scratch.length) scratch = new Uint8Array(text.length * 4);
  const from = first === undefined ? 0 : 1;
  if (first !== undefined) scratch[0] = first;
  const { written } = utf8.encodeInto(text, scratch.subarray(from));
  digestInto(scratch, 0, from + written, digest, 0);
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decodes exactly these bytes: nothing replaced, nothing left out. Throws `Broken` for invalid UTF-8. */
export function textOfRecord(bytes: Uint8Array, number: number): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new Broken("record", `The bytes of event ${number} are not UTF-8 text.`);
  }
}

/** Throws `Broken` unless it is an audit event of this tenant with this number. */
export function checkRecord(bytes: Uint8Array, text: string, tenant: string, number: number): Checked {
  const record = canonicalObject(text);
  if (!record)
    throw new Broken("record", `The bytes of event ${number} are not the RFC 8785 form of an audit event.`);
  const chain = part(record, "hash_chain");
  const attributes = part(record, "attributes");
  const resource = part(record, "resource");
  const { body, span_id, timestamp, trace_id } = record;
  if (!chain || !attributes || !resource || Object.keys(chain).length !== 3) throw notAnEvent(number);
  if (body === undefined || span_id === undefined || timestamp === undefined || trace_id === undefined)
    throw notAnEvent(number);
  const { sequence_number, previous_hash, event_hash } = chain;
  if (typeof previous_hash !== "string" || typeof event_hash !== "string") throw notAnEvent(number);
  if (sequence_number !== number)
    throw new Broken("density", `The record at position ${number} does not carry that sequence number.`);
  if (resource["av.tenant.id"] !== tenant)
    throw new Broken("tenant", `The record of event ${number} names another tenant.`);
  const hashed = {
    body,
    previous_hash,
    recipient: attributes["av.recipient.entity_id"] ?? null,
    sender: attributes["av.sender.entity_id"] ?? null,
    sequence_number,
    span_id,
    timestamp,
    trace_id,
  };
  digestOfText(seedText(hashed, text));
  if (event_hash !== `sha256:${hex(digest)}`)
    throw new Broken("event_hash", `event_hash of event ${number} is not the hash of its content.`);
  digestInto(bytes, 0, bytes.length, digest, 0);
  const record_hash = `sha256:${hex(digest)}`;
  const leaf = `observatory-audit-leaf/v1\n${tenant}\n${number}\n${event_hash}\n${record_hash}\n`;
  digestOfText(leaf, 0);
  const leafHash = digest.slice();
  return { record, sequence_number: number, previous_hash, event_hash, record_hash, leaf, leafHash };
}

/**
 * A parsed record keeps the order it was read in, which is also the seed's order except in two cases:
 * JavaScript moves names that look like numbers to the front, and beyond the basic plane code points sort
 * differently from UTF-16.
 */
function seedText(hashed: JsonObject, whole: string): string {
  return MOVED.test(whole) ? avJson(hashed) : escaped(JSON.stringify(hashed));
}

const MOVED = /"\d+":|[\ud800-\udfff]/;

function part(record: JsonObject, name: string): JsonObject | null {
  const found: Json | undefined = record[name];
  return found !== null && typeof found === "object" && !Array.isArray(found) ? found : null;
}

function notAnEvent(number: number): Broken {
  return new Broken("record", `The record of event ${number} does not have the members of an audit event.`);
}

/** Ids of events carry their number (a UUIDv7 with a counter); null for an id that does not. */
export function numberOf(audit_event_id: string): number | null {
  const found = /^evt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{2}([0-9a-f]{10})$/.exec(
    audit_event_id,
  );
  return found ? Number.parseInt(found[1] as string, 16) : null;
}
