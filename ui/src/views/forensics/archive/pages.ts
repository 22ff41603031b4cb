// Endless paging: pages are fetched as they scroll into view and dropped when they are far away; each page's
// cursor is kept, so that it can be fetched again unchanged. Knows no React.
import type { SearchHit } from "~/protocol/openapi";

export const PAGE = 100;
/** Pages held at a time: 3,000 messages. */
export const KEPT = 30;

/** A dropped message, to be fetched again when it scrolls back into view. */
export interface Absent {
  absent: true;
  key: string;
}
export type Row = SearchHit | Absent;

export interface Part {
  items: SearchHit[];
  next_cursor: string | null;
}
type Fetch = (cursor: string) => Promise<Part>;

export class Pages {
  /** Changed in place: a million rows are not copied for each page that comes. */
  readonly rows: Row[] = [];
  version = 0;
  trouble: Error | null = null;
  private readonly starts: number[] = [];
  private readonly cursors: (string | null)[] = [];
  private readonly held = new Map<number, true>();
  private readonly coming = new Set<number>();
  private next: string | null;
  private readonly listeners = new Set<() => void>();

  constructor(
    first: Part,
    private readonly fetch: Fetch,
  ) {
    this.next = null;
    this.put(0, null, first);
  }

  readonly watch = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  get hasMore(): boolean {
    return this.next !== null;
  }

  /** The visible rows: missing ones are fetched, and the next page too. */
  see(first: number, last: number): void {
    const from = this.pageOf(first);
    const to = this.pageOf(last);
    for (let page = from; page <= to; page += 1) if (!this.held.has(page)) void this.load(page);
    if (this.next !== null && last >= this.rows.length - 40) void this.load(this.starts.length);
    this.forget(from, to);
  }

  again(): void {
    this.trouble = null;
    this.see(Math.max(0, this.rows.length - 1), this.rows.length - 1);
    this.changed();
  }

  private pageOf(row: number): number {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.starts[middle] as number) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  private async load(page: number): Promise<void> {
    const cursor = page === this.starts.length ? this.next : this.cursors[page];
    // After an error the user retries: an unreachable gateway is not queried at every scroll.
    if (!cursor || this.coming.has(page) || this.trouble) return;
    this.coming.add(page);
    try {
      this.put(page, cursor, await this.fetch(cursor));
    } catch (error) {
      this.trouble = error as Error;
      this.changed();
    } finally {
      this.coming.delete(page);
    }
  }

  private put(page: number, cursor: string | null, part: Part): void {
    if (page === this.starts.length) {
      this.starts.push(this.rows.length);
      this.cursors.push(cursor);
      this.rows.push(...part.items);
      this.next = part.next_cursor;
    } else {
      const start = this.starts[page] as number;
      const end = this.starts[page + 1] ?? this.rows.length;
      // Rows removed in the meantime leave a placeholder; nothing may shift under the reader.
      for (let n = start; n < end; n += 1) this.rows[n] = part.items[n - start] ?? absent(n);
    }
    this.held.set(page, true);
    this.changed();
  }

  private forget(from: number, to: number): void {
    if (this.held.size <= KEPT) return;
    const far = (page: number) => (page < from ? from - page : page > to ? page - to : 0);
    const order = [...this.held.keys()].sort((a, b) => far(b) - far(a));
    for (const page of order.slice(0, this.held.size - KEPT)) {
      // The first page is the way back to the newest; it stays.
      if (page === 0) continue;
      this.held.delete(page);
      const end = this.starts[page + 1] ?? this.rows.length;
      for (let n = this.starts[page] as number; n < end; n += 1) this.rows[n] = absent(n);
    }
  }

  private changed(): void {
    this.version += 1;
    for (const listener of this.listeners) listener();
  }
}

const absent = (n: number): Absent => ({ absent: true, key: `absent-${n}` });
export const isHere = (row: Row | undefined): row is SearchHit => row !== undefined && !("absent" in row);
