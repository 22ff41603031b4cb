/**
 * Who owns a spool: this process, told from every other one, and whether another still lives.
 *
 * Node has no `flock`, so a file's name says who owns it: process id, when that process started, and where its id means
 * anything (boot and process namespace; a container has its own). In our own namespace the answer is exact. Of another
 * one (a container that is gone, or runs beside us on the same volume) only the file's age tells: its owner touches it.
 */

import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

export const TOUCH_MS = 15_000;
export const LEASE_MS = 60_000;
/** Of nobody: let go in good order. */
export const FREE = "0-0-free";

function startOf(pid: number | "self"): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command's name may hold anything, spaces and brackets too: fields are counted behind it (proc(5), field 22).
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "x";
  } catch {
    return "x"; // not Linux: the id alone must do
  }
}

function namespace(): string {
  let text = hostname();
  try {
    text = `${readFileSync("/proc/sys/kernel/random/boot_id", "latin1")}${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    // Not Linux: the machine's name.
  }
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

const HERE = namespace();
export const SELF = `${process.pid}-${startOf("self")}-${HERE}`;

/** Whether the owner lives; `touchedMs` is how long ago the file was written to. */
export function isAlive(owner: string, touchedMs: number): boolean {
  if (owner === FREE) return false;
  const [pid, start, where] = owner.split("-");
  if (where !== HERE) return touchedMs < LEASE_MS;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
  }
  return start === startOf(Number(pid));
}
