// Known values for completion: agents and clusters of the fleet, tools and sessions of the facets.
import { useMemo } from "react";
import { useApi } from "~/api/queries";
import type { Facets } from "~/protocol/openapi";
import type { Values } from "./completions";

export function useKnown(facets: Facets | null): Values {
  const agents = useApi("/v1/agents");
  return useMemo(() => {
    const items = agents.data?.items ?? [];
    const clusters = items.flatMap((one) => (one.cluster_id ? [one.cluster_id] : []));
    return {
      agent: items.map((one) => one.agent_id),
      cluster: [...new Set(clusters)].sort(),
      tool: facets?.tool.map((one) => one.value) ?? [],
      session: facets?.session.map((one) => one.value) ?? [],
    };
  }, [agents.data, facets]);
}
