// A list that is asked again at its top while older pages were fetched once: what was seen is kept, and where a newer top
// no longer reaches down to it the list begins anew, rather than leave something out unsaid. Pure.

export interface Page<T> {
  items: readonly T[];
  next_cursor: string | null;
}

/** Held at most; beyond it the list begins anew at its top. */
const MOST = 20_000;

/** Whether something may lie between what was seen and this newer first page that is in neither. */
export function isApart<T>(seen: readonly T[], page: Page<T>, keyOf: (row: T) => number | string): boolean {
  if (page.next_cursor === null || page.items.length === 0 || seen.length === 0) return false;
  const known = new Set(seen.map(keyOf));
  return !page.items.some((row) => known.has(keyOf(row)));
}

/** What was seen with what the newer page brings before it; null when the list must begin anew. */
export function carried<T>(
  seen: readonly T[],
  page: Page<T>,
  keyOf: (row: T) => number | string,
): readonly T[] | null {
  if (isApart(seen, page, keyOf)) return null;
  const known = new Set(seen.map(keyOf));
  const fresh = page.items.filter((row) => !known.has(keyOf(row)));
  if (fresh.length === 0) return seen;
  return fresh.length + seen.length > MOST ? null : [...fresh, ...seen];
}
