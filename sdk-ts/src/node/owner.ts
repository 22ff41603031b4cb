/**
 * The owner of a spool: identifies this process, and checks whether another owner is alive.
 *
 * Node has no `flock`, so a file's name holds its owner: process id, start time, and the namespace of the process id
 * (boot and process namespace; a container has its own). In this process's namespace the check is exact. For another one
 * (a container that ended, or runs on the same volume) only the file's age is known: its owner touches it.
 */

import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

export const TOUCH_MS = 15_000;
export const LEASE_MS = 60_000;
/** No owner: released on close. */
export const FREE = "0-0-free";

function startOf(pid: number | "self"): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command name may contain spaces and brackets: fields are counted after it (proc(5), field 22).
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "x";
  } catch {
    return "x"; // not Linux: only the id is known
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
