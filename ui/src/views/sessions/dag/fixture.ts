// Graphs for the tests of this folder, written as `b<a` (b follows a), in order of arrival.
import { type Command, type Graph, graphOf, type Link, type Step } from "./graph";

export function step(id: string, number: number, more: Partial<Step> = {}): Step {
  return {
    id,
    version: number,
    sequence_number: number,
    step_id: `step-${id}`,
    message_id: `msg-${id}`,
    message_type: "decision_log",
    agent_id: "writer-1",
    agent_type: "writer",
    intent: `do ${id}`,
    tool: null,
    status: "success",
    state: "forwarded",
    badge: "Thinking",
    confidence: 0.9,
    low_confidence: false,
    gate: null,
    held_because: null,
    is_terminal: false,
    is_root: false,
    orphan: false,
    entropy_score: null,
    tokens: 0,
    cost: 1,
    parent: null,
    depth: 0,
    flags: [],
    at: new Date(1_700_000_000_000 + number * 1000).toISOString(),
    ...more,
  };
}

export function command(id: string, number: number): Command {
  return {
    id,
    version: number,
    sequence_number: number,
    command: "pause",
    operator_id: "usr-1",
    agent_id: "writer-1",
    before_hash: null,
    after_hash: null,
    at: new Date(1_700_000_000_000 + number * 1000).toISOString(),
    acknowledged_at: null,
    proven: null,
    confirmed_at: null,
    reversed_at: null,
  };
}

/** `graph("a", "b<a", "c<a,b")`; the first parent named is the one its branch belongs to. */
export function graph(...words: string[]): Graph {
  return graphWith({}, ...words);
}

export function graphWith(more: Record<string, Partial<Step>>, ...words: string[]): Graph {
  const steps = new Map<string, Step>();
  const link: Link[] = [];
  words.forEach((word, n) => {
    const [id = "", above] = word.split("<");
    const parents = above?.split(",") ?? [];
    const first = parents[0];
    const depth = first === undefined ? 0 : (steps.get(first)?.depth ?? 0) + 1;
    steps.set(id, step(id, n + 1, { parent: first ?? null, depth, ...more[id] }));
    for (const parent of parents) link.push({ from: parent, to: id, relation: "declared" });
  });
  return graphOf({ step: steps.values(), intervention: [], link, refused: [], agent: [], summary: [] });
}
