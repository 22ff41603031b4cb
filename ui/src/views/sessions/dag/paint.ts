// What a card's colour means, in each of the four ways to look: state, branch cost, agent, infection. Each
// gives a mark and a word too; the colour is never alone. Pure.
import { money } from "~/widgets/words";
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

/** What is the matter with a step, the worst first. */
export function stateOf(step: Step): Paint {
  if (step.state === "refused") return { tone: "violation", mark: "!", word: "refused" };
  if (step.state === "rejected") return { tone: "alert", mark: "⊘", word: "rejected" };
  if (step.gate === "open") return { tone: "blocked", mark: "‖", word: "waits for a person" };
  if (step.state === "held") return { tone: "blocked", mark: "‖", word: "held" };
  if (step.status === "failure") return { tone: "alert", mark: "×", word: "failed" };
  if (isRepeating(step)) return { tone: "alert", mark: "⟲", word: "repeats itself" };
  if (step.status === "pending") return { tone: "active", mark: "▸", word: "pending" };
  if (step.status === "skipped") return { tone: "idle", mark: "↷", word: "skipped" };
  if (step.is_terminal) return { tone: "idle", mark: "■", word: "end" };
  return { tone: "plain", mark: "✓", word: step.status ?? "said" };
}

/** Five steps of heat, by share of the dearest branch; roots are the whole and would drown the rest, so by root. */
export const HEATS = 5;

export function heat(cost: number, most: number): number {
  if (most <= 0 || cost <= 0) return 0;
  return Math.min(HEATS - 1, Math.floor(Math.sqrt(cost / most) * HEATS));
}

export type Strength = "source" | "strong" | "weak";
const INFECTED: Record<Strength, Paint> = {
  source: { tone: "alert", mark: "◉", word: "source" },
  strong: { tone: "violation", mark: "●", word: "says it too" },
  weak: { tone: "blocked", mark: "○", word: "came after" },
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

/** A … Z, then A1 … Z1: hues come again after eight, letters never. */
function letters(n: number): string {
  const round = Math.floor(n / 26);
  return String.fromCharCode(65 + (n % 26)) + (round > 0 ? round : "");
}

/** The legend beside the graph: every sign in use, in words. */
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
