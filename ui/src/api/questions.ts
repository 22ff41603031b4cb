// What was asked of the gateway and how long an answer holds. A refusal is final; only a gateway that is
// away, full or starting is asked again.
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

// Lists of which a view needs every page: what is not among the first thousand must still be found.
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

/** Ask one route; the key is the address, so two askers share one answer. `keep` shows the last meanwhile. */
export function useAnswer<P extends GetPath>(
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

/** After an act: ask again whatever begins with one of these paths. */
export function askAgain(...paths: string[]): void {
  void questions.invalidateQueries({
    predicate: (query) => paths.some((path) => String(query.queryKey[0]).startsWith(path)),
  });
}
