// Latencies on one scale: percentiles from 1 ms to beyond a minute fit only by their logarithm. Pure.

/** The scale's ends: from 1 ms to the next round step above the slowest. */
export function topOf(values: readonly number[]): number {
  const most = Math.max(10, ...values);
  return 10 ** Math.ceil(Math.log10(most));
}

/** The position of a latency between 1 ms and `top`, as a share. */
export function shareOf(ms: number, top: number): number {
  if (ms <= 1) return 0;
  return Math.min(1, Math.log10(ms) / Math.log10(top));
}

export interface Bar {
  name: string;
  count: number;
  /** Of the fullest bar. */
  share: number;
}

/** A histogram's bars with their names, without the empty ones at both ends. */
export function bars(
  edges: readonly number[],
  counts: readonly number[],
  format: (ms: number) => string,
): Bar[] {
  const first = counts.findIndex((count) => count > 0);
  if (first === -1) return [];
  const last = counts.findLastIndex((count) => count > 0);
  const most = Math.max(...counts);
  return counts.slice(first, last + 1).map((count, n) => {
    const at = first + n;
    const to = edges[at];
    const from = edges[at - 1];
    const name =
      to === undefined
        ? `over ${format(from ?? 0)}`
        : from === undefined
          ? `up to ${format(to)}`
          : `${format(from)} to ${format(to)}`;
    return { name, count, share: count / most };
  });
}
