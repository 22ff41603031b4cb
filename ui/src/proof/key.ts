// Which log key is trusted: the one pinned when it was first seen, or a successor with proof. A new key is
// vouched for by the event that names it, included in a tree whose head the old key signed
// (ledger/key_rotation.py).

import type { Remembered } from "./browserMemory";
import type { Json } from "./canonical";
import { checkRecord, textOfRecord } from "./event";
import {
  BadNote,
  type Checkpoint,
  type Key,
  lineOf,
  readCheckpoint,
  readKey,
  sameKey,
  verifies,
} from "./note";
import type { Source } from "./source";
import { pathFromTiles } from "./tree";

export interface Believed {
  key: Key;
  how: "pinned" | "first" | "followed";
  /** Rotations proven on the way. */
  followed: { from: string; to: string; at: number }[];
}

/** The trusted key; throws `BadNote` with a sentence if the key changed without proof. */
export async function believedKey(
  source: Source,
  tenant: string,
  keys: readonly { vkey: string; since_sequence: number }[],
  known: Remembered | null,
): Promise<Believed> {
  const current = keys.at(-1);
  if (!current) throw new BadNote("The log has no key yet: nothing of it is signed.");
  const key = readKey(current.vkey);
  if (known === null) return { key, how: "first", followed: [] };
  let reached = readKey(known.vkey);
  if (sameKey(reached, key)) return { key, how: "pinned", followed: [] };
  const followed: Believed["followed"] = [];
  const from = keys.findIndex((one) => one.vkey === known.vkey);
  if (from < 0)
    throw new BadNote(
      "The log is signed by a different key than the one this browser trusts, and the gateway no longer names the old one.",
    );
  for (const next of keys.slice(from + 1)) {
    const after = readKey(next.vkey);
    if (after.name !== reached.name || after.kind !== reached.kind)
      throw new BadNote("The successor key has a different name or type.");
    await follows(source, tenant, reached, next);
    followed.push({ from: reached.id, to: after.id, at: next.since_sequence });
    reached = after;
  }
  return { key: reached, how: "followed", followed };
}

async function follows(
  source: Source,
  tenant: string,
  old: Key,
  next: { vkey: string; since_sequence: number },
): Promise<void> {
  const number = next.since_sequence;
  const note = await source.checkpointOver(number);
  if (note === null) throw new BadNote("The new key is not under a checkpoint of the old one yet.");
  const checkpoint = readCheckpoint(note);
  if (!(await isSignedBy(checkpoint, old)))
    throw new BadNote("The log's key changed, and the old key did not sign the change.");
  const bytes = lineOfBytes(await source.records(number - 1, 1));
  const event = checkRecord(bytes, textOfRecord(bytes, number), tenant, number);
  const body = event.record.body as { event_type?: Json; vkey?: Json; previous_vkeys?: Json } | null;
  const before = body?.previous_vkeys;
  if (
    body?.event_type !== "log_key_rotated" ||
    body.vkey !== next.vkey ||
    !Array.isArray(before) ||
    before.at(-1) !== old.vkey
  )
    throw new BadNote("The rotation event does not name the new key.");
  await pathFromTiles(source, tenant, event.leafHash, number - 1, checkpoint);
}

/** False also if the browser cannot verify: a new key is not trusted on half a proof. */
async function isSignedBy(checkpoint: Checkpoint, key: Key): Promise<boolean> {
  const line = lineOf(checkpoint, key);
  return line !== undefined && (await verifies(key, checkpoint.text, line.signature)) === true;
}

/** The first line of the response, without its line break. */
export function lineOfBytes(bytes: Uint8Array): Uint8Array {
  const end = bytes.indexOf(10);
  return end < 0 ? bytes : bytes.subarray(0, end);
}
