// The console's data of a session: members, held messages, interventions. Fetched over HTTP and refetched as
// soon as the live graph has a command that is not listed.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { get, type Problem } from "~/api/client";
import { refetch, useApi } from "~/api/queries";
import { useRecords } from "~/live/useLive";
import type { HoldItem } from "~/protocol/openapi";
import { type LiveCommand, mergedInterventions } from "./interventionState";

/** The gateway filters page by page: a page without items of this session is not the end. */
const PAGES = 20;

export async function holdsOf(session_id: string, signal?: AbortSignal): Promise<HoldItem[]> {
  const found: HoldItem[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES; page += 1) {
    const answer: { items: HoldItem[]; next_cursor: string | null } = await get("/v1/holds", {
      query: { session_id, cursor, limit: 1_000 },
      signal,
    });
    found.push(...answer.items);
    cursor = answer.next_cursor;
    if (cursor === null) break;
  }
  return found;
}

export function useConsole(session_id: string) {
  const params = { session_id };
  const session = useApi("/v1/sessions/{session_id}", undefined, { params, every: 3_000, keep: true });
  const record = useApi("/v1/sessions/{session_id}/interventions", undefined, {
    params,
    every: 5_000,
    keep: true,
  });
  const holds = useQuery<HoldItem[], Problem>({
    queryKey: ["/v1/holds", "of a session", session_id],
    queryFn: ({ signal }) => holdsOf(session_id, signal),
    refetchInterval: 2_000,
  });
  const live = useRecords<LiveCommand>(`session:dag:${session_id}`, "intervention");
  const { items, missing } = useMemo(
    () => mergedInterventions(record.data?.items ?? [], live.items),
    [record.data, live.items],
  );
  useEffect(() => {
    if (missing) refetch("/v1/sessions/{session_id}", "/v1/holds");
  }, [missing]);
  return { session, record, holds, items };
}
