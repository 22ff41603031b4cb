// What was left half done when the sign-in ended, in one sentence: the sign-in page shows it, because a user
// who was engaging a kill switch must know at once whether it happened. In the page's memory only.
import { useSyncExternalStore } from "react";
import { forgetWithDrafts } from "~/widgets/drafts";

let unfinishedText: string | null = null;
const listeners = new Set<() => void>();

export function setUnfinished(sentence: string | null): void {
  if (sentence === unfinishedText) return;
  unfinishedText = sentence;
  for (const listener of listeners) listener();
}

forgetWithDrafts(() => setUnfinished(null));

export function useUnfinished(): string | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => unfinishedText,
  );
}
