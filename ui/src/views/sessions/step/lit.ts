// Which steps an answer lights in the graph, by sequence number. Pure.
import type { BlastAnswer, CausesAnswer } from "~/protocol/openapi";

export interface Lit {
  /** What was asked, of which step: said above the graph while it is lit. */
  words: string;
  origin: number;
  steps: ReadonlyMap<number, string>;
}

export function litByBlast(data: BlastAnswer, origin: number): Lit {
  const lit = new Map(data.steps.map((step) => [step.sequence_number, step.strength as string]));
  return { words: "blast radius", origin, steps: lit.set(origin, "origin") };
}

export function litByCauses(data: CausesAnswer, origin: number): Lit {
  const lit = new Map<number, string>();
  for (const item of data.items) for (const one of item.path) lit.set(one.sequence_number, "way");
  for (const item of data.items) lit.set(item.sequence_number, "cause");
  return { words: "root causes", origin, steps: lit };
}
