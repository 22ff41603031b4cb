// What all agents of a session say they are about to do, as one stream. Pure.
import type { Graph, Step } from "../dag/graph";

export const MOST_LINES = 400;

export interface Lines {
  lines: Step[];
  older: number;
}

/** The last lines of one agent or of all, oldest first; up to a moment if one is named. */
export function linesOf(
  graph: Graph,
  { who, at = null, most = MOST_LINES }: { who?: string; at?: number | null; most?: number } = {},
): Lines {
  const said = graph.steps.filter(
    (step) =>
      step.intent !== null &&
      step.message_type !== "heartbeat" &&
      (!who || step.agent_id === who) &&
      (at === null || step.sequence_number <= at),
  );
  return { lines: said.slice(-most), older: Math.max(0, said.length - most) };
}

/** The place of a moment among the steps: the last that had happened by then. */
export function placeAt(steps: readonly Step[], at: number | null): number {
  if (at === null) return steps.length - 1;
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle]?.sequence_number ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
