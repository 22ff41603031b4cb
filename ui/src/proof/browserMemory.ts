// What this browser remembers of a tenant's log, independent of the server: the signing key when it was first
// seen, the largest checkpoint since, and the keys of witnesses. Stored by tenant, so that a log under
// another name cannot start over.

export interface Remembered {
  vkey: string;
  /** When this key was first seen here, or followed the previous one with proof. */
  since: string;
  size: number;
  /** The note itself: it lets others see what this browser was shown. */
  note: string;
  witnesses: Record<string, string>;
}

export interface Memory {
  recall(tenant: string): Remembered | null;
  keep(tenant: string, known: Remembered): void;
}

const named = (tenant: string) => `observatory:log:${tenant}`;

export const browserMemory: Memory = {
  recall(tenant) {
    try {
      const found = JSON.parse(localStorage.getItem(named(tenant)) ?? "null") as Remembered | null;
      return found && typeof found.vkey === "string" && typeof found.note === "string" ? found : null;
    } catch {
      return null;
    }
  },
  keep(tenant, known) {
    try {
      localStorage.setItem(named(tenant), JSON.stringify(known));
    } catch {
      // storage refused: the next visit starts over
    }
  },
};

/** Only forwards: a proof that took longer than another must not overwrite what that one saw. */
export function remember(memory: Memory, tenant: string, seen: Remembered): void {
  const now = memory.recall(tenant);
  if (now === null || now.size <= seen.size) memory.keep(tenant, seen);
}

/** Forgets the log's key and checkpoint, at a person's request. */
export function forget(tenant: string): void {
  localStorage.removeItem(named(tenant));
}
