// What stood half done when the sign-in ended, in one sentence: the sign-in page says it, because whoever was in
// the middle of something grave must know at once whether it happened. In the page's memory only.
import { useSyncExternalStore } from "react";
import { forgetWithDrafts } from "~/widgets/drafts";

let said: string | null = null;
const listeners = new Set<() => void>();

export function setUnfinished(sentence: string | null): void {
  if (sentence === said) return;
  said = sentence;
  for (const listener of listeners) listener();
}

forgetWithDrafts(() => setUnfinished(null));

export function useUnfinished(): string | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => said,
  );
}
