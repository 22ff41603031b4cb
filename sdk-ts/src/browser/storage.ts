/**
 * The spool in a browser: a list of lines in the page's local storage, bounded far below its usual 5 MB.
 *
 * A spool belongs to one page: the page holds a Web Lock of the spool's name, which is released when the page ends, so
 * the next page of this origin can adopt it. Without Web Locks (a page over plain http) leftovers are not adopted.
 */

import { newId } from "../ids.ts";
import type { Log } from "../log.ts";
import type { Spool, Spools } from "../spool.ts";

const PREFIX = "observatory:spool:";
/** UTF-16 units over all spools of this origin; local storage counts those. */
const MAX_CHARS = 2_000_000;

interface StoredLines {
  name: string;
  url: string;
  created_ms: number;
  lines: string[];
}

/** Null if local storage is missing or forbidden. */
export function storage(log: Log): Spools | null {
  try {
    const probe = `${PREFIX}probe`;
    localStorage.setItem(probe, "");
    localStorage.removeItem(probe);
    return new Storage(log);
  } catch {
    return null;
  }
}

class Storage implements Spools {
  readonly place = "local storage";
  #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  create(name: string, url: string, maxBytes: number): Spool {
    const id = newId();
    void locked(PREFIX + id);
    return new StorageSpool(PREFIX + id, { name, url, created_ms: Date.now(), lines: [] }, maxBytes);
  }

  async adopt(
    name: string,
    url: string,
    maxBytes: number,
  ): Promise<{ found: Spool[]; again_ms: number | null }> {
    const adopted: [number, Spool][] = [];
    for (const key of keys()) {
      const kept = read(key);
      if (kept?.name !== name || kept.url !== url || !(await locked(key))) continue;
      const present = read(key); // read again now that it is locked
      if (present === null) continue;
      adopted.push([present.created_ms, new StorageSpool(key, present, maxBytes)]);
      this.#log("info", `${name}: sending messages of an earlier page: ${present.lines.length}`);
    }
    return { found: adopted.sort(([one], [other]) => one - other).map(([, spool]) => spool), again_ms: null };
  }
}

const held = new Map<string, () => void>();

/** Holds the lock of this name until the page ends; false if another page has it, or there are no locks. */
function locked(key: string): Promise<boolean> {
  if (held.has(key) || typeof navigator === "undefined" || !("locks" in navigator))
    return Promise.resolve(false);
  return new Promise((resolve) => {
    const kept = navigator.locks.request(key, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock === null ? undefined : new Promise<void>((release) => held.set(key, release));
    });
    kept.catch(() => resolve(false));
  });
}

const keys = (): string[] =>
  Array.from({ length: localStorage.length }, (_, n) => localStorage.key(n) ?? "").filter((key) =>
    key.startsWith(PREFIX),
  );

function read(key: string): StoredLines | null {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "");
    return typeof kept?.name === "string" && Array.isArray(kept.lines) ? kept : null;
  } catch {
    return null;
  }
}

class StorageSpool implements Spool {
  readonly place: string;
  #kept: StoredLines;
  #maxChars: number;

  constructor(key: string, kept: StoredLines, maxBytes: number) {
    this.place = key;
    this.#kept = kept;
    this.#maxChars = Math.min(maxBytes, MAX_CHARS);
  }

  get pending(): boolean {
    return this.#kept.lines.length > 0;
  }

  fits(lines: readonly string[]): number {
    let room =
      this.#maxChars - keys().reduce((size, key) => size + (localStorage.getItem(key)?.length ?? 0), 0);
    const n = lines.findIndex((line) => {
      room -= JSON.stringify(line).length + 1;
      return room < 0;
    });
    return n < 0 ? lines.length : n;
  }

  append(lines: readonly string[]): void {
    this.#keep([...this.#kept.lines, ...lines]);
  }

  /** Local storage has no flush of its own: the browser writes it by itself. */
  async sync(): Promise<void> {}

  syncNow(): void {}

  peek(maxLines: number, maxBytes: number): string[] {
    let size = 0;
    const end = this.#kept.lines.findIndex((line) => {
      size += line.length;
      return size > maxBytes;
    });
    return this.#kept.lines.slice(
      0,
      Math.min(maxLines, end < 0 ? this.#kept.lines.length : Math.max(end, 1)),
    );
  }

  advance(n: number): void {
    this.#keep(this.#kept.lines.slice(n));
  }

  release(): void {
    if (!this.pending) localStorage.removeItem(this.place);
    held.get(this.place)?.();
    held.delete(this.place);
  }

  #keep(lines: string[]): void {
    const kept = { ...this.#kept, lines };
    localStorage.setItem(this.place, JSON.stringify(kept)); // throws when storage is full: then nothing has changed
    this.#kept = kept;
  }
}
