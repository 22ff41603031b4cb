// Where clusters stand: found in their names, or said by operators. Pure.
import type { Place, RegionsAnswer } from "~/protocol/openapi";
import type { Values } from "../parts/useForm";

export interface Line {
  cluster: string;
  /** Where it stands unless it is said for itself, and why; null where nothing says it. */
  found: string | null;
}

/** Every cluster that is there or was placed by hand, those without a place first. */
export function linesOf(answer: RegionsAnswer): Line[] {
  const lines = new Map<string, Line>();
  for (const cluster of answer.unplaced) lines.set(cluster, { cluster, found: null });
  for (const { cluster_id, name, by } of answer.placed)
    lines.set(cluster_id, {
      cluster: cluster_id,
      found: by === "name" ? `${name}, by its name` : byPattern(cluster_id, name, answer.clusters),
    });
  for (const cluster of Object.keys(answer.clusters))
    if (!lines.has(cluster)) lines.set(cluster, { cluster, found: null });
  return [...lines.values()];
}

/** `onprem-*` places what begins so. */
function byPattern(cluster: string, name: string, said: Record<string, Place>): string | null {
  const pattern = Object.keys(said).find((one) => one.endsWith("*") && cluster.startsWith(one.slice(0, -1)));
  return pattern ? `${name}, by ${pattern}` : null;
}

/** "" leaves it to the name, "-" keeps it off the map, "@" is a place by coordinates that is not changed here. */
export function valuesOf(answer: RegionsAnswer): Values {
  const values: Values = {};
  for (const { cluster } of linesOf(answer)) {
    const place = answer.clusters[cluster];
    values[cluster] = !place ? "" : place.region ? place.region : place.lat != null ? "@" : "-";
  }
  return values;
}

export function placesOf(values: Values, before: Record<string, Place>): Record<string, Place> {
  const places: Record<string, Place> = {};
  for (const [cluster, said] of Object.entries(values)) {
    if (said === "") continue;
    const kept = before[cluster];
    if (said === "@") {
      if (kept) places[cluster] = kept;
    } else places[cluster] = said === "-" ? {} : { region: String(said) };
  }
  return places;
}
