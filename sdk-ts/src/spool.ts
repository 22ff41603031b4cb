/**
 * Where messages wait on a device while the gateway is away: what the backlog asks of it. `node/files.ts` keeps files,
 * `browser/storage.ts` the page's local storage.
 *
 * Law: a line is in the spool before it leaves memory; lines leave it in the order they came; a spool is sent by one
 * owner at a time, and only to the gateway it was meant for. If what was sent is noted too late, lines are sent
 * twice, which the gateway answers as once.
 */

export interface Spool {
  /** Where, for whoever reads the log. */
  readonly place: string;
  /** Whether lines wait in it. */
  readonly pending: boolean;
  /** How many of these lines there is room for. */
  fits(lines: readonly string[]): number;
  /** All lines or, by throwing, none. Durable after `sync`. */
  append(lines: readonly string[]): void;
  sync(): Promise<void>;
  /** The same at once: the process ends. */
  syncNow(): void;
  /** The oldest unsent lines; at least one, however long it is. */
  peek(maxLines: number, maxBytes: number): string[];
  /** The oldest `n` of what `peek` gave are settled. */
  advance(n: number): void;
  /** Give it up: removed when empty, else left for the next start. */
  release(): void;
}

export interface Spools {
  readonly place: string;
  create(name: string, url: string, maxBytes: number): Spool;
  /** What dead owners of this name left for this gateway, oldest first; and when to look again (ms), if ever. */
  adopt(name: string, url: string, maxBytes: number): Promise<{ found: Spool[]; again_ms: number | null }>;
}
