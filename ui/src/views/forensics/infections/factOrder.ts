// The order of the facts list: those marked false on top, last marked first, then the rest. Pure.
import type { FactItem } from "~/protocol/openapi";

export function listed(
  facts: readonly FactItem[],
  marked: readonly FactItem[],
  { q, agent }: { q?: string | undefined; agent?: string | undefined },
  sort: string | undefined,
): FactItem[] {
  const fits = (fact: FactItem) =>
    (!q || fact.text.toLowerCase().includes(q.toLowerCase())) && (!agent || fact.agent_id === agent);
  const top = marked.filter(fits);
  const known = new Set(top.map((fact) => fact.fact_id));
  const rest = facts.filter((fact) => !known.has(fact.fact_id));
  const down = sort?.startsWith("-") ? -1 : 1;
  if (sort?.replace(/^-/, "") === "uses") rest.sort((a, b) => down * (b.uses - a.uses));
  else if (down === -1) rest.reverse();
  return [...top, ...rest];
}
