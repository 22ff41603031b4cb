// The audit events of one agent, newest first, a page at a time; the newest page is refetched every few
// seconds.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get, type Problem } from "~/api/client";
import { useApi } from "~/api/queries";
import type { AgentItem, PageOfAuditEvent } from "~/protocol/openapi";
import { type Line, lineOf, merged, noticed } from "../history";

const PAGE = 200;

export interface Past {
  lines: Line[];
  ready: boolean;
  /** There is nothing older. */
  whole: boolean;
  loading: boolean;
  problem: Problem | null;
  more: () => void;
  again: () => void;
}

export function useHistory({ entity_id, agent_id }: Pick<AgentItem, "entity_id" | "agent_id">): Past {
  const newest = useApi(
    "/v1/audit/entity/{entity_id}",
    { limit: PAGE },
    { params: { entity_id }, every: 5_000, keep: true },
  );
  const alerts = useApi("/v1/alerts", { limit: 200 }, { every: 5_000, keep: true });
  const older = useInfiniteQuery<PageOfAuditEvent, Problem>({
    queryKey: ["/v1/audit/entity/{entity_id}", "older", entity_id],
    enabled: false,
    initialPageParam: newest.data?.next_cursor ?? null,
    queryFn: ({ pageParam, signal }) =>
      get("/v1/audit/entity/{entity_id}", {
        params: { entity_id },
        query: { limit: PAGE, cursor: pageParam as string | null },
        signal,
      }),
    getNextPageParam: (page) => page.next_cursor,
  });
  const lines = useMemo(() => {
    const events = [newest.data, ...(older.data?.pages ?? [])].flatMap((page) => page?.items ?? []);
    return merged(events.map(lineOf), noticed(alerts.data?.items ?? [], agent_id));
  }, [newest.data, older.data, alerts.data, agent_id]);
  const last = older.data?.pages.at(-1);
  return {
    lines,
    ready: newest.data !== undefined,
    whole: newest.data !== undefined && (last ? last.next_cursor === null : newest.data.next_cursor === null),
    loading: older.isFetching,
    problem: older.error ?? newest.error,
    more: () => void (older.data ? older.fetchNextPage() : older.refetch()),
    again: () => void newest.refetch(),
  };
}
