// The map's events to its host, by name. Listeners are called in registration order; one may unsubscribe at
// any time.
import type { Focus, Hit, Layer, Level, MapObject } from "./types";

export interface MapEvents {
  hover: Hit | null;
  click: Hit | null;
  open: Hit;
  focus: Focus | null;
  select: MapObject | null;
  level: Level | "auto";
  view: { zoom: number; level: Level; moving: boolean };
  data: undefined;
  layer: Layer;
  /** Something could not be loaded, as a sentence. */
  trouble: string;
}

export class Events {
  private readonly listeners = new Map<keyof MapEvents, Set<(payload: never) => void>>();

  on<N extends keyof MapEvents>(name: N, hear: (payload: MapEvents[N]) => void): () => void {
    let held = this.listeners.get(name);
    if (!held) {
      held = new Set();
      this.listeners.set(name, held);
    }
    held.add(hear as (payload: never) => void);
    return () => held.delete(hear as (payload: never) => void);
  }

  emit<N extends keyof MapEvents>(name: N, payload: MapEvents[N]): void {
    for (const hear of [...(this.listeners.get(name) ?? [])])
      (hear as (payload: MapEvents[N]) => void)(payload);
  }

  clear(): void {
    this.listeners.clear();
  }
}
