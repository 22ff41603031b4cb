// The live record of one agent or edge from the topic `fleet`, at most four updates a second.
import { useEffect, useState } from "react";
import type { EdgeRecord, NodeRecord } from "~/graph";
import { live } from "~/live/connection";
import type { Picture } from "~/live/records";

const EVERY_MS = 250;

/** `read` returns something small: it is compared by its JSON text. `key` names its dependencies. */
export function useFleet<T>(read: (picture: Picture) => T, key: string): T | undefined {
  const [held, setHeld] = useState<{ value: T; text: string } | undefined>(undefined);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` names what `read` depends on
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const look = () => {
      timer = null;
      const picture = live.picture("fleet");
      if (!picture?.ready) return;
      const value = read(picture);
      const text = JSON.stringify(value) ?? "";
      setHeld((before) => (before?.text === text ? before : { value, text }));
    };
    const soon = () => {
      timer ??= setTimeout(look, EVERY_MS);
    };
    const leave = live.follow("fleet", soon);
    look();
    return () => {
      leave();
      if (timer !== null) clearTimeout(timer);
    };
  }, [key]);
  return held?.value;
}

export function nodeIn(picture: Picture, id: string): NodeRecord | null {
  return (picture.of("node").get(id) as unknown as NodeRecord | undefined) ?? null;
}

export function edgeIn(picture: Picture, id: string): EdgeRecord | null {
  return (picture.of("edge").get(id) as unknown as EdgeRecord | undefined) ?? null;
}

export interface AgentTraffic {
  into: EdgeRecord[];
  from: EdgeRecord[];
}

export function edgesOf(edges: Iterable<EdgeRecord>, id: string): AgentTraffic {
  const into: EdgeRecord[] = [];
  const from: EdgeRecord[] = [];
  for (const edge of edges) {
    if (edge.from === id) from.push(edge);
    else if (edge.to === id) into.push(edge);
  }
  const busiest = (a: EdgeRecord, b: EdgeRecord) =>
    Number(b.status !== "Healthy") - Number(a.status !== "Healthy") ||
    b.rate_per_s - a.rate_per_s ||
    a.id.localeCompare(b.id, "en");
  return { into: into.sort(busiest), from: from.sort(busiest) };
}
