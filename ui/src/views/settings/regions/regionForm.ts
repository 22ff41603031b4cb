// Regions of clusters: recognised from their names, or set by operators. Pure.
import type { ClusterPlace, RegionsAnswer } from "~/protocol/openapi";
import type { Values } from "../parts/useForm";

export interface Line {
  cluster: string;
  /** Its region unless set explicitly, and why; null if unknown. */
  found: string | null;
}

/** Every known or configured cluster, those without a region first. */
export function linesOf(answer: RegionsAnswer): Line[] {
  const lines = new Map<string, Line>();
  for (const cluster of answer.unplaced) lines.set(cluster, { cluster, found: null });
  for (const { cluster_id, name, by } of answer.placed)
    lines.set(cluster_id, {
      cluster: cluster_id,
      found: by === "name" ? `${name}, from its name` : byPattern(cluster_id, name, answer.clusters),
    });
  for (const cluster of Object.keys(answer.clusters))
    if (!lines.has(cluster)) lines.set(cluster, { cluster, found: null });
  return [...lines.values()];
}

/** `onprem-*` matches names with that prefix. */
function byPattern(cluster: string, name: string, placement: Record<string, ClusterPlace>): string | null {
  const pattern = Object.keys(placement).find(
    (one) => one.endsWith("*") && cluster.startsWith(one.slice(0, -1)),
  );
  return pattern ? `${name}, by ${pattern}` : null;
}

/** "" uses the name, "-" hides it from the map, "@" is a position by coordinates that is not edited here. */
export function valuesOf(answer: RegionsAnswer): Values {
  const values: Values = {};
  for (const { cluster } of linesOf(answer)) {
    const place = answer.clusters[cluster];
    values[cluster] = !place ? "" : place.region ? place.region : place.lat != null ? "@" : "-";
  }
  return values;
}

export function placesOf(values: Values, before: Record<string, ClusterPlace>): Record<string, ClusterPlace> {
  const places: Record<string, ClusterPlace> = {};
  for (const [cluster, placement] of Object.entries(values)) {
    if (placement === "") continue;
    const kept = before[cluster];
    if (placement === "@") {
      if (kept) places[cluster] = kept;
    } else places[cluster] = placement === "-" ? {} : { region: String(placement) };
  }
  return places;
}
