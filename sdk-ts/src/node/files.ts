/**
 * The spool in Node: one append-only file of JSON lines per agent and process, in `<data>/spool-ts` (the Python
 * SDK has a separate folder: it locks its files with `flock`, which Node does not have).
 *
 * `<agent>-<owner>.<id>.jsonl` begins with a line that names its gateway; `<id>.sent` next to it holds how many bytes
 * were sent. A file is adopted by renaming it to the new owner's name: of two attempts, one succeeds.
 *
 * The first line and the messages become durable with one `sync`; the first one also syncs the parent folders. A
 * drained file is removed and never reused: after a power cut an old `.sent` could hide lines written after it.
 */

import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  futimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Log } from "../log.ts";
import type { Spool, Spools } from "../spool.ts";
import { FREE, isAlive, LEASE_MS, SELF, TOUCH_MS } from "./owner.ts";

const NAME = /^(.+)-(\d+-\w+-\w+)\.([0-9a-f]{16})\.jsonl$/;
const MAX_HEAD = 4096;

/** A safe file name for an agent's name; two names never share one. */
export function fileStem(name: string): string {
  const safe = name.replace(/[^A-Za-z0-9._-]/gu, "_").slice(0, 80);
  return safe === name ? safe : `${safe}.${createHash("sha256").update(name).digest("hex").slice(0, 8)}`;
}

interface Head {
  url: string;
  created_ms: number;
}

export class Files implements Spools {
  readonly place: string;
  #log: Log;

  constructor(folder: string, log: Log) {
    this.place = folder;
    this.#log = log;
  }

