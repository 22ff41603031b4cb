// Signed notes (C2SP signed-note, tlog-checkpoint, tlog-cosignature), the reading side: Ed25519 only.
// Anything invalid throws `BadNote` with a sentence; nothing the server sent is quoted in it.
import { bytesOf, hex, same, sha256, unbase64 } from "./sha256";

export const LOG_KEY = 1;
export const WITNESS_KEY = 4;

export class BadNote extends Error {}

export interface Key {
  vkey: string;
  name: string;
  kind: number;
  id: string;
  raw: Uint8Array<ArrayBuffer>;
}

export interface Line {
  name: string;
  id: string;
  signature: Uint8Array<ArrayBuffer>;
}

export interface Checkpoint {
  note: string;
  text: string;
  lines: Line[];
  origin: string;
  size: number;
  root: Uint8Array<ArrayBuffer>;
}

const P = 2n ** 255n - 19n;
const Y8 = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n;
const LOW = new Set([0n, 1n, P - 1n, Y8, P - Y8]);

/** Under a low-order key, messages verify that were never signed. */
function isLowOrder(raw: Uint8Array): boolean {
  const y = BigInt(`0x${hex(Uint8Array.from(raw).reverse())}`) & (2n ** 255n - 1n);
  return LOW.has(y % P);
}

function idOf(name: string, kind: number, raw: Uint8Array): string {
  return hex(sha256(Uint8Array.from([...bytesOf(name), 10, kind, ...raw]))).slice(0, 8);
}

/** `name+hash+base64(type, key)`, with its hash recomputed. */
export function readKey(vkey: string): Key {
  const [name = "", id = "", body = ""] = [...vkey.split("+", 2), vkey.split("+").slice(2).join("+")];
  const raw = unbase64(body);
  if (!name || /[\s+]/.test(name) || raw?.length !== 33)
    throw new BadNote("a verification key reads name+hash+base64; this one does not");
  const [kind, key] = [raw[0] as number, raw.slice(1)];
  if (kind !== LOG_KEY && kind !== WITNESS_KEY) throw new BadNote("unknown key type");
  if (idOf(name, kind, key) !== id)
    throw new BadNote("the hash in this verification key is not that of its name and key");
  if (isLowOrder(key)) throw new BadNote("this key is of low order: anything would verify under it");
  return { vkey, name, kind, id, raw: key };
}

/** Text and signature lines of a note, unchecked. */
export function splitNote(note: string): { text: string; lines: Line[] } {
  if (note.length > 65_536) throw new BadNote("a note has at most 65,536 bytes");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\0-\x09\x0b-\x1f\x7f-\x9f]/.test(note))
    throw new BadNote("a note contains no control characters except line breaks");
  const at = note.lastIndexOf("\n\n");
  if (at < 0 || !note.endsWith("\n") || at + 2 >= note.length)
    throw new BadNote("a note is a text, a blank line and at least one signature line");
  const lines = note.slice(at + 2, -1).split("\n");
  if (lines.length > 64) throw new BadNote("a note has at most 64 signatures");
  return { text: note.slice(0, at + 1), lines: lines.map(readLine) };
}

function readLine(line: string): Line {
  const [, name = "", body = ""] = /^\u2014 (\S+) (\S+)$/u.exec(line) ?? [];
  const raw = unbase64(body);
  if (!name || !raw || raw.length < 5)
    throw new BadNote("a signature line reads: em dash, name, base64 of key hash and signature");
  return { name, id: hex(raw, 0, 4), signature: raw.slice(4) };
}

export function readCheckpoint(note: string): Checkpoint {
  const { text, lines } = splitNote(note);
  const [origin = "", digits = "", body = ""] = text.split("\n");
  const root = unbase64(body);
  if (!origin || !/^(0|[1-9]\d{0,15})$/.test(digits) || !Number.isSafeInteger(Number(digits)))
    throw new BadNote("a checkpoint is an origin, a size and a root, a line each");
  if (root?.length !== 32) throw new BadNote("a root is the base64 of 32 bytes");
  return { note, text, lines, origin, size: Number(digits), root };
}

/** The signature line of a key under a checkpoint, if it has one. */
export function lineOf(checkpoint: Checkpoint, key: Key): Line | undefined {
  return checkpoint.lines.find((line) => line.name === key.name && line.id === key.id);
}

export const NO_ED25519 = "this browser has no Ed25519";

/** Whether the key signed the text; null if the browser cannot verify. */
export async function verifies(key: Key, text: string, signature: Uint8Array): Promise<boolean | null> {
  let message = bytesOf(text);
  let signed = Uint8Array.from(signature);
  if (key.kind === WITNESS_KEY) {
    const seen = seenAt(signature);
    if (seen === null) return false;
    message = bytesOf(`cosignature/v1\ntime ${seen}\n${text}`);
    signed = signed.slice(8);
  }
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) return null;
  try {
    const known = await subtle.importKey("raw", key.raw, { name: "Ed25519" }, false, ["verify"]);
    return await subtle.verify({ name: "Ed25519" }, known, signed, message);
  } catch (error) {
    if ((error as Error).name === "NotSupportedError") return null;
    return false;
  }
}

/** When a witness signed, in seconds; null if it is not a cosignature. */
export function seenAt(signature: Uint8Array): bigint | null {
  return signature.length === 72 ? BigInt(`0x${hex(signature, 0, 8)}`) : null;
}

export function sameKey(one: Key, other: Key): boolean {
  return one.name === other.name && one.kind === other.kind && same(one.raw, other.raw);
}
