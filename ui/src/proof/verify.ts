// The proof of one audit event, computed in the browser: record → leaf → path → signed root → key →
// remembered checkpoint → witnesses. Each step is reported as it completes; the first broken one ends the
// proof. No conclusion of the server is trusted.

import { Problem } from "~/api/client";
import { plural } from "~/plural";
import { clockToSecond } from "~/widgets/clock";
import { type Memory, type Remembered, remember } from "./browserMemory";
import { Broken, type Checked, checkRecord, numberOf, textOfRecord } from "./event";
import { believedKey, lineOfBytes } from "./key";
import {
  BadNote,
  type Checkpoint,
  type Key,
  lineOf,
  NO_ED25519,
  readCheckpoint,
  readKey,
  sameKey,
  seenAt,
  verifies,
} from "./note";
import { base64, hex } from "./sha256";
import type { Source } from "./source";
import { BadTree, goesOnFrom, type PathPart, pathFromTiles } from "./tree";

export const STEPS = {
  record: "Record and leaf",
  path: "Path to the root",
  signature: "Signature",
  key: "Key",
  before: "Consistency",
  witnesses: "Witnesses",
} as const;
export type StepId = keyof typeof STEPS;
export type Outcome = "held" | "broken" | "unchecked" | "warned";

export interface Step {
  id: StepId;
  outcome: Outcome;
  sentence: string;
}

export interface Proof {
  audit_event_id: string;
  state: "verified" | "broken" | "unchecked";
  steps: Step[];
  event: Checked | null;
  path: PathPart[];
  checkpoint: { size: number; root: string; note: string } | null;
  at: string;
}

type OnProgress = (proof: Proof) => void;
const count = plural;

/** A fetch that failed, as opposed to a check that failed. */
class Unasked extends Error {}

export async function verifyEvent(
  audit_event_id: string,
  source: Source,
  memory: Memory,
  witnessKeys: OnProgress = () => {},
): Promise<Proof> {
  const proof: Proof = {
    audit_event_id,
    state: "unchecked",
    steps: [],
    event: null,
    path: [],
    checkpoint: null,
    at: new Date().toISOString(),
  };
  let now: StepId = "record";
  const say = (outcome: Outcome, sentence: string) => {
    proof.steps.push({ id: now, outcome, sentence });
    witnessKeys({ ...proof, steps: [...proof.steps] });
  };
  try {
    const { tenant, keys } = await asked(source.keys());
    // Before any checkpoint is requested: what another tab sees in the meantime is newer, and no rollback.
    const known = memory.recall(tenant);
    const event = await readEvent(audit_event_id, tenant, source);
    proof.event = event;
    const bytes = event.record_hash.slice(7, 15);
    say(
      "held",
      `The exact bytes are canonical and give record ${bytes}…, event hash and leaf ${hex(event.leafHash).slice(0, 8)}….`,
    );

    now = "path";
    const checkpoint = await covering(source, tenant, event.sequence_number);
    proof.checkpoint = { size: checkpoint.size, root: base64(checkpoint.root), note: checkpoint.note };
    const found = await asked(
      pathFromTiles(source, tenant, event.leafHash, event.sequence_number - 1, checkpoint),
    );
    proof.path = found.parts;
    say(
      "held",
      `${count(found.parts.length, "hash", "hashes")} out of ${count(found.tiles, "tile", "tiles")} lead from entry ${(event.sequence_number - 1).toLocaleString("en")} to the root over ${count(checkpoint.size, "entry", "entries")}.`,
    );

    now = "signature";
    const isSigned = await signedNow(checkpoint, tenant, keys, known);
    if (isSigned === null) say("unchecked", `Signature not checked: ${NO_ED25519}.`);
    else say("held", `The checkpoint is signed by ${isSigned.name}, key ${isSigned.id} (Ed25519).`);

    now = "key";
    const believed = await asked(believedKey(source, tenant, keys, known));
    if (isSigned && !sameKey(isSigned, believed.key))
      throw new BadNote("The signing key is not the trusted one.");
    if (believed.how === "pinned")
      say("held", `It is the key this browser has trusted since ${known?.since.slice(0, 10)}.`);
    else if (believed.how === "first")
      say(
        "warned",
        "First seen (TOFU): compare its fingerprint once with one from another source. This browser trusts the key from now on.",
      );
    else
      say(
        "warned",
        `The key changed since this browser saw it; ${count(believed.followed.length, "rotation is", "rotations are")} proven: the old key signed a tree that names the new one (event ${believed.followed.map((one) => one.at).join(", ")}).`,
      );

    now = "before";
    const older = known ? readCheckpoint(known.note) : null;
    if (older) {
      await asked(goesOnFrom(source, tenant, older, checkpoint));
      say("held", `The log extends the ${count(older.size, "entry", "entries")} this browser saw before.`);
    } else say("unchecked", "No earlier checkpoint is known; this one is remembered from now on.");

    now = "witnesses";
    const cosigned = await cosignatures(source, checkpoint, known);
    say(cosigned.outcome, cosigned.sentence);
    if (isSigned !== null) {
      proof.state = "verified";
      remember(memory, tenant, grown(known, believed.key, believed.how, checkpoint, cosigned.keys));
    }
  } catch (error) {
    if (error instanceof Unasked) say("unchecked", error.message);
    else if (error instanceof Broken || error instanceof BadTree || error instanceof BadNote) {
      proof.state = "broken";
      say("broken", error.message);
    } else say("unchecked", "The gateway's response could not be parsed: nothing is proven.");
  }
  return { ...proof, steps: [...proof.steps] };
}

