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
    queryFn: ({ signal }) => get(path, { params, query, signal } as never),
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
