/**
 * `Backlog`: the lines still to be sent, in order: leftover spools, own spool, memory.
 *
 * Rule: everything in the spool is older than everything in memory, so moving memory there moves all of it, the batch
 * in flight first. A line is dropped only when it was answered, or when memory *and* spool are full.
 */

import type { GatewayCredentials } from "./client.ts";
import { BATCH_BYTES, type Delivery } from "./delivery.ts";
import { Lost } from "./errors.ts";
import type { Log } from "./log.ts";
import type { Spool, Spools } from "./spool.ts";
import type { Step } from "./step.ts";

/** Lines in flight, and the steps that wait for their answers. */
export interface Batch {
  lines: string[];
  steps: (Step | undefined)[];
  /** The spool that starts with these lines; null while they are only in memory. */
  spool: Spool | null;
}

export class Backlog {
  lost = 0;
  taken_n = 0;
  settled_n = 0;
  spoolFailed = false;
  #name: string;
  #credentials: GatewayCredentials;
  #delivery: Delivery;
  #spools: Spools | null;
  #log: Log;
  #queue: [string, Step][] = [];
  #queued = 0; // characters in memory
  #flight: Batch | null = null;
  #adopted: Spool[] = [];
  #spool: Spool | null = null;
  #unsynced = false;
  // Steps still referenced, by their line's number in the own spool: memory stays bounded.
  #spooled = new Map<number, WeakRef<Step>>();
  #gone = new FinalizationRegistry<number>((n) => this.#spooled.delete(n));
  #spooled_n = 0;
  #drained_n = 0;

  constructor(
    name: string,
    credentials: GatewayCredentials,
    delivery: Delivery,
    spools: Spools | null,
    log: Log,
  ) {
    this.#name = name;
    this.#credentials = credentials;
    this.#delivery = delivery;
    this.#spools = spools;
    this.#log = log;
  }

  /** Adopts spools that ended processes left; resolves with when to look again, or null. */
  async adopt(): Promise<number | null> {
    if (this.#spools === null) return null;
    const { found, again_ms } = await this.#spools.adopt(
      this.#name,
      this.#credentials.url,
      this.#delivery.spool_bytes,
    );
    this.#adopted.push(...found);
    return again_ms;
  }

