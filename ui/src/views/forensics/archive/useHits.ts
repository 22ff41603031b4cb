// The hits of a question: the first page is asked again every few seconds, the others as they come into sight.
// While one reads further down, or peeks, nothing shifts: what is newer is offered instead of being put in.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { get } from "~/api/client";
import { useAnswer } from "~/api/questions";
import type { SearchAnswer } from "~/protocol/openapi";
import { PAGE, Pages, type Part } from "./pages";
import type { Mode } from "./reading";

const LIVE_MS = 5_000;
/** Ranking costs the gateway more than listing. */
const RANKED_MS = 20_000;

interface Taken {
  key: string;
  /** Another one begins at its top. */
  turn: number;
  answer: SearchAnswer;
  pages: Pages;
}

export function useHits(q: string, mode: Mode, isPeeking: boolean) {
  const key = `${mode}\n${q}`;
  const [taken, setTaken] = useState<Taken | null>(null);
  const isRanked = (taken?.answer.query.words.length ?? 0) > 0 || taken?.answer.query.meaning != null;
  const asked = useAnswer(
    "/v1/search",
    { q, mode, limit: PAGE },
    { every: isRanked ? RANKED_MS : LIVE_MS, keep: true },
  );
  const onTopRef = useRef(true);
  const answer = asked.isPlaceholderData ? undefined : (asked.data as SearchAnswer | undefined);

  const take = useCallback(
    (fresh: SearchAnswer, fromTop: boolean) => {
      const fetchPart = (cursor: string) =>
        get("/v1/search", { query: { q, mode, limit: PAGE, cursor } }) as Promise<Part>;
      onTopRef.current = true;
      const pages = new Pages(fresh, fetchPart);
      setTaken((before) => {
        const turn = (before?.turn ?? 0) + (fromTop || before?.key !== key ? 1 : 0);
        return { key, turn, answer: fresh, pages };
      });
    },
    [key, q, mode],
  );
  const newer = useMemo(() => {
    if (!taken || !answer || taken.key !== key || taken.answer === answer) return 0;
    const top = new Set(taken.answer.items.map((one) => one.message_id));
    return answer.items.filter((one) => !top.has(one.message_id)).length;
  }, [taken, answer, key]);
  useEffect(() => {
    if (!answer || taken?.answer === answer) return;
    const reading = !onTopRef.current || isPeeking || document.activeElement?.closest("table") != null;
    if (taken?.key !== key || !reading) take(answer, false);
  }, [answer, taken, key, isPeeking, take]);

  return {
    answer: taken?.answer,
    pages: taken?.pages,
    turn: taken?.turn ?? 0,
    isRanked,
    /** What is shown answers the question before this one. */
    isOld: taken !== null && taken.key !== key,
    error: asked.error,
    newer,
    takeNewer: () => answer && take(answer, true),
    onTop: useCallback((isTop: boolean) => {
      onTopRef.current = isTop;
    }, []),
    refetch: () => void asked.refetch(),
  };
}
