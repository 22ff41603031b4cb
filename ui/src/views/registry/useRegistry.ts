// Who is there and what they can do, asked every few seconds; a large fleet less often, since each answer is
// the whole of it. Rows that did not change are the same objects again.
import { useMemo, useState } from "react";
import { useAnswer } from "~/api/questions";
import { type Group, groupsOf } from "./pages";

const MANY = 300;

export function useRegistry() {
  const [many, setMany] = useState(false);
  const every = many ? 15_000 : 4_000;
  const agents = useAnswer("/v1/agents", undefined, { every, keep: true });
  const pages = useAnswer("/v1/capabilities", undefined, { every, keep: true });
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
