// A session's graph: folded from the live records of `session:dag:{id}`, so that records in any order and any
// batches give the same graph. Pure, no React. `branch_cost` is folded here from `cost` and first parents
// (S210): the gateway leaves it to the reader.

export type Badge = "Thinking" | "Tool Executing" | "Waiting" | "Terminal";
export type Relation = "attached" | "declared" | "inferred" | "intervention" | "late" | "span" | "cycle";

export interface Step {
  id: string;
  version: number;
  sequence_number: number;
  step_id: string;
  message_id: string;
  message_type: string;
  agent_id: string | null;
  agent_type: string | null;
  intent: string | null;
  tool: string | null;
  status: string | null;
  state: "forwarded" | "held" | "refused" | "rejected";
  badge: Badge;
  confidence: number | null;
  low_confidence: boolean;
  gate: "approved" | "none" | "open" | null;
  held_because: string | null;
  is_terminal: boolean;
  is_root: boolean;
  orphan: boolean;
  entropy_score: number | null;
  tokens: number | null;
  cost: number;
  parent: string | null;
  depth: number;
  flags: string[];
  at: string;
}

export interface Command {
  id: string;
  version: number;
  sequence_number: number;
  command: string;
  operator_id: string;
  agent_id: string | null;
  before_hash: string | null;
  after_hash: string | null;
  at: string;
  acknowledged_at: string | null;
  proven: boolean | null;
  confirmed_at: string | null;
  reversed_at: string | null;
}

export interface Link {
  from: string;
  to: string;
  relation: Relation;
}

export interface Worker {
  agent_id: string;
  agent_type: string | null;
  badge: Badge;
  badge_rule: number;
  steps: number;
  cost: number;
  tokens: number;
  last_step: string;
}

export interface Graph {
  /** In sequence order. */
  steps: Step[];
  byId: Map<string, Step>;
  parents: Map<string, string[]>;
  children: Map<string, string[]>;
  links: Link[];
  refused: Link[];
  /** Interventions at a step, oldest first. */
  commands: Map<string, Command[]>;
  agents: Worker[];
  branch: Map<string, number>;
  truncated: boolean;
}

type Records = Iterable<unknown>;
interface Kinds {
  step: Records;
  intervention: Records;
  link: Records;
  refused: Records;
  agent: Records;
  summary: Records;
}

export const EMPTY: Graph = graphOf({
  step: [],
  intervention: [],
  link: [],
  refused: [],
  agent: [],
  summary: [],
});

export function graphOf(kinds: Kinds): Graph {
  const steps = ([...kinds.step] as Step[]).sort((a, b) => a.sequence_number - b.sequence_number);
  const byId = new Map(steps.map((step) => [step.id, step]));
  const interventions = new Map(
    ([...kinds.intervention] as Command[]).map((command) => [command.id, command]),
  );
  const graph: Graph = {
    steps,
    byId,
    parents: new Map(),
    children: new Map(),
    links: [],
    refused: ([...kinds.refused] as Link[]).map((link) => ({ ...link, relation: "cycle" })),
    commands: new Map(),
    agents: ([...kinds.agent] as Worker[]).sort((a, b) => b.cost - a.cost || cmp(a.agent_id, b.agent_id)),
    branch: branchCosts(steps, byId),
    truncated: ([...kinds.summary] as { truncated?: boolean }[]).some((one) => one.truncated === true),
  };
  for (const link of kinds.link as Iterable<Link>) {
    if (!byId.has(link.from)) continue;
    const command = interventions.get(link.to);
    if (command) into(graph.commands, link.from, command);
    else if (byId.has(link.to)) {
      graph.links.push(link);
      into(graph.parents, link.to, link.from);
      into(graph.children, link.from, link.to);
    }
  }
  const older = (a: string, b: string) =>
    (byId.get(a)?.sequence_number ?? 0) - (byId.get(b)?.sequence_number ?? 0);
  for (const list of graph.children.values()) list.sort(older);
  for (const [id, list] of graph.parents) {
    const first = byId.get(id)?.parent;
    list.sort((a, b) => Number(b === first) - Number(a === first) || older(a, b));
  }
  for (const list of graph.commands.values()) list.sort((a, b) => a.sequence_number - b.sequence_number);
  return graph;
}

/** A step's own cost plus that of all steps whose line of first parents leads to it; deepest first. */
function branchCosts(steps: Step[], byId: Map<string, Step>): Map<string, number> {
  const total = new Map(steps.map((step) => [step.id, step.cost]));
  for (const step of [...steps].sort((a, b) => b.depth - a.depth)) {
    if (step.parent === null || !byId.has(step.parent)) continue;
    total.set(step.parent, (total.get(step.parent) ?? 0) + (total.get(step.id) ?? 0));
  }
  return total;
}

/** The step named in a URL: by its node id, its step id, its message id or its number. */
export function stepNamed(graph: Graph, name: string | undefined): Step | undefined {
  if (!name) return undefined;
  return (
    graph.byId.get(name) ??
    graph.steps.find(
      (step) => step.step_id === name || step.message_id === name || String(step.sequence_number) === name,
    )
  );
}

/** The targets of keys g and l. */
export function firstGate(graph: Graph): Step | undefined {
  return (
    graph.steps.find((step) => step.gate === "open") ?? graph.steps.find((step) => step.state === "held")
  );
}

/** Below this score it is a LOOP (the default of the setting `loop_below`): few different words, repeated. */
export const LOOP_BELOW = 0.25;

export function isRepeating(step: Step): boolean {
  return step.entropy_score !== null && step.entropy_score < LOOP_BELOW;
}

/** The first of four equal steps in a row by one agent, else the first whose score indicates a loop. */
export function firstLoop(graph: Graph): Step | undefined {
  const runs = new Map<string, { key: string; steps: Step[] }>();
  for (const step of graph.steps) {
    const agent = step.agent_id ?? "";
    const key = `${step.tool} ${step.status} ${step.intent}`;
    const run = runs.get(agent);
    if (run && run.key === key) {
      run.steps.push(step);
      if (run.steps.length >= 4) return run.steps[0];
    } else runs.set(agent, { key, steps: [step] });
  }
  return graph.steps.find(isRepeating);
}

/** Steps in which the words occur (intent, agent, tool, id), in sequence order. */
export function found(graph: Graph, words: string | undefined): Step[] {
  const wanted = (words ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return [];
  return graph.steps.filter((step) => {
    const text =
      `${step.intent ?? ""} ${step.agent_id ?? ""} ${step.tool ?? ""} ${step.step_id} ${step.status ?? ""}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

function into<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

function cmp(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
