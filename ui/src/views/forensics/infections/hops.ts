// The spread of a claim prepared for display: hops in time order by agent, each with its evidence. Pure.
import type { EvidenceItem, InfectedStep, InfectionAnswer } from "~/protocol/openapi";

export const EVIDENCE: Record<EvidenceItem["kind"], { word: string; means: string }> = {
  source: { word: "origin", means: "the first step that added it to memory" },
  declared: { word: "read", means: "the agent declared that it read this fact from memory" },
  exact: { word: "repeated", means: "the same words, ignoring case" },
  near: { word: "paraphrased", means: "the same numbers, names and dates in other words" },
  derived: { word: "derived", means: "used another fact of an affected step" },
  descent: { word: "downstream", means: "a child of an affected step in the causal graph" },
  message: { word: "messaged", means: "the next step of an agent that an affected step messaged" },
};

/** The best evidence of a step, by which it is listed. */
export function best(step: InfectedStep): EvidenceItem | undefined {
  return [...step.evidence].sort((a, b) => b.weight - a.weight)[0];
}

export interface Dot {
  step: InfectedStep;
  /** The agent's first hop: it is drawn in full, later ones are small. */
  first: boolean;
  /** 0 at the first step, 1 at the last known one. */
  x: number;
  row: number;
  from: { x: number; row: number } | null;
}

export interface Lane {
  agent: string;
  strong: boolean;
}

export interface Drawn {
  lanes: Lane[];
  dots: Dot[];
  /** Agents that are not drawn. */
  more: number;
}

/**
 * One lane per agent in the order they were reached, strong evidence before weak; limited to a readable
 * number.
 */
export function drawn(answer: InfectionAnswer, most: number, weak: boolean): Drawn {
  const steps = answer.steps.filter((step) => weak || step.strength === "strong");
  const firsts = new Map<string, { at: number; strong: boolean }>();
  for (const step of steps) {
    const name = step.agent_id ?? "unknown";
    const known = firsts.get(name);
    const strong = step.strength === "strong";
    if (!known) firsts.set(name, { at: step.sequence_number, strong });
    else {
      known.at = Math.min(known.at, step.sequence_number);
      known.strong ||= strong;
    }
  }
  const source = answer.source.agent_id ?? "unknown";
  const all = [...firsts.entries()].sort(
    ([a, one], [b, two]) =>
      Number(b === source) - Number(a === source) ||
      Number(two.strong) - Number(one.strong) ||
      one.at - two.at,
  );
  const lanes = all.slice(0, most).map(([agent, { strong }]) => ({ agent, strong }));
  const rows = new Map(lanes.map(({ agent }, n) => [agent, n]));
  const times = steps.map((step) => Date.parse(step.at));
  const [start, end] = [Math.min(...times), Math.max(...times)];
  // The first minute shows the spread; a linear scale would crush it under hours of repetition.
  const stretched = (ms: number) => Math.log1p(ms / 1000);
  const at = (step: { at: string }) =>
    end > start ? stretched(Date.parse(step.at) - start) / stretched(end - start) : 0;
  const places = new Map<number, { x: number; row: number }>();
  for (const step of steps) {
    const row = rows.get(step.agent_id ?? "unknown");
    if (row !== undefined) places.set(step.sequence_number, { x: at(step), row });
  }
  const had = new Set<number>();
  const dots = steps.flatMap((step): Dot[] => {
    const place = places.get(step.sequence_number);
    if (!place) return [];
    // How it reached each agent; repetitions need no further line.
    const first = !had.has(place.row);
    had.add(place.row);
    const cause = first ? best(step) : undefined;
    const from =
      cause && cause.kind !== "source" && cause.from_sequence_number !== step.sequence_number
        ? (places.get(cause.from_sequence_number) ?? null)
        : null;
    return [{ step, first, ...place, from }];
  });
  return { lanes, dots, more: all.length - lanes.length };
}

/** "3 agents in 2 sessions": affected ones only. */
export function reached(answer: InfectionAnswer): { agents: number; after: number; sessions: number } {
  const strong = answer.agents.filter((one) => one.strength === "strong");
  return {
    agents: strong.length,
    after: answer.agents.length - strong.length,
    sessions: new Set(strong.flatMap((one) => one.sessions)).size,
  };
}