  create(name: string, url: string, maxBytes: number): Spool {
    const made = mkdirSync(this.place, { recursive: true, mode: 0o700 });
    const [stem, id] = [fileStem(name), randomBytes(8).toString("hex")];
    const path = join(this.place, `${stem}-${SELF}.${id}.jsonl`);
    const fd = openSync(path, "ax+", 0o600);
    const head = `${JSON.stringify({ url, created_ms: Date.now() } satisfies Head)}\n`;
    try {
      writeAll(fd, Buffer.from(head));
    } catch (error) {
      // A full disk: leave nothing behind, or each further step would leak a file and a descriptor.
      closeSync(fd);
      rmSync(path, { force: true });
      throw error;
    }
    const unsynced = foldersTo(this.place, made);
    return new FileSpool(this.place, stem, id, fd, Buffer.byteLength(head), maxBytes, this.#log, unsynced);
  }

  async adopt(
    name: string,
    url: string,
    maxBytes: number,
  ): Promise<{ found: Spool[]; again_ms: number | null }> {
    const adopted: [number, Spool][] = [];
    let again: number | null = null;
    for (const file of existsSync(this.place) ? readdirSync(this.place) : []) {
      const [, stem, owner, id] = NAME.exec(file) ?? [];
      if (stem !== fileStem(name) || owner === undefined || id === undefined) continue;
      const path = join(this.place, file);
      try {
        if (isAlive(owner, Date.now() - statSync(path).mtimeMs)) {
          // In another namespace its process cannot be checked: look again when its lease is over.
          if (!owner.endsWith(SELF.slice(SELF.lastIndexOf("-")))) again = LEASE_MS;
          continue;
        }
        const first = readHead(path);
        if (first === null || first.head.url !== url) {
          if (first === null)
            this.#log("warning", `${path} is left unchanged: its first line cannot be read`);
          else this.#log("info", `${path} is kept: it was written for ${first.head.url}`);
          continue;
        }
        const own = join(this.place, `${stem}-${SELF}.${id}.jsonl`);
        renameSync(path, own);
        const fd = openSync(own, "a+", 0o600);
        adopted.push([
          first.head.created_ms,
          new FileSpool(this.place, stem, id, fd, first.size, maxBytes, this.#log),
        ]);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code !== "ENOENT") this.#log("warning", `${path} is left unchanged (${code})`); // else another process was faster
      }
    }
    return {
      found: adopted.sort(([one], [other]) => one - other).map(([, spool]) => spool),
      again_ms: again,
    };
  }
}

/** The folder, and the parents in which a folder was created for it. */
function foldersTo(place: string, made: string | undefined): string[] {
  const folders = [place];
  if (made === undefined) return folders;
  for (let at = place; at.length >= made.length; at = dirname(at)) folders.push(dirname(at));
  return folders;
}

function writeAll(fd: number, data: Buffer): void {
  for (let at = 0; at < data.length; ) at += writeSync(fd, data, at);
}

function syncFolder(folder: string): void {
  if (process.platform === "win32") return; // a folder cannot be opened there
  const fd = openSync(folder, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The first line, and how many bytes it takes; null for a file that is not a complete spool. */
function readHead(path: string): { head: Head; size: number } | null {
  const fd = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(MAX_HEAD);
    const size = bytes.subarray(0, readSync(fd, bytes, 0, MAX_HEAD, 0)).indexOf(10) + 1;
    const head = JSON.parse(bytes.toString("utf8", 0, size));
    return typeof head?.url === "string" && typeof head.created_ms === "number" ? { head, size } : null;
  } catch {
    return null;
  } finally {
    closeSync(fd);
  }
}

class FileSpool implements Spool {
  readonly #folder: string;
  readonly #stem: string;
  readonly #id: string;
  readonly #fd: number;
  readonly #head: number;
  readonly #maxBytes: number;
  readonly #log: Log;
  readonly #touching: ReturnType<typeof setInterval>;
  #size: number;
  #sent: number;
  #peeked: number[] = []; // bytes of each line of the last peek
  #unsynced: string[]; // folders whose names are not durable yet
  #open = true;

  constructor(
    folder: string,
    stem: string,
    id: string,
    fd: number,
    head: number,
    maxBytes: number,
    log: Log,
    unsynced: string[] = [],
  ) {
    this.#folder = folder;
    this.#stem = stem;
    this.#id = id;
    this.#fd = fd;
    this.#head = head;
    this.#maxBytes = maxBytes;
    this.#log = log;
    this.#unsynced = unsynced;
    this.#size = fstatSync(fd).size;
    this.#sent = this.#readSent();
    this.#touching = setInterval(() => this.#touch(), TOUCH_MS);
    this.#touching.unref();
  }

  get place(): string {
    return join(this.#folder, `${this.#stem}-${SELF}.${this.#id}.jsonl`);
  }

  get pending(): boolean {
    return this.#size > this.#sent;
  }

  fits(lines: readonly string[]): number {
    let room = this.#maxBytes - this.#size;
    const n = lines.findIndex((line) => {
      room -= Buffer.byteLength(line) + 1;
      return room < 0;
    });
    return n < 0 ? lines.length : n;
  }

  append(lines: readonly string[]): void {
    const data = Buffer.from(`${lines.join("\n")}\n`);
    try {
      writeAll(this.#fd, data);
    } catch (error) {
      ftruncateSync(this.#fd, this.#size);
      throw error;
    }
    this.#size += data.length;
  }

  async sync(): Promise<void> {
    await promisify(fsync)(this.#fd);
    this.#syncFolders();
  }

  syncNow(): void {
    fsyncSync(this.#fd);
    this.#syncFolders();
  }

  #syncFolders(): void {
    for (; this.#unsynced.length; this.#unsynced.pop()) syncFolder(this.#unsynced.at(-1) as string);
  }

  peek(maxLines: number, maxBytes: number): string[] {
    const left = this.#size - this.#sent;
    for (let want = Math.min(left, maxBytes); ; want = Math.min(left, want * 4)) {
      const bytes = Buffer.alloc(want);
      const read = bytes.subarray(0, readSync(this.#fd, bytes, 0, want, this.#sent));
      const end = read.lastIndexOf(10);
      if (end >= 0) {
        const lines = read.toString("utf8", 0, end).split("\n", maxLines);
        this.#peeked = lines.map((line) => Buffer.byteLength(line) + 1);
        return lines;
      }
      if (want >= left) {
        // The process died while it wrote the last line.
        this.#log("warning", `${this.place} ended in an incomplete line, which is dropped`);
        this.#move(left);
        return [];
      }
    }
  }

  advance(n: number): void {
    this.#move(this.#peeked.splice(0, n).reduce((size, one) => size + one, 0));
  }

  /** The caller releases the file when nothing is pending. */
  #move(size: number): void {
    this.#sent += size;
    if (!this.pending) return;
    try {
      this.#keepSent();
    } catch (error) {
      // A full disk: nothing is lost, a restart only sends again.
      this.#log(
        "debug",
        `${this.place}: the number of sent bytes could not be stored (${(error as NodeJS.ErrnoException).code})`,
      );
    }
  }

  release(): void {
    if (!this.#open) return;
    this.#open = false;
    clearInterval(this.#touching);
    const own = this.place;
    closeSync(this.#fd); // first: Windows cannot rename an open file
    if (this.pending) this.#try(() => renameSync(own, own.replace(`-${SELF}.`, `-${FREE}.`)));
    else for (const path of [own, this.#sentPath]) this.#try(() => rmSync(path, { force: true }));
  }

  get #sentPath(): string {
    return join(this.#folder, `${this.#id}.sent`);
  }

  #readSent(): number {
    try {
      const sent = Number(readFileSync(this.#sentPath, "utf8"));
      const end = Buffer.alloc(1); // a valid offset is at a line end; otherwise everything is sent again
      return sent >= this.#head && readSync(this.#fd, end, 0, 1, sent - 1) === 1 && end[0] === 10
        ? sent
        : this.#head;
    } catch {
      return this.#head;
    }
  }

  #keepSent(): void {
    const fresh = `${this.#sentPath}.new`;
    try {
      writeFileSync(fresh, String(this.#sent), { mode: 0o600 });
      renameSync(fresh, this.#sentPath);
    } catch (error) {
      rmSync(fresh, { force: true });
      throw error;
    }
  }

  /** Renews the lease, for processes in other namespaces. */
  #touch(): void {
    const now = Date.now() / 1000;
    this.#try(() => futimesSync(this.#fd, now, now));
  }

  #try(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#log("debug", `${this.place}: ${(error as NodeJS.ErrnoException).code}`);
    }
  }
}
