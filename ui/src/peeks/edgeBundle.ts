// Edges the map draws as one: which records an id like `cluster:a ⇒ type:b` stands for. Pure.
import type { EdgeRecord, NodeRecord } from "~/graph";

const ARROW = " ⇒ ";

export function endsOf(id: string): [string, string] | null {
  const at = id.indexOf(ARROW);
  return at === -1 ? null : [id.slice(0, at), id.slice(at + ARROW.length)];
}

/** Whether an agent belongs to a hull or a group, or is the end itself. */
export function belongs(end: string, agent: string | null, node: NodeRecord | undefined): boolean {
  if (agent === null) return false;
  if (end === agent) return true;
  if (!node) return false;
  const [cluster, type] = [node.cluster_id ?? "", node.agent_type ?? ""];
  return end === `cluster:${cluster}` || end === `type:${type}` || end === `group:${cluster}/${type}`;
}

/** The edges of a bundle, unhealthy and busiest first. */
export function bundled(
  id: string,
  edges: Iterable<EdgeRecord>,
  nodeOf: (agent: string) => NodeRecord | undefined,
): EdgeRecord[] {
  const ends = endsOf(id);
  if (!ends) return [];
  const found: EdgeRecord[] = [];
  for (const edge of edges) {
    const to = edge.to ?? edge.address ?? null;
    const start = belongs(ends[0], edge.from, nodeOf(edge.from));
    if (start && belongs(ends[1], to, edge.to === null ? undefined : nodeOf(edge.to))) found.push(edge);
  }
  const trouble = (edge: EdgeRecord) => (edge.status === "Blocked" ? 2 : edge.status === "Alert" ? 1 : 0);
  return found.sort(
    (a, b) => trouble(b) - trouble(a) || b.rate_per_s - a.rate_per_s || (a.id < b.id ? -1 : 1),
  );
}
