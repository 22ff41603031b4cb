// Keeps the layout stable: computed once per session (and on Re-layout), growth from then on. While the
// worker computes, the old layout stays; its result is applied in one go.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Drawn } from "./collapse";
import { layOut } from "./elkWorker";
import { grown, isSound, type Spots } from "./layout";

const NONE: Spots = new Map();

export interface PlacedGraph {
  spots: Spots;
  busy: boolean;
  tookMs: number | null;
  tidy: () => void;
}

export function useLayout(sessionId: string, drawn: Drawn): PlacedGraph {
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
    void layOut(latest.current, byHand).then((spots) => {
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
    // Recently placed cards count too, or a second new one would take the same position.
    const standing = kept.current.size === 0 ? base : kept.current;
    const shown = drawn.items.filter((item) => standing.has(item.id)).length;
    const next = shown === drawn.items.length && shown === standing.size ? standing : grown(standing, drawn);
    kept.current = next;
    return next;
  }, [base, drawn]);

  // Another part was drawn, a run was expanded or a parent arrived late: the present layout is invalid.
  const strange = useMemo(() => spots.size > 0 && !isSound(spots, drawn), [spots, drawn]);
  const mended = useRef<Drawn | null>(null);
  useEffect(() => {
    if (!strange || mended.current === drawn) return;
    mended.current = drawn;
    lay(false);
  }, [strange, drawn, lay]);

  return { spots, busy, tookMs, tidy };
}
