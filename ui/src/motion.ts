// Whether animation is allowed: reduced by the system's setting, or switched off here. Style sheets read the
// attribute, code that animates calls `useStill`.
import { useReducedMotion } from "@mantine/hooks";
import { useSyncExternalStore } from "react";

export type Motion = "auto" | "reduce";
const KEY = "observatory:motion";
const listeners = new Set<() => void>();

export function motionNow(): Motion {
  return localStorage.getItem(KEY) === "reduce" ? "reduce" : "auto";
}

export function setMotion(motion: Motion): void {
  localStorage.setItem(KEY, motion);
  applyMotion();
  for (const listener of listeners) listener();
}

export function applyMotion(): void {
  document.documentElement.dataset.motion = motionNow();
}

export function useMotion(): Motion {
  return useSyncExternalStore((changed) => {
    listeners.add(changed);
    return () => listeners.delete(changed);
  }, motionNow);
}

/** Animation is off, for either of the two reasons. */
export function useStill(): boolean {
  const system = useReducedMotion();
  return useMotion() === "reduce" || system;
}
