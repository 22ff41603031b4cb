// The sessions to show: the thousand the gateway keeps live, and pages of older ones loaded on request or
// because a search or filter may match them.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { get, type Problem } from "~/api/client";
import { useRecords } from "~/live/useLive";
import type { PageOfSessionItem } from "~/protocol/openapi";
import { type FilteredSessions, type Filters, isFiltered, pick } from "./filters";
import { rowOf, type SessionRow } from "./session";

/** The live topic's limit (S289): fewer means that there are no others. */
const MAX_LIVE = 1_000;
const EMPTY: ReadonlySet<string> = new Set();
// Unchanged records keep their row object: rows compare by identity.
const made = new WeakMap<SessionRow, SessionRow>();

function kept(record: SessionRow): SessionRow {
  let row = made.get(record);
  if (!row) {
    row = rowOf(record);
    made.set(record, row);
  }
  return row;
}

export interface Sessions extends FilteredSessions {
  live: readonly SessionRow[];
  ready: boolean;
  /** Older ones may exist that are not loaded. */
  hasOlder: boolean;
  loading: boolean;
  problem: Problem | null;
  loadOlder: () => void;
}

export function useSessions(filters: Filters, wantsOlder: boolean): Sessions {
  const followed = useRecords<SessionRow>("sessions", "session");
  const rows = useMemo(() => followed.items.map(kept), [followed.items]);
  const isFull = rows.length >= MAX_LIVE;
  const asks = filters.q.length > 1 || wantsOlder || (isFull && isFiltered(filters));
  const older = useInfiniteQuery<PageOfSessionItem, Problem>({
    queryKey: ["/v1/sessions", "older", filters.q, filters.statuses.join(), filters.severity, filters.stuck],
    enabled: asks,
    staleTime: 15_000,
    initialPageParam: null,
    queryFn: ({ pageParam, signal }) =>
      get("/v1/sessions", { query: question(filters, pageParam) as never, signal }),
    getNextPageParam: (page) => page.next_cursor,
  });
  const loaded = useMemo(
    () =>
      (asks ? (older.data?.pages ?? []) : []).flatMap((page) =>
        page.items.map((item) => rowOf(item as SessionRow)),
      ),
    [asks, older.data],
  );
  const found = useMemo(
    () => (filters.q.length > 1 ? new Set(loaded.map((row) => row.session_id)) : EMPTY),
    [loaded, filters.q],
  );
  // A page without new rows (the newest are live already) is skipped.
  const last = asks ? older.data?.pages.at(-1) : undefined;
  const brings = useMemo(() => {
    const live = new Set(rows.map((row) => row.session_id));
    return last?.items.some((item) => !live.has(item.session_id)) ?? true;
  }, [last, rows]);
  const { fetchNextPage, hasNextPage, isFetching } = older;
  useEffect(() => {
    if (wantsOlder && !brings && hasNextPage && !isFetching) void fetchNextPage();
  }, [wantsOlder, brings, hasNextPage, isFetching, fetchNextPage]);
  const picked = useMemo(() => pick(rows, loaded, filters, found), [rows, loaded, filters, found]);
  return {
    ...picked,
    live: rows,
    ready: followed.ready || loaded.length > 0,
    hasOlder: asks && older.data ? hasNextPage : isFull,
    loading: isFetching,
    problem: asks ? older.error : null,
    // The first page is always fetched when the URL asks for older ones.
    loadOlder: () => older.data !== undefined && void fetchNextPage(),
  };
}

/** A single status is filtered by the gateway; with several, all are fetched and filtered here. */
function question(filters: Filters, cursor: unknown): Record<string, unknown> {
  return {
    q: filters.q.length > 1 ? filters.q : null,
    status: filters.statuses.length === 1 ? filters.statuses[0] : null,
    severity: filters.severity === "normal" ? null : filters.severity,
    stuck: filters.stuck || null,
    cursor,
    limit: isFiltered(filters) ? 200 : 1_000,
  };
}
