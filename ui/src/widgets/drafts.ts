// What was typed and not sent yet, kept under the name of what it is about. A field may go from the page at any
// moment (another row chosen, a tab switched, a sign-in that ended); what stood in it must not. In the page's
// memory only, never in the browser's storage: it may be a message's content. The oldest go first, and all of it
// when somebody else signs in on the same page.
import { useCallback, useState } from "react";

export const MOST = 50;
const kept = new Map<string, string>();

export function draftOf(name: string): string | null {
  return kept.get(name) ?? null;
}

/** null forgets it. */
export function keepDraft(name: string, text: string | null): void {
  kept.delete(name);
  if (text === null) return;
  kept.set(name, text);
  const [oldest] = kept.keys();
  if (kept.size > MOST && oldest !== undefined) kept.delete(oldest);
}

let owner: string | null = null;
const forgets = new Set<() => void>();

/** What else in the page's memory is of whoever is signed in, and how it is forgotten. */
export function forgetWithDrafts(forget: () => void): void {
  forgets.add(forget);
}

/** Whose all this is, as often as one likes: another one finds nothing of it, the same one everything. */
export function belongTo(who: string): void {
  if (who === owner) return;
  if (owner !== null) {
    kept.clear();
    for (const forget of forgets) forget();
  }
  owner = who;
}

/** Like a state of text or null that outlives the component; another name is another draft. */
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
