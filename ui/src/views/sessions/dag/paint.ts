// Card colours in the four modes: state, branch cost, agent, infection. Each has a mark and a word too;
// colour is never the only sign. Pure.
import { money } from "~/widgets/format";
import type { Badge, Graph, Step } from "./graph";
import { isRepeating } from "./graph";

export const LOOKS = ["state", "cost", "agent", "infection"] as const;
export type Look = (typeof LOOKS)[number];

export interface Paint {
  tone: string;
  mark: string;
  word: string;
  /** 0…1 for heat, 0…7 for agents. */
  level?: number;
}

export const BADGES: Record<Badge, { mark: string; tone: string }> = {
  Thinking: { mark: "…", tone: "active" },
  "Tool Executing": { mark: "⚙", tone: "active" },
  Waiting: { mark: "‖", tone: "blocked" },
  Terminal: { mark: "■", tone: "idle" },
};

/** A step's badge as text: only a pending call is executing, a finished one is a tool call. */
export function badgeWord(step: Pick<Step, "badge" | "status">): string {
  return step.badge === "Tool Executing" && step.status !== "pending" ? "Tool call" : step.badge;
}

/** The state of a step, the worst first. */
export function stateOf(step: Step): Paint {
  if (step.state === "refused") return { tone: "violation", mark: "!", word: "refused" };
  if (step.state === "rejected") return { tone: "alert", mark: "⊘", word: "rejected" };
  if (step.gate === "open") return { tone: "blocked", mark: "‖", word: "waiting for approval" };
  if (step.state === "held") return { tone: "blocked", mark: "‖", word: "held" };
  if (step.status === "failure") return { tone: "alert", mark: "×", word: "failed" };
  if (isRepeating(step)) return { tone: "alert", mark: "⟲", word: "repetitive" };
  if (step.status === "pending") return { tone: "active", mark: "▸", word: "pending" };
  if (step.status === "skipped") return { tone: "idle", mark: "↷", word: "skipped" };
  if (step.is_terminal) return { tone: "idle", mark: "■", word: "end" };
  return { tone: "plain", mark: "✓", word: step.status ?? "said" };
}

/**
 * Five steps of heat, by share of the most expensive branch; roots contain everything and would drown the
 * rest, so by square root.
 */
export const HEATS = 5;

export function heat(cost: number, most: number): number {
  if (most <= 0 || cost <= 0) return 0;
  return Math.min(HEATS - 1, Math.floor(Math.sqrt(cost / most) * HEATS));
}

export type Strength = "source" | "strong" | "weak";
const INFECTED: Record<Strength, Paint> = {
  source: { tone: "alert", mark: "◉", word: "source" },
  strong: { tone: "violation", mark: "●", word: "affected" },
  weak: { tone: "blocked", mark: "○", word: "downstream" },
};

export interface Painting {
  look: Look;
  graph: Graph;
  most: number;
  agents: ReadonlyMap<string, number>;
  infected: ReadonlyMap<number, Strength>;
}

export function painting(graph: Graph, look: Look, infected: ReadonlyMap<number, Strength>): Painting {
  let most = 0;
  for (const cost of graph.branch.values()) if (cost > most) most = cost;
  const names = [...new Set(graph.steps.map((step) => step.agent_id ?? ""))];
  return { look, graph, most, agents: new Map(names.map((name, n) => [name, n])), infected };
}

export function paintOf(how: Painting, step: Step): Paint {
  if (how.look === "cost") {
    const cost = how.graph.branch.get(step.id) ?? 0;
    const level = heat(cost, how.most);
    return { tone: "heat", mark: "▁▂▄▆█"[level] ?? "▁", word: `branch ${money(cost)}`, level };
  }
  if (how.look === "agent") {
    const n = how.agents.get(step.agent_id ?? "") ?? 0;
    return { tone: "agent", mark: letters(n), word: step.agent_id ?? "unknown", level: n % HUES };
  }
  if (how.look === "infection") {
    const strength = how.infected.get(step.sequence_number);
    return strength ? INFECTED[strength] : { tone: "plain", mark: "", word: "clean" };
  }
  return stateOf(step);
}

const HUES = 8;

/** A … Z, then A1 … Z1: hues repeat after eight, letters never. */
function letters(n: number): string {
  const round = Math.floor(n / 26);
  return String.fromCharCode(65 + (n % 26)) + (round > 0 ? round : "");
}

/** The graph's legend: every sign in use, with its word. */
export function legendOf(how: Painting): Paint[] {
  if (how.look === "cost") {
    return Array.from({ length: HEATS }, (_, level) => ({
      tone: "heat",
      mark: "▁▂▄▆█"[level] ?? "▁",
      level,
      word: `from ${money(how.most * (level / HEATS) ** 2)}`,
    }));
  }
  if (how.look === "infection") return Object.values(INFECTED);
  const seen = new Map<string, Paint>();
  for (const step of how.graph.steps) {
    const paint = paintOf(how, step);
    if (!seen.has(paint.word)) seen.set(paint.word, paint);
  }
  return [...seen.values()].filter((paint) => paint.word !== "").slice(0, 12);
}
