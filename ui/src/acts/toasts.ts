// What was just done, said once, with its undo. A store of its own: acts speak, the shell shows.
import { useSyncExternalStore } from "react";

export interface Toast {
  id: number;
  tone: "good" | "alert" | "plain";
  text: string;
  detail?: string;
  undo?: () => Promise<unknown>;
}

const LASTS_MS = 8_000;
const MOST = 5;
let toasts: readonly Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();
const clocks = new Map<number, ReturnType<typeof setTimeout>>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

export function say(toast: Omit<Toast, "id">): number {
  last += 1;
  const id = last;
  for (const old of toasts.slice(0, Math.max(0, toasts.length - MOST + 1))) hold(old.id);
  set([...toasts.slice(-(MOST - 1)), { ...toast, id }]);
  letGo(id);
  return id;
}

export function unsay(id: number): void {
  hold(id);
  set(toasts.filter((toast) => toast.id !== id));
}

/** The clock of a toast stops while one points at it. */
export function hold(id: number): void {
  clearTimeout(clocks.get(id));
  clocks.delete(id);
}

export function letGo(id: number): void {
  const toast = toasts.find((one) => one.id === id);
  // What went wrong stays until it is closed: it may be read late.
  if (!toast || toast.tone === "alert") return;
  hold(id);
  clocks.set(
    id,
    setTimeout(() => unsay(id), LASTS_MS),
  );
}

export function saidNow(): readonly Toast[] {
  return toasts;
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore((changed) => {
    listeners.add(changed);
    return () => listeners.delete(changed);
  }, saidNow);
}
