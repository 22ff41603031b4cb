/**
 * Logs refusals: the first in full, repeats as a count at every 100th or once a minute, and at the end. Two refusals are the same when the same rule, cap or faults refused them.
 */

import type { Rejected } from "./errors.ts";
import type { Log } from "./log.ts";

const EVERY_N = 100;
const EVERY_MS = 60_000;
const MAX_KINDS = 100; // remembered; a forgotten one is logged in full again

interface Kind {
  latest: Rejected;
  logged_at: number;
  unlogged: number;
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
      this.#kinds.set(key, { latest: rejected, logged_at: now, unlogged: 0 });
      for (const [oldest, one] of this.#kinds) {
        if (this.#kinds.size <= MAX_KINDS) break;
        this.#logRepeats(one, now);
        this.#kinds.delete(oldest);
      }
      return;
    }
    kind.latest = rejected;
    kind.unlogged += 1;
    if (kind.unlogged >= EVERY_N || now - kind.logged_at >= EVERY_MS) this.#logRepeats(kind, now);
  }

  /** Logs what was counted but not logged yet. */
  logRest(now: number): void {
    for (const kind of this.#kinds.values()) this.#logRepeats(kind, now);
  }

  #logRepeats(kind: Kind, now: number): void {
    if (kind.unlogged)
      this.#log(
        "warning",
        `${this.#name}: ${kind.unlogged} more like it, the latest: ${kind.latest.message}`,
      );
    kind.unlogged = 0;
    kind.logged_at = now;
  }
}
