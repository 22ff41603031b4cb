// Verifies the whole of a tenant's log from its first event: each record's exact bytes, each link, each leaf,
// the tree over them. Pure; the worker brings pages of bytes, one event per line. It stops at the first break
// and names it.
import { type Break, Broken, checkRecord, GENESIS } from "./event";
import { Edge, type Hash } from "./merkle";

export interface Signed {
  size: number;
  root: Hash;
}

export class WholeCheck {
  verified = 0;
  broken: Break | null = null;
  private previous = GENESIS;
  private readonly edge = new Edge();
  private readonly decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  /** `heads` are the signed sizes to match: the newest last, which is where it ends. */
  constructor(
    private readonly tenant: string,
    private readonly heads: readonly Signed[],
  ) {}

  get size(): number {
    return this.heads.at(-1)?.size ?? 0;
  }

  get isDone(): boolean {
    return this.broken !== null || this.verified >= this.size;
  }

  /** The next lines; false once no more are needed. */
  feed(bytes: Uint8Array): boolean {
    const whole = this.plain(bytes);
    let start = 0;
    while (start < bytes.length && !this.isDone) {
      const found = bytes.indexOf(10, start);
      const end = found < 0 ? bytes.length : found;
      const line = bytes.subarray(start, end);
      try {
        this.step(line, whole === null ? this.decoder.decode(line) : whole.slice(start, end));
      } catch (error) {
        this.fail(error);
      }
      start = end + 1;
    }
    return !this.isDone;
  }

  /** The record ended before the signed size. */
  end(): void {
    if (this.isDone) return;
    const sentence = `The log ends at event ${this.verified}, but ${this.size} are signed.`;
    this.broken = { sequence_number: this.verified + 1, what: "density", sentence };
  }

  /** An ASCII-only page is decoded at once: then character offsets equal byte offsets. */
  private plain(bytes: Uint8Array): string | null {
    try {
      const text = this.decoder.decode(bytes);
      return text.length === bytes.length ? text : null;
    } catch {
      return null;
    }
  }

  private step(line: Uint8Array, text: string): void {
    const number = this.verified + 1;
    const event = checkRecord(line, text, this.tenant, number);
    if (event.previous_hash !== this.previous)
      throw new Broken("chain", `previous_hash of event ${number} is not the hash of the previous event.`);
    this.previous = event.event_hash;
    this.edge.append(event.leafHash);
    this.verified = number;
    // All heads of that size: a log signed twice with two roots must not pass by the first of them.
    for (const head of this.heads)
      if (head.size === number && !isSame(this.edge.root(), head.root))
        throw new Broken("log", `The first ${number} events do not give the root that was signed over them.`);
  }

  private fail(error: unknown): void {
    const isRoot = error instanceof Broken && error.what === "log";
    const sequence_number = isRoot ? this.verified : this.verified + 1;
    if (error instanceof Broken) {
      this.broken = { sequence_number, what: error.what, sentence: error.message };
    } else {
      const sentence = `The bytes of event ${sequence_number} are not UTF-8 text.`;
      this.broken = { sequence_number, what: "record", sentence };
    }
  }
}

function isSame(one: Hash, other: Hash): boolean {
  for (let n = 0; n < 32; n++) if (one[n] !== other[n]) return false;
  return true;
}
