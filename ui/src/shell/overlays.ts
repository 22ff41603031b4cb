// Which overlay is open: palette (and its modes), help, saving a view, the tour, signing in elsewhere. One at
// a time, and none is part of the URL.
import { useSyncExternalStore } from "react";

export type Overlay =
  | { kind: "palette"; mode: "all" | "search" | "pause"; text?: string }
  | { kind: "help" }
  | { kind: "save" }
  | { kind: "enter"; tenant: string };

let now: Overlay | null = null;
const listeners = new Set<() => void>();

export function show(overlay: Overlay | null): void {
  now = overlay;
  for (const listener of listeners) listener();
}

export function useOverlay(): Overlay | null {
  return useSyncExternalStore(
    (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    () => now,
  );
}
