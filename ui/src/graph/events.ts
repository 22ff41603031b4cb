// What the map tells its host, by name. Listeners are called in the order they came; one may leave at any time.
import type { Focus, Hit, Layer, Level, Thing } from "./types";

export interface Told {
  hover: Hit | null;
  click: Hit | null;
  open: Hit;
  focus: Focus | null;
  select: Thing | null;
  level: Level | "auto";
  view: { zoom: number; level: Level; moving: boolean };
  data: undefined;
  layer: Layer;
  /** Something could not be had, in a sentence. */
  trouble: string;
}

export class Events {
  private readonly listeners = new Map<keyof Told, Set<(told: never) => void>>();

  on<N extends keyof Told>(name: N, hear: (told: Told[N]) => void): () => void {
    let held = this.listeners.get(name);
    if (!held) {
      held = new Set();
      this.listeners.set(name, held);
    }
    held.add(hear as (told: never) => void);
    return () => held.delete(hear as (told: never) => void);
  }

  tell<N extends keyof Told>(name: N, told: Told[N]): void {
    for (const hear of [...(this.listeners.get(name) ?? [])]) (hear as (told: Told[N]) => void)(told);
  }

  clear(): void {
    this.listeners.clear();
  }
}
