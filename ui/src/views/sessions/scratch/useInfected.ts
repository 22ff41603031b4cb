// The steps reached by a claim, by sequence number: the one named in the URL, else one marked false here.
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import type { InfectionAnswer } from "~/protocol/openapi";
import type { Strength } from "../dag/paint";

export interface Infected {
  fact: string | undefined;
  steps: ReadonlyMap<number, Strength>;
}

export function strengths(data: InfectionAnswer | undefined): ReadonlyMap<number, Strength> {
  const steps = new Map<number, Strength>();
  if (!data) return steps;
  for (const step of data.steps) steps.set(step.sequence_number, step.strength);
  return steps.set(data.source.sequence_number, "source");
}

export function useInfected(sessionId: string, named: string | undefined, wanted: boolean): Infected {
  const memory = useApi(
    "/v1/memory",
    { session: sessionId, limit: 200 },
    { enabled: wanted && named === undefined, every: 5_000 },
  );
  const fact = named ?? memory.data?.items.find((item) => item.marked_false !== null)?.source_fact_id;
  const query = useApi(
    "/v1/facts/{fact_id}/infection",
    { limit: 500 },
    { params: { fact_id: fact ?? "" }, enabled: wanted && fact !== undefined, every: 5_000 },
  );
  const steps = useMemo(() => strengths(wanted ? query.data : undefined), [query.data, wanted]);
  return { fact: wanted ? fact : undefined, steps };
}
