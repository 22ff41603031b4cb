// The hits of a query: the first page is refetched every few seconds, the others as they scroll into view.
// While the user reads further down, or peeks, nothing shifts: newer hits are offered instead of inserted.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { get } from "~/api/client";
import { useApi } from "~/api/queries";
import type { SearchAnswer } from "~/protocol/openapi";
import { PAGE, Pages, type Part } from "./pages";
import type { Mode } from "./queryText";

const LIVE_MS = 5_000;
/** Ranking is more expensive for the gateway than listing. */
const RANKED_MS = 20_000;

interface TakenPages {
  key: string;
  /** Another query starts at its top. */
  turn: number;
  answer: SearchAnswer;
  pages: Pages;
}

export function useHits(q: string, mode: Mode, isPeeking: boolean) {
  const key = `${mode}\n${q}`;
  const [taken, setTaken] = useState<TakenPages | null>(null);
  const isRanked = (taken?.answer.query.words.length ?? 0) > 0 || taken?.answer.query.meaning != null;
  const request = useApi(
    "/v1/search",
    { q, mode, limit: PAGE },
    { every: isRanked ? RANKED_MS : LIVE_MS, keep: true },
  );
  const onTopRef = useRef(true);
  const answer = request.isPlaceholderData ? undefined : (request.data as SearchAnswer | undefined);

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
    /** What is shown belongs to the previous query. */
    isOld: taken !== null && taken.key !== key,
    error: request.error,
    newer,
    takeNewer: () => answer && take(answer, true),
    onTop: useCallback((isTop: boolean) => {
      onTopRef.current = isTop;
    }, []),
    refetch: () => void request.refetch(),
  };
}
