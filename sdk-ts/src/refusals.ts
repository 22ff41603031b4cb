/**
 * How often a refusal is told to the log: the first in full, its repeats as a count, at every 100th or once a minute,
 * and at the end. Two refusals are the same when the same rule, cap or faults refused them.
 */

import type { Rejected } from "./errors.ts";
import type { Log } from "./log.ts";

const EVERY_N = 100;
const EVERY_MS = 60_000;
const MOST_KINDS = 100; // remembered; one that was forgotten is told in full again

interface Kind {
  latest: Rejected;
  told_at: number;
  untold: number;
}

export class Refusals {
  #kinds = new Map<string, Kind>();
  #name: string;
  #log: Log;

  constructor(name: string, log: Log) {
    this.#name = name;
    this.#log = log;
  }

  note(rejected: Rejected, now: number): void {
    const { code, reason, cap, rule_id, faults } = rejected.answer;
    const key = JSON.stringify([code, reason, cap, rule_id, faults]);
    const kind = this.#kinds.get(key);
    if (kind === undefined) {
      this.#log("warning", `${this.#name}: ${rejected.message}`);
      this.#kinds.set(key, { latest: rejected, told_at: now, untold: 0 });
      for (const [oldest, one] of this.#kinds) {
        if (this.#kinds.size <= MOST_KINDS) break;
        this.#tell(one, now);
        this.#kinds.delete(oldest);
      }
      return;
    }
    kind.latest = rejected;
    kind.untold += 1;
    if (kind.untold >= EVERY_N || now - kind.told_at >= EVERY_MS) this.#tell(kind, now);
  }

  /** What was counted and not yet told. */
  tellRest(now: number): void {
    for (const kind of this.#kinds.values()) this.#tell(kind, now);
  }

  #tell(kind: Kind, now: number): void {
    if (kind.untold)
      this.#log("warning", `${this.#name}: ${kind.untold} more like it, the latest: ${kind.latest.message}`);
    kind.untold = 0;
    kind.told_at = now;
  }
}
