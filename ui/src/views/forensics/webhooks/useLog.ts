// The live webhook log: both feeds, the newest page of each refetched every few seconds, older ones when the
// end scrolls into view. Seen rows stay, so that rows pushed down by newer ones leave no gap.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { get, type Problem } from "~/api/client";
import { useApi } from "~/api/queries";
import type { HookCallItem, LoggedDelivery } from "~/protocol/openapi";
import { isApart } from "../paging";
import { asked, type Entry, type Filters, fits, folded, isHook, merged, ofCall, ofDelivery } from "./log";

const PAGE = 200;
const EVERY_MS = 3_000;

interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

function useFeed<T>(
  key: readonly (string | null)[],
  enabled: boolean,
  ask: (cursor: string | null, signal: AbortSignal) => Promise<Page<T>>,
  nameOf: (row: T) => string,
  timeOf: (row: T) => string,
) {
  const [turn, setTurn] = useState(0);
  const newest = useQuery<Page<T>, Problem>({
    queryKey: [...key, "newest"],
    queryFn: ({ signal }) => ask(null, signal),
    refetchInterval: EVERY_MS,
    enabled,
  });
  const older = useInfiniteQuery<Page<T>, Problem>({
    queryKey: [...key, "older", turn],
    enabled: false,
    initialPageParam: newest.data?.next_cursor ?? null,
    queryFn: ({ pageParam, signal }) => ask(pageParam as string | null, signal),
    getNextPageParam: (page) => page.next_cursor,
  });
  const name = key.join("\n");
  const seen = useRef<{ name: string; rows: T[] }>({ name, rows: [] });
  const { rows, apart } = useMemo(() => {
    if (!enabled || !newest.data) return { rows: [], apart: false };
    const before = seen.current.name === name ? seen.current.rows : [];
    if (isApart(before, newest.data, nameOf)) {
      seen.current = { name, rows: newest.data.items };
      return { rows: newest.data.items, apart: true };
    }
    const known = new Set(before.map(nameOf));
    const pages = older.data?.pages.flatMap((page) => page.items) ?? [];
    const all = [...before, ...pages.filter((row) => !known.has(nameOf(row)))];
    const next = folded(all, newest.data, nameOf, timeOf);
    seen.current = { name, rows: next };
    return { rows: next, apart: false };
  }, [enabled, name, newest.data, older.data, nameOf, timeOf]);
  // More arrived between refetches than fit a page: older ones are refetched from where this page ends.
  useEffect(() => {
    if (apart) setTurn((now) => now + 1);
  }, [apart]);
  const last = older.data?.pages.at(-1);
  const more = enabled && (newest.data === undefined || (last ?? newest.data).next_cursor !== null);
  return {
    rows,
    more: more && !newest.error,
    ready: !enabled || newest.data !== undefined,
    loading: older.isFetching,
    problem: enabled ? (older.error ?? newest.error) : null,
    next: () => void (older.data ? older.fetchNextPage() : older.refetch()),
    again: () => void newest.refetch(),
  };
}

const deliveryName = (row: LoggedDelivery) => row.delivery_id;
const deliveryTime = (row: LoggedDelivery) => row.created_at;
const callName = (row: HookCallItem) => row.call_id;
const callTime = (row: HookCallItem) => row.at;
const OUT_STATES = { done: "delivered", waiting: "waiting", dead: "dead", refused: null } as const;

export interface Log {
  entries: Entry[];
  /** The number fetched, before the text filter. */
  came: number;
  ready: boolean;
  /** There is nothing older. */
  whole: boolean;
  loading: boolean;
  problem: Problem | null;
  more: () => void;
  again: () => void;
}

export function useLog(filters: Filters): Log {
  const { endpoint, event, state, signature } = filters;
  const hooks = useApi("/v1/webhooks/in", undefined, { every: 15_000 });
  const wants = asked(filters);
  const outState = state === null ? null : OUT_STATES[state];
  const sent = useFeed<LoggedDelivery>(
    ["/v1/webhooks/out/deliveries", endpoint, event, outState],
    wants.out,
    (cursor, signal) =>
      get("/v1/webhooks/out/deliveries", {
        query: { endpoint_id: endpoint, event_type: event, state: outState, cursor, limit: PAGE },
        signal,
      }),
    deliveryName,
    deliveryTime,
  );
  const hook = isHook(endpoint) ? endpoint : null;
  const came = useFeed<HookCallItem>(
    ["/v1/webhooks/in/calls", hook, signature],
    wants.in,
    (cursor, signal) =>
      get("/v1/webhooks/in/calls", { query: { hook_id: hook, signature, cursor, limit: PAGE }, signal }),
    callName,
    callTime,
  );
  const named = hooks.data?.items;
  const out = useMemo(() => sent.rows.map(ofDelivery), [sent.rows]);
  const inward = useMemo(() => came.rows.map((call) => ofCall(call, named ?? [])), [came.rows, named]);
  const { entries, behind } = useMemo(
    () =>
      merged([
        { entries: out, more: sent.more },
        { entries: inward, more: came.more },
      ]),
    [out, inward, sent.more, came.more],
  );
  const { q } = filters;
  const shown = useMemo(() => entries.filter((entry) => fits(entry, { q, state })), [entries, q, state]);
  const feeds = [sent, came];
  return {
    entries: shown,
    came: entries.length,
    ready: sent.ready && came.ready,
    whole: behind === null,
    loading: sent.loading || came.loading,
    problem: sent.problem ?? came.problem ?? hooks.error,
    more: () => {
      const feed = behind === null ? undefined : feeds[behind];
      if (feed && !feed.loading) feed.next();
    },
    again: () => {
      sent.again();
      came.again();
    },
  };
}
