// The live graph of one session: records in, one folded graph out, at most once a frame and less often when
// it is big. `ready` is false until the first picture arrived.
import { useEffect, useState } from "react";
import { live } from "~/live/connection";
import { frames } from "~/live/frames";
import { warm } from "./elkWorker";
import { EMPTY, type Graph, graphOf } from "./graph";

const BIG = 3_000;
const BIG_EVERY_MS = 500;

export interface LiveGraph {
  graph: Graph;
  ready: boolean;
  at: string | null;
}

const NOTHING: LiveGraph = { graph: EMPTY, ready: false, at: null };

export function useGraph(sessionId: string): LiveGraph {
  const [grown, setGrown] = useState<LiveGraph>(NOTHING);
  useEffect(() => {
    const topic = `session:dag:${sessionId}`;
    let last = 0;
    let later: ReturnType<typeof setTimeout> | null = null;
    setGrown(NOTHING);
    warm();
    const fold = () => {
      later = null;
      const picture = live.picture(topic);
      if (!picture?.ready) return;
      last = performance.now();
      const of = (kind: string) => picture.of(kind).values();
      const graph = graphOf({
        step: of("step"),
        intervention: of("intervention"),
        link: of("link"),
        refused: of("refused"),
        agent: of("agent"),
        summary: of("summary"),
      });
      setGrown({ graph, ready: true, at: picture.at });
    };
    const soon = () => {
      const big = (live.picture(topic)?.of("step").size ?? 0) > BIG;
      const wait = big ? last + BIG_EVERY_MS - performance.now() : 0;
      if (wait <= 0) frames.next(fold);
      else later ??= setTimeout(fold, wait);
    };
    const leave = live.follow(topic, soon);
    if (live.picture(topic)?.ready) soon();
    return () => {
      if (later !== null) clearTimeout(later);
      leave();
    };
  }, [sessionId]);
  return grown;
}
