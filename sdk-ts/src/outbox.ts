/**
 * `Outbox`: one sender that delivers a backlog of messages to the gateway.
 *
 * Rule: `put` never waits for the network or for a flush to disk; lines are sent in order; a line the gateway has
 * answered is never sent again, an unanswered line is never dropped. A process that ends sends what it can and spools
 * the rest: an unreachable gateway does not keep it alive.
 */

import { Backlog, type Batch } from "./backlog.ts";
import {
  type Answer,
  type GatewayCredentials,
  isAccepted,
  isFinal,
  type Outcome,
  send,
  type Unsent,
} from "./client.ts";
import { backoffS, type Delivery, systemJitter } from "./delivery.ts";
import { Rejected } from "./errors.ts";
import type { Log } from "./log.ts";
import type { Receiver } from "./receiver.ts";
import { Refusals } from "./refusals.ts";
import type { Spools } from "./spool.ts";
import type { Step } from "./step.ts";
import { ChangeNotifier, type Patience, quietly, until } from "./waiting.ts";

const MAX_REJECTIONS = 1000;

/** The platform's hook that closes outboxes when the process or the page ends. */
export interface Ending {
  register(outbox: Outbox): void;
  unregister(outbox: Outbox): void;
}

export class Outbox {
  readonly changes = new ChangeNotifier();
  readonly receivers = new Set<Receiver>(); // of the agents that use it: they close with it
  readonly rejections: Rejected[] = [];
  closed = false;
  /** The gateway answers but refuses the key. */
  keyRefused = false;
  /** Consecutive send failures; 0 when the last attempt succeeded. */
  failures = 0;
  #name: string;
  #credentials: GatewayCredentials;
  #delivery: Delivery;
  #backlog: Backlog;
  #log: Log;
  #ending: Ending;
  #refusals: Refusals;
  #onReject: ((rejected: Rejected) => void) | undefined;
  #work = new ChangeNotifier();
  #stop = new AbortController();
  #runner: Promise<void> | null = null;
  #adopting = true;
  #closing = false;
  #away = false;
  #patient = false;
  #urgent = 0; // waiting flushes: no lingering
  #queuedAt = 0;
  #notBefore = 0;
  #diskRetryAt = 0;
  #batchLines: number;
  #complaint = "";

  constructor(
    name: string,
    credentials: GatewayCredentials,
    delivery: Delivery,
    {
      spools,
      log,
      ending,
      onReject,
    }: {
      spools: Spools | null;
      log: Log;
      ending: Ending;
      onReject?: ((rejected: Rejected) => void) | undefined;
    },
  ) {
    this.#name = name;
    this.#credentials = credentials;
    this.#delivery = delivery;
    this.#backlog = new Backlog(name, credentials, delivery, spools, log);
    this.#batchLines = delivery.batch_lines;
    this.#log = log;
    this.#ending = ending;
    this.#refusals = new Refusals(name, log);
    this.#onReject = onReject;
    ending.register(this);
    this.#runner = this.#run();
  }

  // Called by the agent.

  /** Lines dropped because memory and spool were both full. */
  get lost(): number {
    return this.#backlog.lost;
  }

  /** Lines that a kill would lose now: neither answered nor in the spool. */
  get in_memory(): number {
    return this.#backlog.inMemory;
  }

