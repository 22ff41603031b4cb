// Unsaved input, kept under a name. A field may unmount at any moment (another row, another tab, an expired
// sign-in); its input must survive. In the page's memory only, never in the browser's storage: it may be a
// message's content. The oldest are dropped first, and all of it when another user signs in on the same page.
import { useCallback, useState } from "react";

export const MAX_DRAFTS = 50;
const kept = new Map<string, string>();

export function draftOf(name: string): string | null {
  return kept.get(name) ?? null;
}

/** null clears it. */
export function keepDraft(name: string, text: string | null): void {
  kept.delete(name);
  if (text === null) return;
  kept.set(name, text);
  const [oldest] = kept.keys();
  if (kept.size > MAX_DRAFTS && oldest !== undefined) kept.delete(oldest);
}

let owner: string | null = null;
const forgets = new Set<() => void>();

/** Other in-memory data of the signed-in user, and how it is cleared. */
export function forgetWithDrafts(forget: () => void): void {
  forgets.add(forget);
}

/** Sets the owner of all this, idempotent: another user finds nothing, the same user everything. */
export function belongTo(who: string): void {
  if (who === owner) return;
  if (owner !== null) {
    kept.clear();
    for (const forget of forgets) forget();
  }
  owner = who;
}

/** Like a state of text or null that survives unmounting; another name is another draft. */
export function useDraft(name: string): [string | null, (text: string | null) => void] {
  const [held, setHeld] = useState({ name, text: draftOf(name) });
  const text = held.name === name ? held.text : draftOf(name);
  const set = useCallback(
    (next: string | null) => {
      keepDraft(name, next);
      setHeld({ name, text: next });
    },
    [name],
  );
  return [text, set];
}
