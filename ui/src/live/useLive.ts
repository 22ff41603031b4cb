// The one place where React meets the live core. Components re-render at most once a frame, and only when the
// kinds they follow changed.
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { live } from "./connection";
import { frames } from "./frames";
import type { LiveFrame, LiveRecord } from "./records";
import type { Connection } from "./socket";

export interface Followed<T> {
  items: T[];
  ready: boolean;
}

/** The records of one kind of a topic, as an array that is new only when they changed. */
export function useRecords<T = LiveRecord>(topic: string | null, kind: string): Followed<T> {
  const [followed, setFollowed] = useState<Followed<T>>({ items: [], ready: false });
  const seen = useRef(-1);
  useEffect(() => {
    seen.current = -1;
    setFollowed({ items: [], ready: false });
    if (topic === null) return;
    let gone = false;
    const paint = () => {
      const picture = live.picture(topic);
      // A frame requested before the topic changed must not paint over it.
      if (!picture || gone) return;
      const generation = picture.generation(kind);
      if (generation === seen.current || !picture.ready) return;
      seen.current = generation;
      setFollowed({ items: [...picture.of(kind).values()] as T[], ready: true });
    };
    const leave = live.follow(topic, () => frames.next(paint));
    if (live.picture(topic)?.ready) frames.next(paint);
    return () => {
      gone = true;
      leave();
    };
  }, [topic, kind]);
  return followed;
}

/** Calls back for every item of a topic of events, from now on. */
export function useEvents<T = unknown>(topic: string | null, hear: (items: T[]) => void): void {
  const latest = useRef(hear);
  latest.current = hear;
  useEffect(() => {
    if (topic === null) return;
    return live.hear(topic, (frame: LiveFrame) => latest.current(frame.items as T[]));
  }, [topic]);
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (changed) => live.watch(changed),
    () => live.state,
  );
}
