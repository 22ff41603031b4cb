/**
 * Waiting for a condition. Rule: the longest waiter is woken first; a wait ends by its condition, its timeout or its
 * signal, and keeps the process alive until then (nothing else in the SDK does).
 */

export interface Patience {
  /** Maximum wait in seconds; without it there is no limit. */
  timeout_s?: number | undefined;
  /** Ends the wait with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** The longest delay of a JavaScript timer. */
const MAX_MS = 2 ** 31 - 1;

export class ChangeNotifier {
  #watchers = new Set<() => void>();

  notify(): void {
    for (const callback of [...this.#watchers]) callback();
  }

  /** Calls `callback` at every change until the returned function is called. */
  watch(callback: () => void): () => void {
    this.#watchers.add(callback);
    return () => void this.#watchers.delete(callback);
  }
}

/** Waits until `done`, the timeout or the signal; resolves with whether it is done. */
export function until(
  changes: ChangeNotifier,
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
        ? setInterval(() => {}, MAX_MS)
        : setTimeout(over, Math.min(timeout_s * 1000, MAX_MS));
    const unwatch = changes.watch(() => {
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
export function quietly(action: () => void, ms: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(action, Math.min(ms, MAX_MS));
  (timer as { unref?: () => void }).unref?.();
  return timer;
}
