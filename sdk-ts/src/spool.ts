/**
 * Interface of the spool, which stores messages while the gateway is unreachable. `node/files.ts` uses files,
 * `browser/storage.ts` the page's local storage.
 *
 * Rule: a line is in the spool before it leaves memory; lines are sent in order; a spool is sent by one owner at a
 * time, and only to the gateway it was written for. If the sent position is stored too late, lines are sent twice,
 * which the gateway counts once.
 */

export interface Spool {
  /** The location, for log messages. */
  readonly place: string;
  /** Whether lines wait in it. */
  readonly pending: boolean;
  /** How many of these lines fit. */
  fits(lines: readonly string[]): number;
  /** Appends all lines, or throws and appends none. Durable after `sync`. */
  append(lines: readonly string[]): void;
  sync(): Promise<void>;
  /** Synchronous `sync`: the process ends. */
  syncNow(): void;
  /** The oldest unsent lines; at least one, however long it is. */
  peek(maxLines: number, maxBytes: number): string[];
  /** The oldest `n` lines of the last `peek` are settled. */
  advance(n: number): void;
  /** Closes it: removed when empty, else left for the next start. */
  release(): void;
}

export interface Spools {
  readonly place: string;
  create(name: string, url: string, maxBytes: number): Spool;
  /** Spools that ended owners of this name left for this gateway, oldest first; and when to look again (ms), if ever. */
  adopt(name: string, url: string, maxBytes: number): Promise<{ found: Spool[]; again_ms: number | null }>;
}