  /** Queues one line. Returns at once, whatever the gateway does. */
  put(line: string, step: Step): void {
    if (!this.#backlog.put(line, step)) {
      this.changes.notify();
      return;
    }
    if (this.closed) {
      this.#backlog.release(); // added while the process ends: directly to disk, sent at the next start
      if (this.#backlog.giveUpMemory()) this.changes.notify();
    } else if (this.#backlog.waiting === 1) {
      this.#queuedAt = performance.now();
      this.#work.notify();
    } else if (this.#backlog.waiting === this.#delivery.batch_lines) this.#work.notify();
  }

  /** Sends the queue now, without lingering, and retries an unreachable gateway; a `Retry-After` is still
   * respected. */
  hurry(): void {
    this.#queuedAt = Number.NEGATIVE_INFINITY;
    if (!this.#patient) this.#notBefore = 0;
    this.#work.notify();
  }

  /** Waits until all lines queued before are answered; false if that takes longer than `timeout_s`. */
  async flush(patience: Patience = {}): Promise<boolean> {
    const backlog = this.#backlog;
    const target = backlog.taken_n;
    const done = (): boolean => backlog.settled_n >= target && !this.#adopting && !backlog.hasLeftovers;
    this.#urgent += 1;
    this.#work.notify();
    try {
      await until(this.changes, () => done() || this.closed, patience);
      return done();
    } finally {
      this.#urgent -= 1;
    }
  }

  /** Sends what can be sent within `timeout_s`, spools the rest; true if nothing is left. */
  async close(timeoutS = this.#delivery.close_timeout_s): Promise<boolean> {
    if (this.closed) return this.#backlog.settled_n >= this.#backlog.taken_n;
    await Promise.all([...this.receivers].map((receiver) => receiver.close()));
    this.#closing = true;
    this.#work.notify();
    const runner = this.#runner;
    if (runner !== null)
      await Promise.race([runner, new Promise((resolve) => quietly(() => resolve(null), timeoutS * 1000))]);
    return this.closed ? this.#backlog.settled_n >= this.#backlog.taken_n : this.endNow();
  }

  /** Closes at once without sending: everything goes to the spool. */
  endNow(): boolean {
    if (this.closed) return true;
    this.closed = true;
    const left = this.#backlog.release();
    const lost = this.#backlog.giveUpMemory();
    this.#stop.abort();
    this.#ending.unregister(this);
    this.#work.notify();
    this.changes.notify();
    this.#refusals.logRest(performance.now());
    if (left) this.#log("warning", `${this.#name}: ${left}; they will be sent at its next start`);
    return !left && !lost;
  }

  /** Moves memory to the spool now: the page may end in a moment, or return. */
  spill(): void {
    this.#backlog.spill();
  }

  // The sender loop.

  async #run(): Promise<void> {
    await this.#adopt();
    while (!this.#isOver()) {
      try {
        await this.#turn();
      } catch (error) {
        // The loop: log, wait, continue; no line is lost.
        this.#log("error", `${this.#name}: the sender failed; retrying (${error})`);
        this.#putOff({ reason: String((error as Error | null)?.name ?? error) });
      }
    }
  }

  async #adopt(): Promise<void> {
    try {
      const again = await this.#backlog.adopt();
      if (again !== null && !this.closed)
        quietly(() => void this.#adopt().then(() => this.#work.notify()), again);
    } catch (error) {
      this.#log("warning", `${this.#name}: spools of an earlier process could not be read (${error})`);
    }
    this.#adopting = false;
    if (this.closed) this.#backlog.release(); // closed before they were found: release them
    this.changes.notify();
  }

  /** Waits for work and does one piece of it. */
  async #turn(): Promise<void> {
    const pause = this.#pauseMs();
    if (pause !== 0) return this.#rest(pause);
    const backlog = this.#backlog;
    let batch: Batch | null = null;
    if (this.#putOffMs() === 0) {
      batch = backlog.nextBatch(this.#batchLines);
      this.#queuedAt = performance.now();
    } else {
      backlog.spill();
      this.#diskRetryAt = performance.now() + this.#delivery.disk_retry_s * 1000;
      this.changes.notify();
    }
    const unsynced = backlog.toSync();
    if (unsynced !== null)
      await unsynced.sync().catch((error: unknown) => {
        if (!this.closed) backlog.notSynced(unsynced, error); // else `endNow` has synced and released it
      });
    if (batch !== null && !this.closed)
      this.#handle(
        batch,
        await send(this.#credentials, batch.lines, this.#delivery.timeout_s, this.#stop.signal),
      );
  }

  /** Waits until something changes or the pause is over; only a batch about to be sent keeps the process alive. */
  #rest(pauseMs: number | null): Promise<void> {
    return new Promise((resolve) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const wake = (): void => {
        clearTimeout(timer);
        unwatch();
        resolve();
      };
      const unwatch = this.#work.watch(wake);
      if (pauseMs !== null) timer = this.#putOffMs() > 0 ? quietly(wake, pauseMs) : setTimeout(wake, pauseMs);
    });
  }

