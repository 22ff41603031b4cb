// The scheduler boards' queries in one place: equal queries share one response.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Problem } from "~/api/client";
import { useApi } from "~/api/queries";
import type { DeadLetterItem, JobItem } from "~/protocol/openapi";

const PAGES = 20;
const MANY = 300;

/** Every five seconds; a long list less often, since each refresh fetches all its pages. */
function often(query: { state: { data?: { items: readonly unknown[] } | undefined } }): number {
  return (query.state.data?.items.length ?? 0) > MANY ? 30_000 : 5_000;
}

/** Page by page, up to two thousand items. */
async function whole<T>(
  page: (cursor: string | null) => Promise<{ items: T[]; next_cursor: string | null }>,
) {
  const items: T[] = [];
  let cursor: string | null = null;
  for (let n = 0; n < PAGES; n += 1) {
    const answer: { items: T[]; next_cursor: string | null } = await page(cursor);
    items.push(...answer.items);
    cursor = answer.next_cursor;
    if (cursor === null) break;
  }
  return { items, more: cursor !== null };
}

export function useJobs(reminders: boolean) {
  return useQuery<{ items: JobItem[]; more: boolean }, Problem>({
    queryKey: ["/v1/jobs", "all", reminders],
    queryFn: ({ signal }) =>
      whole((cursor) => get("/v1/jobs", { query: { reminders, cursor, limit: 100 }, signal })),
    refetchInterval: often,
    placeholderData: (before) => before,
  });
}

export type LetterState = DeadLetterItem["state"];
export type LetterKind = DeadLetterItem["kind"];

export function useLetters(state: LetterState, kind: LetterKind | null) {
  return useQuery<{ items: DeadLetterItem[]; more: boolean }, Problem>({
    queryKey: ["/v1/dead-letters", "all", state, kind],
    queryFn: ({ signal }) =>
      whole((cursor) => get("/v1/dead-letters", { query: { state, kind, cursor, limit: 100 }, signal })),
    refetchInterval: often,
    placeholderData: (before) => before,
  });
}

/** The fleet; a large one less often, since each response is the whole of it. */
export function useAgents() {
  const [many, setMany] = useState(false);
  const request = useApi("/v1/agents", undefined, { keep: true, every: many ? 15_000 : 4_000 });
  const isMany = (request.data?.items.length ?? 0) > MANY;
  if (isMany !== many) setMany(isMany);
  return request;
}
