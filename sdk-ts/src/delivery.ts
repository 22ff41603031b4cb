/** Delivery settings: bounds and timeouts. The defaults suit an agent; tests may use others. */

import type { Unsent } from "./client.ts";

export interface Delivery {
  /** Messages in memory; beyond it, or beyond `queue_bytes`, all of memory goes to the spool. */
  max_queue: number;
  queue_bytes: number;
  batch_lines: number;
  linger_s: number;
  timeout_s: number;
  close_timeout_s: number;
  spool_bytes: number;
  backoff_s: number;
  max_backoff_s: number;
  /** How often a failing disk is retried. */
  disk_retry_s: number;
  /** How often the channel is pinged. */
  ping_s: number;
}

export const DELIVERY: Readonly<Delivery> = {
  max_queue: 10_000,
  queue_bytes: 64 << 20,
  batch_lines: 200,
  linger_s: 0.05,
  timeout_s: 10,
  close_timeout_s: 5,
  spool_bytes: 256 << 20,
  backoff_s: 0.25,
  max_backoff_s: 30,
  disk_retry_s: 1,
  ping_s: 20,
};

export const BATCH_BYTES = 4 << 20;

/** Uses the system's randomness: an agent may have replaced `Math.random`. */
export const systemJitter = (): number => (crypto.getRandomValues(new Uint32Array(1))[0] as number) / 2 ** 32;

/** How long to wait before the next request: a little more than `Retry-After`, else exponential. */
export function backoffS(delivery: Delivery, failures: number, why: Unsent, jitter: () => number): number {
  if (why.retry_after_s !== undefined) return why.retry_after_s * (1 + jitter() / 4);
  const doubled = delivery.backoff_s * 2 ** Math.min(failures - 1, 20);
  const longest = delivery.max_backoff_s;
  return (why.needs_a_person ? longest : Math.min(doubled, longest)) * (0.5 + jitter() / 2);
}