  /** The next spool to send. */
  get inSpool(): Spool | null {
    return [...this.#adopted, this.#spool].find((spool) => spool?.pending) ?? null;
  }

  get hasLeftovers(): boolean {
    return this.#adopted.some((spool) => spool.pending);
  }

  /** Lines waiting in memory, without those in flight. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Lines that a kill would lose now: neither answered nor in the spool. */
  get inMemory(): number {
    return (
      this.#queue.length +
      (this.#flight !== null && this.#flight.spool === null ? this.#flight.lines.length : 0)
    );
  }

  /** Queues one line; if memory is full, moves it all to the spool first. False if spool and memory are full. */
  put(line: string, step: Step): boolean {
    if (this.#isFull(line)) {
      if (!this.spoolFailed) this.spill(); // else the sender retries it at intervals: every step would be slow
      if (this.#isFull(line)) {
        this.#lose(step);
        return false;
      }
    }
    this.taken_n += 1;
    this.#queue.push([line, step]);
    this.#queued += line.length;
    return true;
  }

  #isFull(line: string): boolean {
    if (this.#queue.length === 0) return false; // one line is always accepted, however long
    return (
      this.#queue.length >= this.#delivery.max_queue ||
      this.#queued + line.length > this.#delivery.queue_bytes
    );
  }

  /** The oldest lines. They stay in the backlog until `takeBack`. */
  nextBatch(maxLines: number): Batch | null {
    const spool = this.inSpool;
    if (spool !== null) {
      const lines = spool.peek(maxLines, BATCH_BYTES);
      const steps = lines.map((_, n) =>
        spool === this.#spool ? this.#spooled.get(this.#drained_n + n)?.deref() : undefined,
      );
      this.#flight = lines.length ? { lines, steps, spool } : null;
      return this.#flight;
    }
    let [n, size] = [0, 0];
    while (n < this.#queue.length && n < maxLines && size < BATCH_BYTES)
      size += (this.#queue[n++] as [string, Step])[0].length;
    const taken = this.#queue.splice(0, n);
    this.#queued -= size;
    this.#flight = n
      ? { lines: taken.map(([line]) => line), steps: taken.map(([, step]) => step), spool: null }
      : null;
    return this.#flight;
  }

  /** `n` lines of the batch in flight are settled; the others return to their place. */
  takeBack(n: number): void {
    const batch = this.#flight;
    this.#flight = null;
    if (batch === null) return;
    if (batch.spool === null) {
      const rest = batch.lines.slice(n).map((line, i): [string, Step] => [line, batch.steps[n + i] as Step]);
      this.#queue.unshift(...rest);
      this.#queued += rest.reduce((size, [line]) => size + line.length, 0);
      this.settled_n += n;
      return;
    }
    if (n) batch.spool.advance(n);
    if (batch.spool === this.#spool) {
      for (let i = 0; i < n; i++) this.#spooled.delete(this.#drained_n + i);
      this.#drained_n += n;
      this.settled_n += n;
    }
    if (!batch.spool.pending) this.#drop(batch.spool);
  }

  /** Removes a drained spool, also the own one: the next outage starts a new one with its full size. */
  #drop(drained: Spool): void {
    if (drained === this.#spool) {
      this.#spool = null;
      this.#unsynced = this.spoolFailed = false;
    } else this.#adopted = this.#adopted.filter((spool) => spool !== drained);
    drained.release();
  }

  /** Moves memory to the spool as far as it fits: lines in flight first, they are older. */
  spill(): void {
    const flight = this.#flight;
    try {
      if (flight !== null && flight.spool === null) {
        if (this.#toSpool(flight.lines, flight.steps, true) < flight.lines.length) return;
        flight.spool = this.#spool;
      }
      if (this.#queue.length) {
        const lines = this.#queue.map(([line]) => line);
        const n = this.#toSpool(
          lines,
          this.#queue.map(([, step]) => step),
          false,
        );
        for (const [line] of this.#queue.splice(0, n)) this.#queued -= line.length;
      }
      this.recovered();
    } catch (error) {
      this.#warn(`cannot be written (${(error as { code?: string }).code ?? (error as Error).name})`);
    }
  }

  #toSpool(lines: readonly string[], steps: readonly (Step | undefined)[], whole: boolean): number {
    if (this.#spools === null) {
      this.spoolFailed = true;
      return 0;
    }
    this.#spool ??= this.#spools.create(this.#name, this.#credentials.url, this.#delivery.spool_bytes);
    const n = this.#spool.fits(lines);
    if (n < lines.length) this.#warn(`is full (${this.#delivery.spool_bytes} bytes)`);
    if (n === 0 || (whole && n < lines.length)) return 0;
    this.#spool.append(lines.slice(0, n));
    this.#unsynced = true;
    for (const [i, step] of steps.slice(0, n).entries()) {
      if (step === undefined) continue;
      this.#spooled.set(this.#spooled_n + i, new WeakRef(step));
      this.#gone.register(step, this.#spooled_n + i);
    }
    this.#spooled_n += n;
    return n;
  }

  /** The spool that needs a flush to the device; returned once. */
  toSync(): Spool | null {
    const spool = this.#unsynced ? this.#spool : null;
    this.#unsynced = false;
    return spool;
  }

  /** The flush failed: it is retried in the next turn. */
  notSynced(spool: Spool, error: unknown): void {
    this.#unsynced = spool === this.#spool;
    this.#warn(`cannot be flushed (${(error as { code?: string }).code ?? (error as Error).name})`);
  }

  /** Moves everything to the spool and closes it; returns a message about what is left, or an empty string. */
  release(): string {
    this.spill();
    const left: string[] = [];
    for (const spool of [...this.#adopted, this.#spool]) {
      if (spool === null) continue;
      if (spool.pending) {
        left.push(spool.place);
        try {
          spool.syncNow();
        } catch (error) {
          this.notSynced(spool, error);
        }
      }
      spool.release();
    }
    this.#adopted = [];
    this.#spool = null;
    if (!left.length) return "";
    return `messages left in ${left.join(", ")}: ${this.#spooled_n - this.#drained_n}`;
  }

  /** At the very end, if the spool accepts nothing: lines still in memory are lost, and logged. */
  giveUpMemory(): number {
    const left = [
      ...(this.#flight?.spool === null ? this.#flight.steps : []),
      ...this.#queue.map(([, step]) => step),
    ];
    this.#flight = null;
    this.#queue = [];
    this.#queued = 0;
    for (const step of left) if (step !== undefined) this.#lose(step);
    return left.length;
  }

  /** Lines are being sent again: warn again the next time the spool fills up. */
  recovered(): void {
    this.spoolFailed = this.spoolFailed && this.#queue.length > 0;
  }

  #warn(how: string): void {
    if (this.spoolFailed) return;
    this.spoolFailed = true;
    const room = this.#delivery.max_queue - this.#queue.length;
    const where = this.#spools?.place ?? "memory";
    this.#log(
      "warning",
      `${this.#name}: the spool in ${where} ${how}; messages that still fit in memory before any are lost: ${room}`,
    );
  }

  #lose(step: Step): void {
    this.lost += 1;
    if (this.lost === 1 || this.lost % 1000 === 0)
      this.#log("error", `${this.#name}: memory and spool are full: messages lost so far: ${this.lost}`);
    step.outcome = new Lost(`step ${step.step_id} was lost: memory and spool of ${this.#name} were full`);
  }
}
