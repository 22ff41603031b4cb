// Keeps the picture still: laid out once per session (and when asked to tidy), growth from then on. While the
// worker thinks the old picture stays; its answer is applied in one go.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Drawn } from "./collapse";
import { grown, isSound, type Spots } from "./layout";
import { laidOut } from "./layouting";

const NONE: Spots = new Map();

export interface Placed {
  spots: Spots;
  busy: boolean;
  tookMs: number | null;
  tidy: () => void;
}

export function useSpots(sessionId: string, drawn: Drawn): Placed {
  const [base, setBase] = useState<Spots>(NONE);
  const [busy, setBusy] = useState(false);
  const [tookMs, setTookMs] = useState<number | null>(null);
  const latest = useRef(drawn);
  latest.current = drawn;
  const turn = useRef(0);
  const kept = useRef<Spots>(NONE);

  const lay = useCallback((byHand: boolean) => {
    turn.current += 1;
    const mine = turn.current;
    const began = performance.now();
    setBusy(true);
    void laidOut(latest.current, byHand).then((spots) => {
      if (mine !== turn.current) return;
      kept.current = spots;
      setBase(spots);
      setTookMs(performance.now() - began);
      setBusy(false);
    });
  }, []);
  const tidy = useCallback(() => lay(true), [lay]);

  const started = drawn.items.length > 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another session is another picture
  useEffect(() => {
    kept.current = NONE;
    setBase(NONE);
    if (started) lay(false);
    return () => {
      turn.current += 1;
    };
  }, [sessionId, started, lay]);

  const spots = useMemo(() => {
    if (base.size === 0) return NONE;
    // What was placed a moment ago stands too, or the second newcomer would take the first one's place.
    const standing = kept.current.size === 0 ? base : kept.current;
    const shown = drawn.items.filter((item) => standing.has(item.id)).length;
    const next = shown === drawn.items.length && shown === standing.size ? standing : grown(standing, drawn);
    kept.current = next;
    return next;
  }, [base, drawn]);

  // Another part was drawn, a run opened amid the picture or a parent came late: what stands is wrong now.
  const strange = useMemo(() => spots.size > 0 && !isSound(spots, drawn), [spots, drawn]);
  const mended = useRef<Drawn | null>(null);
  useEffect(() => {
    if (!strange || mended.current === drawn) return;
    mended.current = drawn;
    lay(false);
  }, [strange, drawn, lay]);

  return { spots, busy, tookMs, tidy };
}
