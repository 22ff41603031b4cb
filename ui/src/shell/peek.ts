// The side panel's content and its position in the view's list. The URL's `peek` is the state; a view
// publishes its list so that J and K step to the next item without leaving the panel.
import { useCallback, useEffect, useSyncExternalStore } from "react";
import { useUrl } from "~/useUrl";

export type PeekKind = "agent" | "edge" | "session" | "step" | "message";
export interface Peeked {
  kind: PeekKind;
  id: string;
}

const KINDS = new Set<string>(["agent", "edge", "session", "step", "message"]);
const NOTHING: readonly string[] = [];
let list: readonly string[] = NOTHING;
const listeners = new Set<() => void>();

function set(next: readonly string[]): void {
  list = next;
  for (const listener of listeners) listener();
}

/** `agent:writer-1` → its kind and id; null if it is not a valid peek. */
export function parsePeek(text: string | undefined): Peeked | null {
  const colon = text?.indexOf(":") ?? -1;
  if (!text || colon < 1 || colon === text.length - 1) return null;
  const kind = text.slice(0, colon);
  return KINDS.has(kind) ? { kind: kind as PeekKind, id: text.slice(colon + 1) } : null;
}

/** The neighbour in the list, or null at its end; from outside the list the first. */
export function neighbour(ids: readonly string[], now: string | undefined, by: 1 | -1): string | null {
  if (ids.length === 0) return null;
  const at = now === undefined ? -1 : ids.indexOf(now);
  if (at === -1) return ids[0] ?? null;
  return ids[at + by] ?? null;
}

/** The view's list, as peeks (`agent:…`), in the order shown. */
export function usePeekList(ids: readonly string[]): void {
  const text = ids.join("\n");
  useEffect(() => {
    const mine = text === "" ? NOTHING : text.split("\n");
    set(mine);
    return () => {
      if (list === mine) set(NOTHING);
    };
  }, [text]);
}

export function useListed(): readonly string[] {
  return useSyncExternalStore(
    (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    () => list,
  );
}

/** `{ peek, open, close }`; `open("agent:writer-1")` shows it in the side panel. */
export function usePeek() {
  const [search, setUrl] = useUrl();
  const open = useCallback(
    (peek: string) => setUrl({ peek }, search.peek !== undefined),
    [setUrl, search.peek],
  );
  const close = useCallback(() => setUrl({ peek: null }), [setUrl]);
  return { text: search.peek, peek: parsePeek(search.peek), open, close };
}