  #isOver(): boolean {
    const hasWork = this.#backlog.waiting > 0 || this.#backlog.inSpool !== null;
    return this.closed || (this.#closing && (this.#putOffMs() > 0 || !hasWork));
  }

  #putOffMs(): number {
    return Math.max(this.#notBefore - performance.now(), 0);
  }

  /** How long to wait before the next piece of work; 0: now, null: until something changes. */
  #pauseMs(): number | null {
    const { waiting, inSpool, spoolFailed } = this.#backlog;
    let lingering = 0;
    if (waiting > 0 && waiting < this.#delivery.batch_lines && !this.#urgent && !this.#closing)
      lingering = Math.max(this.#delivery.linger_s * 1000 - (performance.now() - this.#queuedAt), 0);
    const putOff = this.#putOffMs();
    if (putOff > 0) {
      if (waiting && spoolFailed) lingering = Math.max(this.#diskRetryAt - performance.now(), 0);
      return waiting && (this.#away || spoolFailed) ? Math.min(putOff, lingering) : putOff;
    }
    if (inSpool !== null) return 0;
    return waiting ? lingering : null;
  }

  #handle(batch: Batch, outcome: Outcome): void {
    if ("answers" in outcome) this.#settle(batch, outcome.answers.slice(0, batch.lines.length));
    else if (outcome.refused === undefined) this.#putOff(outcome);
    else if (batch.lines.length === 1)
      this.#settle(batch, [
        { code: outcome.refused, reason: "the gateway refused the request that contained it" },
      ]);
    else {
      // One line is the cause: smaller batches find it.
      this.#batchLines = Math.max(Math.floor(batch.lines.length / 2), 1);
      if (!this.closed) this.#backlog.takeBack(0);
    }
  }

  #settle(batch: Batch, answers: readonly Answer[]): void {
    const end = answers.findIndex((answer) => !isFinal(answer));
    const final = end < 0 ? answers : answers.slice(0, end);
    const refused: Rejected[] = [];
    for (const [n, answer] of final.entries()) {
      const step = batch.steps[n];
      if (step !== undefined) step.outcome = answer;
      if (!isAccepted(answer)) refused.push(new Rejected(answer, step?.step_id ?? answer.step_id ?? null));
    }
    for (const rejected of refused) this.#refusals.note(rejected, performance.now());
    this.rejections.push(...refused);
    this.rejections.splice(0, this.rejections.length - MAX_REJECTIONS);
    if (!this.closed) {
      this.#backlog.takeBack(final.length);
      this.#backlog.recovered();
      if (final.length) {
        this.failures = 0;
        this.keyRefused = false;
        this.#away = false;
        this.#complaint = "";
      }
      this.#batchLines = Math.min(this.#batchLines * 2, this.#delivery.batch_lines);
    }
    this.changes.notify();
    this.#notifyRejections(refused);
    if (final.length < batch.lines.length) this.#putOff({ reason: "the gateway could not take every line" });
  }

  /** Nothing was accepted: log it once, wait longer each time and, unless the gateway is only busy, spool. */
  #putOff(why: Unsent): void {
    if (this.closed) return;
    this.failures += 1;
    this.keyRefused = why.key_refused ?? false;
    this.#patient = why.retry_after_s !== undefined;
    this.#notBefore = performance.now() + backoffS(this.#delivery, this.failures, why, systemJitter) * 1000;
    this.#backlog.takeBack(0);
    this.#away ||= !why.busy;
    if (this.#away) this.#backlog.spill();
    this.changes.notify();
    if (why.reason !== this.#complaint) {
      this.#complaint = why.reason;
      this.#log(
        why.needs_a_person ? "error" : "warning",
        `${this.#name}: ${why.reason}; messages are stored and sent later`,
      );
    }
  }

  #notifyRejections(refused: readonly Rejected[]): void {
    for (const rejected of refused) {
      try {
        this.#onReject?.(rejected);
      } catch (error) {
        this.#log("error", `${this.#name}: on_reject failed (${error})`); // its failure must not stop delivery
      }
    }
  }
}