/**
 * An unreachable or refusing gateway proves nothing either way; one whose log is broken reports it itself.
 */
async function asked<T>(question: Promise<T>): Promise<T> {
  try {
    return await question;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.reason === "log_broken")
      throw new BadTree("The gateway cannot give the hashes that were signed.");
    throw new Unasked(error.message);
  }
}

async function readEvent(id: string, tenant: string, source: Source): Promise<Checked> {
  const number = numberOf(id);
  if (number === null) throw new Unasked("This is not an audit event id.");
  const bytes = lineOfBytes(await asked(source.records(number - 1, 1)));
  if (bytes.length === 0) throw new Unasked("No audit event of this tenant has that id.");
  const event = checkRecord(bytes, textOfRecord(bytes, number), tenant, number);
  if (event.record.audit_event_id !== id) throw new Unasked("No audit event of this tenant has that id.");
  return event;
}

/** The newest checkpoint, polled for a moment while it does not include the event yet. */
async function covering(source: Source, tenant: string, number: number): Promise<Checkpoint> {
  for (let tries = 0; tries < 4; tries++) {
    const found = readCheckpoint(await asked(source.checkpoint(tenant)));
    if (found.size >= number) return found;
    await new Promise((done) => setTimeout(done, 600));
  }
  throw new Unasked(
    "Recorded, but not under a signed checkpoint yet: it is sealed within a second; try again.",
  );
}

/** The current key whose signature is under the checkpoint; null if the browser cannot verify. */
export async function signedNow(
  checkpoint: Checkpoint,
  tenant: string,
  keys: readonly { vkey: string }[],
  known: Remembered | null,
): Promise<Key | null> {
  if (!checkpoint.origin.endsWith(`/${tenant}`)) throw new BadNote("The checkpoint belongs to another log.");
  const named = keys.at(-1)?.vkey ?? known?.vkey;
  if (!named) throw new BadNote("The log has no key yet.");
  const key = readKey(named);
  if (key.name !== checkpoint.origin) throw new BadNote("The key's name is not that of the log.");
  const line = lineOf(checkpoint, key);
  if (!line) throw new BadNote("The current key did not sign this checkpoint.");
  const holds = await verifies(key, checkpoint.text, line.signature);
  if (holds === false) throw new BadNote("The signature under the checkpoint is wrong.");
  return holds ? key : null;
}

interface Cosigned {
  outcome: Outcome;
  sentence: string;
  keys: Record<string, string>;
}

/**
 * Signature lines of known witnesses; the newest checkpoint may be a moment ahead of them, which is no break.
 */
async function cosignatures(
  source: Source,
  checkpoint: Checkpoint,
  known: Remembered | null,
): Promise<Cosigned> {
  const onProgress = await asked(source.witnesses());
  const keys: Record<string, string> = { ...known?.witnesses };
  const seen: string[] = [];
  let isNew = false;
  for (const { name, vkey } of onProgress) {
    const key = readKey(vkey);
    const pinned = keys[key.name];
    if (pinned !== undefined && pinned !== vkey)
      return {
        outcome: "warned",
        sentence: `The key of witness ${name} differs from the one this browser knows; not counted.`,
        keys,
      };
    keys[key.name] = vkey;
    const line = lineOf(checkpoint, key);
    if (!line) continue;
    const holds = await verifies(key, checkpoint.text, line.signature);
    if (holds === false) throw new BadNote(`The cosignature of witness ${name} is wrong.`);
    const at = seenAt(line.signature);
    if (!holds || at === null) continue;
    seen.push(`${name} at ${clockToSecond(Number(at) * 1000)}`);
    isNew ||= pinned === undefined;
  }
  const cosigned = `Cosigned by ${seen.join(", ")}.`;
  // The gateway names the witnesses; one never seen before may be the gateway itself.
  if (isNew)
    return {
      outcome: "warned",
      sentence: `${cosigned} One of these keys is new to this browser; compare it once with the witness's own.`,
      keys,
    };
  if (seen.length > 0) return { outcome: "held", sentence: cosigned, keys };
  const sentence = onProgress.length
    ? `None of ${count(onProgress.length, "witness", "witnesses")} has cosigned this checkpoint yet; see Chain and log for the state of each.`
    : "There is no witness: no third party has seen this checkpoint.";
  return { outcome: "unchecked", sentence, keys };
}

export function grown(
  known: Remembered | null,
  key: Key,
  how: "pinned" | "first" | "followed",
  checkpoint: Checkpoint,
  witnesses: Record<string, string>,
): Remembered {
  const since = how === "pinned" && known ? known.since : new Date().toISOString();
  return { vkey: key.vkey, since, size: checkpoint.size, note: checkpoint.note, witnesses };
}
