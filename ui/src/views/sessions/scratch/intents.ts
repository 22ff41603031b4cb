// The intents of all agents of a session, as one stream. Pure.
import type { Graph, Step } from "../dag/graph";

export const MAX_LINES = 400;

export interface Lines {
  lines: Step[];
  older: number;
}

/** The last lines of one agent or of all, oldest first; up to a moment if given. */
export function linesOf(
  graph: Graph,
  { who, at = null, most = MAX_LINES }: { who?: string; at?: number | null; most?: number } = {},
): Lines {
  const intents = graph.steps.filter(
    (step) =>
      step.intent !== null &&
      step.message_type !== "heartbeat" &&
      (!who || step.agent_id === who) &&
      (at === null || step.sequence_number <= at),
  );
  return { lines: intents.slice(-most), older: Math.max(0, intents.length - most) };
}

/** The index of a moment among the steps: the last that had happened by then. */
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
