// What this browser remembers of a tenant's log, beside anything the server says: the key it was signed by when it was
// first seen, the largest checkpoint seen since, and the keys of witnesses. Kept by tenant, so that a log of another
// name cannot begin anew.

export interface Remembered {
  vkey: string;
  /** When this key was first seen here, or followed the one before with evidence. */
  since: string;
  size: number;
  /** The note itself: with it somebody else can be shown what this browser was shown. */
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
      // storage refused: the next visit begins anew, and says so
    }
  },
};

/** Only forwards: a proof that took longer than another must not make this browser forget what that one saw. */
export function remember(memory: Memory, tenant: string, seen: Remembered): void {
  const now = memory.recall(tenant);
  if (now === null || now.size <= seen.size) memory.keep(tenant, seen);
}

/** A person says that the log's key and what was seen of it are to be forgotten. */
export function forget(tenant: string): void {
  localStorage.removeItem(named(tenant));
}
