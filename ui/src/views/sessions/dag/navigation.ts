// Targets of the arrow keys: up to a parent, down to a child, sideways among siblings, and in time. Pure.
import type { Graph, Step } from "./graph";

export type Way = "up" | "down" | "left" | "right" | "older" | "newer";

export function walk(graph: Graph, from: string | undefined, way: Way): Step | undefined {
  const here = from === undefined ? undefined : graph.byId.get(from);
  if (!here) return way === "newer" || way === "down" ? graph.steps[0] : graph.steps.at(-1);
  switch (way) {
    case "up":
      return named(graph, graph.parents.get(here.id)?.[0]);
    case "down":
      return named(graph, graph.children.get(here.id)?.[0]);
    case "left":
      return siblingOf(graph, here, -1);
    case "right":
      return siblingOf(graph, here, 1);
    case "older":
      return graph.steps[place(graph, here) - 1];
    case "newer":
      return graph.steps[place(graph, here) + 1];
  }
}

/** Children of the same first parent; of a root, the other roots. */
function siblingOf(graph: Graph, here: Step, by: -1 | 1): Step | undefined {
  const parent = graph.parents.get(here.id)?.[0];
  const row =
    parent === undefined
      ? graph.steps.filter((step) => !graph.parents.has(step.id)).map((step) => step.id)
      : (graph.children.get(parent) ?? []);
  const at = row.indexOf(here.id) + by;
  return at < 0 ? undefined : named(graph, row[at]);
}

function place(graph: Graph, step: Step): number {
  let low = 0;
  let high = graph.steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((graph.steps[middle]?.sequence_number ?? 0) < step.sequence_number) low = middle + 1;
    else high = middle;
  }
  return low;
}

function named(graph: Graph, id: string | undefined): Step | undefined {
  return id === undefined ? undefined : graph.byId.get(id);
}
