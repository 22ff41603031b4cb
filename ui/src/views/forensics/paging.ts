// A list refetched at its top while older pages were fetched once: seen rows are kept, and if a newer top no
// longer reaches them the list restarts, so that no gap goes unnoticed. Pure.

export interface Page<T> {
  items: readonly T[];
  next_cursor: string | null;
}

/** Rows held at most; beyond it the list restarts at its top. */
const MAX_ROWS = 20_000;

/** Whether there may be a gap between the seen rows and this newer first page. */
export function isApart<T>(seen: readonly T[], page: Page<T>, keyOf: (row: T) => number | string): boolean {
  if (page.next_cursor === null || page.items.length === 0 || seen.length === 0) return false;
  const known = new Set(seen.map(keyOf));
  return !page.items.some((row) => known.has(keyOf(row)));
}

/** The seen rows with those the newer page adds on top; null if the list must restart. */
export function carried<T>(
  seen: readonly T[],
  page: Page<T>,
  keyOf: (row: T) => number | string,
): readonly T[] | null {
  if (isApart(seen, page, keyOf)) return null;
  const known = new Set(seen.map(keyOf));
  const fresh = page.items.filter((row) => !known.has(keyOf(row)));
  if (fresh.length === 0) return seen;
  return fresh.length + seen.length > MAX_ROWS ? null : [...fresh, ...seen];
}
