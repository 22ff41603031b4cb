// Agents and capabilities, refetched every few seconds; a large fleet less often, since each response is the
// whole of it. Unchanged rows keep their object identity.
import { useMemo, useState } from "react";
import { useApi } from "~/api/queries";
import { type Group, groupsOf } from "./registryRows";

const MANY = 300;

export function useRegistry() {
  const [many, setMany] = useState(false);
  const every = many ? 15_000 : 4_000;
  const agents = useApi("/v1/agents", undefined, { every, keep: true });
  const pages = useApi("/v1/capabilities", undefined, { every, keep: true });
  const isMany = (agents.data?.items.length ?? 0) > MANY;
  if (isMany !== many) setMany(isMany);
  const data = useMemo(
    (): { groups: Group[]; agents: NonNullable<typeof agents.data>["items"] } | undefined =>
      agents.data &&
      pages.data && { groups: groupsOf(pages.data.items, agents.data.items), agents: agents.data.items },
    [agents.data, pages.data],
  );
  return {
    data,
    error: agents.error ?? pages.error,
    isPending: agents.isPending || pages.isPending,
    refetch: () => {
      void agents.refetch();
      void pages.refetch();
    },
  };
}
