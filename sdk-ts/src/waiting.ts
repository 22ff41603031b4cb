/**
 * Waiting for what comes true elsewhere. Law: who waits longest is woken first; a wait ends by what it waits for, by
 * its time, or by its signal, and holds the process alive until then (nothing else of the SDK does).
 */

export interface Patience {
  /** How long to wait at most, in seconds; without it as long as it takes. */
  timeout_s?: number | undefined;
  /** Ends the wait with the signal's own reason. */
  signal?: AbortSignal | undefined;
}

/** Longest time a timer of JavaScript has. */
const LONGEST_MS = 2 ** 31 - 1;

export class Bell {
  #watchers = new Set<() => void>();

  ring(): void {
    for (const tell of [...this.#watchers]) tell();
  }

  /** Calls `tell` at every change until the returned function is called. */
  watch(tell: () => void): () => void {
    this.#watchers.add(tell);
    return () => void this.#watchers.delete(tell);
  }
}

/** Waits until `done` or the end of its patience; says whether it is done. */
export function until(
  bell: Bell,
  done: () => boolean,
  { timeout_s, signal }: Patience = {},
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    if (done()) return resolve(true);
    if (timeout_s !== undefined && timeout_s <= 0) return resolve(false);
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      unwatch();
      signal?.removeEventListener("abort", abort);
      settle();
    };
    const abort = (): void => end(() => reject(signal?.reason));
    const over = (): void => end(() => resolve(done()));
    // Without a limit the timer only keeps the process alive: a promise alone does not.
    const timer =
      timeout_s === undefined
        ? setInterval(() => {}, LONGEST_MS)
        : setTimeout(over, Math.min(timeout_s * 1000, LONGEST_MS));
    const unwatch = bell.watch(() => {
      if (done()) end(() => resolve(true));
    });
    signal?.addEventListener("abort", abort);
  });
}

/** How much of `timeout_s` is left, each time it is called. */
export function countdown({ timeout_s, signal }: Patience): () => Patience {
  if (timeout_s === undefined) return () => ({ signal });
  const end = performance.now() + timeout_s * 1000;
  return () => ({ timeout_s: Math.max((end - performance.now()) / 1000, 0), signal });
}

/** A timer that does not keep a Node process alive. */
export function quietly(act: () => void, ms: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(act, Math.min(ms, LONGEST_MS));
  (timer as { unref?: () => void }).unref?.();
  return timer;
}
