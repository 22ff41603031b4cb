// Test helpers: a small log with its own key, and a source that serves it, which tests tamper with.
import { avJson, type JsonObject, jcs } from "./canonical";
import { GENESIS } from "./event";
import { Edge, type Hash, nodeHash } from "./merkle";
import { base64, bytesOf, hashText, hex, sha256 } from "./sha256";
import type { Source } from "./source";

export const TENANT = "tnt_1";
export const ORIGIN = `observatory.test/0/${TENANT}`;

export interface Signer {
  vkey: string;
  sign(text: string, seen?: number): Promise<string>;
}

export async function signer(name = ORIGIN, kind = 1): Promise<Signer> {
  const pair = (await crypto.subtle.generateKey({ name: "Ed25519" }, true, [
    "sign",
    "verify",
  ])) as CryptoKeyPair;
  const raw = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  const id = sha256(Uint8Array.from([...bytesOf(name), 10, kind, ...raw])).slice(0, 4);
  return {
    vkey: `${name}+${hex(id)}+${base64(Uint8Array.from([kind, ...raw]))}`,
    async sign(text, seen) {
      const message = seen === undefined ? text : `cosignature/v1\ntime ${seen}\n${text}`;
      const signed = new Uint8Array(
        await crypto.subtle.sign({ name: "Ed25519" }, pair.privateKey, bytesOf(message)),
      );
      const time = new Uint8Array(8);
      if (seen !== undefined) new DataView(time.buffer).setBigUint64(0, BigInt(seen));
      const body = Uint8Array.from([...id, ...(seen === undefined ? [] : time), ...signed]);
      return `\u2014 ${name} ${base64(body)}\n`;
    },
  };
}

/** Ids carry their number in the last 40 bits. */
export const idOf = (number: number) =>
  `evt_01900000-0000-7000-8000-00${number.toString(16).padStart(10, "0")}`;

export function chain(count: number, bodies: Record<number, JsonObject> = {}): string[] {
  const lines: string[] = [];
  let previous = GENESIS;
  for (let number = 1; number <= count; number++) {
    const [span_id, trace_id] = [number.toString(16).padStart(16, "0"), "a".repeat(32)];
    const timestamp = "2026-02-16T14:32:01.123456789Z";
    const body = bodies[number] ?? { event_type: "message_delivered", summary: `café ${number}` };
    const sender = "agt_1";
    const text = avJson({
      body,
      previous_hash: previous,
      recipient: null,
      sender,
      sequence_number: number,
      span_id,
      timestamp,
      trace_id,
    });
    const event_hash = hashText(sha256(bytesOf(text)));
    lines.push(
      jcs({
        attributes: { "av.sender.entity_id": sender },
        audit_event_id: idOf(number),
        body,
        hash_chain: { event_hash, previous_hash: previous, sequence_number: number },
        resource: { "av.tenant.id": TENANT },
        severity_number: 9,
        span_id,
        timestamp,
        trace_id,
      }),
    );
    previous = event_hash;
  }
  return lines;
}

export function leafOf(line: string, number: number): Hash {
  const { event_hash } = (JSON.parse(line) as { hash_chain: { event_hash: string } }).hash_chain;
  const record = hashText(sha256(bytesOf(line)));
  return sha256(bytesOf(`\0observatory-audit-leaf/v1\n${TENANT}\n${number}\n${event_hash}\n${record}\n`));
}

export function rootOf(leaves: readonly Hash[]): Hash {
  const edge = new Edge();
  for (const leaf of leaves) edge.append(leaf);
  return edge.root();
}

export const textOf = (size: number, root: Hash) => `${ORIGIN}\n${size}\n${base64(root)}\n`;

/** What a gateway would serve for these lines: a test may replace every member. */
export class Log implements Source {
  lines: string[];
  leaves: Hash[];
  size: number;
  cosigners: { name: string; signer: Signer; lies?: boolean }[] = [];
  over: string | null = null;
  rotated: { vkey: string; since_sequence: number }[] = [];

  constructor(
    lines: string[],
    public by: Signer,
  ) {
    this.lines = lines;
    this.leaves = lines.map((line, n) => leafOf(line, n + 1));
    this.size = lines.length;
  }

  async note(size = this.size, signers: Signer[] = [this.by]): Promise<string> {
    const text = textOf(size, rootOf(this.leaves.slice(0, size)));
    const lines = await Promise.all(signers.map((one) => one.sign(text)));
    const more = await Promise.all(
      this.cosigners.map(({ signer: one, lies }) => one.sign(lies ? `${text}x` : text, 1_771_252_321)),
    );
    return `${text}\n${lines.join("")}${more.join("")}`;
  }

  async records(after: number, limit: number) {
    return bytesOf(
      this.lines
        .slice(after, after + limit)
        .map((line) => `${line}\n`)
        .join(""),
    );
  }
  checkpoint(_tenant: string): Promise<string> {
    return this.note();
  }
  async checkpointOver(_number: number): Promise<string | null> {
    return this.over;
  }
  async tile(_tenant: string, level: number, tile: number, width: number) {
    let layer = this.leaves.slice(0, this.size);
    for (let n = 0; n < 8 * level; n++)
      layer = Array.from({ length: Math.floor(layer.length / 2) }, (_, i) =>
        nodeHash(layer[2 * i] as Hash, layer[2 * i + 1] as Hash),
      );
    const hashes = layer.slice(256 * tile, 256 * tile + width);
    return Uint8Array.from(hashes.flatMap((hash) => [...hash]));
  }
  async keys() {
    return { tenant: TENANT, keys: [...this.rotated, { vkey: this.by.vkey, since_sequence: this.since }] };
  }
  since = 0;
  async witnesses() {
    return this.cosigners.map(({ name, signer: one }) => ({ name, vkey: one.vkey }));
  }
}
