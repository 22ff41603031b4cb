// Toasts: the result of the last commands, each with its undo. A store of its own: commands add, the shell
// shows.
import { useSyncExternalStore } from "react";

export interface Toast {
  id: number;
  tone: "good" | "alert" | "plain";
  text: string;
  detail?: string;
  undo?: () => Promise<unknown>;
}

const LASTS_MS = 8_000;
const MAX_TOASTS = 5;
let toasts: readonly Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();
const clocks = new Map<number, ReturnType<typeof setTimeout>>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

export function showToast(toast: Omit<Toast, "id">): number {
  last += 1;
  const id = last;
  for (const old of toasts.slice(0, Math.max(0, toasts.length - MAX_TOASTS + 1))) pauseTimer(old.id);
  set([...toasts.slice(-(MAX_TOASTS - 1)), { ...toast, id }]);
  resumeTimer(id);
  return id;
}

export function dismissToast(id: number): void {
  pauseTimer(id);
  set(toasts.filter((toast) => toast.id !== id));
}

/** The timer of a toast stops while the pointer is over it. */
export function pauseTimer(id: number): void {
  clearTimeout(clocks.get(id));
  clocks.delete(id);
}

export function resumeTimer(id: number): void {
  const toast = toasts.find((one) => one.id === id);
  // Errors stay until they are closed: they may be read late.
  if (!toast || toast.tone === "alert") return;
  pauseTimer(id);
  clocks.set(
    id,
    setTimeout(() => dismissToast(id), LASTS_MS),
  );
}

export function currentToasts(): readonly Toast[] {
  return toasts;
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore((changed) => {
    listeners.add(changed);
    return () => listeners.delete(changed);
  }, currentToasts);
}
