// An endless list that is live at its top: the first page is refetched, older ones are fetched once. Rows are
// identified by their number, so that a row that moves from one page to the next is listed once.
import { useEffect, useMemo, useState } from "react";
import type { Problem as Refused } from "~/api/client";
import { call, Problem } from "~/api/client";
import { useApi } from "~/api/queries";
import type { Answers, Queries } from "~/protocol/openapi";
import { carried } from "./paging";

type Paths = "/v1/audit/tenant" | "/v1/audit/checkpoints" | "/v1/thought-sessions";
type Item<P extends Paths> = Answers[`GET ${P}`]["items"][number];

interface Older<T> {
  of: string;
  items: readonly T[];
  next: string | null | undefined;
}

export function usePaged<P extends Paths>(
  path: P,
  query: Queries[`GET ${P}`],
  keyOf: (item: Item<P>) => number | string,
  every: number | false,
) {
  const of = JSON.stringify(query);
  const first = useApi(path, query as never, { every, keep: true });
  const [kept, setOlder] = useState<Older<Item<P>>>({ of, items: [], next: undefined });
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refused | null>(null);
  // Belongs to another query: dropped with it.
  const older = kept.of === of ? kept : { of, items: [], next: undefined };
  const data = first.data as { items: Item<P>[]; next_cursor: string | null } | undefined;
  const newest = data?.items;
  useEffect(() => {
    if (!data) return;
    setOlder((now) => {
      if (now.of !== of || now.next === undefined) return now;
      const items = carried(now.items, data, keyOf);
      if (items === null) return { of, items: [], next: undefined };
      return items === now.items ? now : { ...now, items };
    });
  }, [data, of, keyOf]);
  const rows = useMemo(() => {
    const known = new Map<number | string, Item<P>>();
    for (const one of [...(newest ?? []), ...older.items])
      if (!known.has(keyOf(one))) known.set(keyOf(one), one);
    return [...known.values()];
  }, [newest, older.items, keyOf]);
  const more = (older.next === undefined ? data?.next_cursor : older.next) ?? null;
  const fetchMore = async () => {
    if (!more || busy) return;
    setBusy(true);
    setProblem(null);
    try {
      const page = await call<{ items: Item<P>[]; next_cursor: string | null }>("GET", path, {
        query: { ...(query as Record<string, string>), cursor: more },
      });
      // While no older page was requested, the first page may have moved on: keep its rows.
      const before = older.next === undefined ? (newest ?? []) : older.items;
      setOlder({ of, items: [...before, ...page.items], next: page.next_cursor });
    } catch (error) {
      if (error instanceof Problem) setProblem(error);
      else throw error;
    } finally {
      setBusy(false);
    }
  };
  return { first, rows, more, busy, problem, fetchMore: () => void fetchMore() };
}
