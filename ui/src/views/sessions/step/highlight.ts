// The steps an analysis highlights in the graph, by sequence number. Pure.
import type { BlastAnswer, CausesAnswer } from "~/protocol/openapi";

export interface Highlight {
  /** The analysis and its step: shown above the graph while highlighted. */
  words: string;
  origin: number;
  steps: ReadonlyMap<number, string>;
}

export function highlightBlast(data: BlastAnswer, origin: number): Highlight {
  const lit = new Map(data.steps.map((step) => [step.sequence_number, step.strength as string]));
  return { words: "blast radius", origin, steps: lit.set(origin, "origin") };
}

export function highlightCauses(data: CausesAnswer, origin: number): Highlight {
  const lit = new Map<number, string>();
  for (const item of data.items) for (const one of item.path) lit.set(one.sequence_number, "way");
  for (const item of data.items) lit.set(item.sequence_number, "cause");
  return { words: "root causes", origin, steps: lit };
}
