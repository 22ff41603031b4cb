// React Query hooks for the gateway's GET routes, and how long a response is fresh. A refusal is final; only
// an unreachable, overloaded or starting gateway is retried.
import { QueryClient, useQuery } from "@tanstack/react-query";
import type { Answers, Queries } from "~/protocol/openapi";
import { type GetPath, get, Problem } from "./client";

export const questions = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      refetchOnWindowFocus: true,
      retry: (tries, error) => error instanceof Problem && [0, 429, 503].includes(error.code) && tries < 3,
    },
    mutations: { retry: false },
  },
});

// Lists of which a view needs every page: items beyond the first thousand must be found too.
const WHOLE = new Set(["/v1/agents"]);

interface Paged {
  items: unknown[];
  next_cursor: string | null;
}

async function whole(ask: (cursor: string | null) => Promise<Paged>): Promise<Paged> {
  const first = await ask(null);
  const items = [...first.items];
  let cursor = first.next_cursor;
  while (cursor !== null) {
    const page = await ask(cursor);
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return { items, next_cursor: null };
}

interface Asking {
  params?: Record<string, string | number>;
  every?: number | false;
  enabled?: boolean;
  keep?: boolean;
}

/**
 * Queries one route; the key is the address, so two users share one response. `keep` shows the previous data
 * while loading.
 */
export function useApi<P extends GetPath>(
  path: P,
  query?: `GET ${P}` extends keyof Queries ? Queries[`GET ${P}`] : Record<string, never>,
  { params, every = false, enabled = true, keep = false }: Asking = {},
) {
  return useQuery<Answers[`GET ${P}` & keyof Answers], Problem>({
    queryKey: [path, params ?? {}, query ?? {}],
    queryFn: ({ signal }) => {
      const ask = (more: object) => get(path, { params, query: { ...query, ...more }, signal } as never);
      return WHOLE.has(path) ? (whole((cursor) => ask({ cursor }) as never) as never) : ask({});
    },
    refetchInterval: every,
    enabled,
    placeholderData: keep ? (before) => before : undefined,
  });
}

/** After a command: refetches every query whose path begins with one of these. */
export function refetch(...paths: string[]): void {
  void questions.invalidateQueries({
    predicate: (query) => paths.some((path) => String(query.queryKey[0]).startsWith(path)),
  });
}
