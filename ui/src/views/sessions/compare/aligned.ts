// A session comparison for display: labels, folded equal runs, next and previous difference, and the
// differing words of two intents. Pure.
import type { CompareAnswer, ComparedStep } from "~/protocol/openapi";
import { money, ms, short } from "~/widgets/format";

export interface Side {
  id: string;
  sequence_number: number;
  agent_id: string | null;
  tool: string | null;
  status: string | null;
  intent: string;
}
export interface Totals {
  session_id: string;
  steps: number;
  outcome: string;
  failures: number;
  agents_count: number;
  cost: number;
  tokens: number;
  duration_ms: number;
  truncated?: boolean;
}
export interface MemoryDelta {
  both: number;
  left_only: string[];
  right_only: string[];
  left_only_count: number;
  right_only_count: number;
}
export type Aligned = Omit<CompareAnswer, "left" | "right" | "memory"> & {
  left: Totals;
  right: Totals;
  memory: MemoryDelta;
};

export function read(answer: CompareAnswer): Aligned {
  return answer as unknown as Aligned;
}

type Change = ComparedStep["change"];
export const CHANGES: Record<Change, { mark: string; word: string; tone: string }> = {
  same: { mark: "=", word: "same", tone: "idle" },
  changed: { mark: "≠", word: "changed", tone: "blocked" },
  left_only: { mark: "←", word: "left only", tone: "violation" },
  right_only: { mark: "→", word: "right only", tone: "active" },
};
export const CHANGE_ORDER: Change[] = ["same", "changed", "left_only", "right_only"];

const FACETS: Record<string, string> = { agent_type: "role", input: "tool input" };

/** "tool input, output" for `differs`. */
export function differing(differs: readonly string[]): string {
  return differs.map((name) => FACETS[name] ?? name).join(", ");
}

export interface Line {
  kind: "step";
  index: number;
  step: ComparedStep;
}
export interface Fold {
  kind: "fold";
  from: number;
  count: number;
}

const FOLD_FROM = 4; // fewer are not worth a click

/** Every step, or only differences with the equal runs in between counted; `open` are expanded folds. */
export function lines(
  steps: readonly ComparedStep[],
  onlyDifferences: boolean,
  open: ReadonlySet<number> = new Set(),
): (Line | Fold)[] {
  const shown: (Line | Fold)[] = [];
  for (let at = 0; at < steps.length; at += 1) {
    const step = steps[at] as ComparedStep;
    if (onlyDifferences && step.change === "same") {
      let end = at;
      while (steps[end]?.change === "same") end += 1;
      if (end - at >= FOLD_FROM && !open.has(at)) {
        shown.push({ kind: "fold", from: at, count: end - at });
        at = end - 1;
        continue;
      }
      for (let one = at; one < end; one += 1)
        shown.push({ kind: "step", index: one, step: steps[one] as ComparedStep });
      at = end - 1;
      continue;
    }
    shown.push({ kind: "step", index: at, step });
  }
  return shown;
}

/** The next (or previous) difference, wrapping around; null if nothing differs. */
export function nextDifference(steps: readonly ComparedStep[], from: number, by: 1 | -1): number | null {
  for (let n = 1; n <= steps.length; n += 1) {
    const at = (((from + by * n) % steps.length) + steps.length) % steps.length;
    if (steps[at] && steps[at].change !== "same") return at;
  }
  return null;
}

export interface Figure {
  name: string;
  left: string;
  right: string;
  /** Right minus left, as text; null if equal. */
  delta: string | null;
}

export function figures({ left, right }: Pick<Aligned, "left" | "right">): Figure[] {
  const count = (name: string, a: number, b: number, text = short): Figure => ({
    name,
    left: text(a),
    right: text(b),
    delta: a === b ? null : `${b > a ? "+" : "−"}${text(Math.abs(b - a))}`,
  });
  return [
    count("Steps", left.steps, right.steps),
    count("Failures", left.failures, right.failures),
    count("Agents", left.agents_count, right.agents_count),
    count("Cost", left.cost, right.cost, money),
    count("Tokens", left.tokens, right.tokens),
    count("Duration", left.duration_ms, right.duration_ms, ms),
    {
      name: "Outcome",
      left: outcome(left.outcome),
      right: outcome(right.outcome),
      delta: left.outcome === right.outcome ? null : "other",
    },
  ];
}

/** `ended:success` → "ended, success"; `open:pending` → "not ended, pending". */
export function outcome(outcomeText: string): string {
  const [ended, last] = outcomeText.split(":");
  const end = ended === "ended" ? "ended" : "not ended";
  return last && last !== "unknown" ? `${end}, ${last}` : end;
}

export interface Word {
  text: string;
  differs: boolean;
}

const MAX_WORDS = 120;

/** The words of two texts, those without a counterpart marked (longest common subsequence). */
export function words(left: string, right: string): [Word[], Word[]] {
  const a = left.split(/(\s+)/);
  const b = right.split(/(\s+)/);
  if (a.length > MAX_WORDS || b.length > MAX_WORDS) {
    const differs = left !== right;
    return [[{ text: left, differs }], [{ text: right, differs }]];
  }
  const best = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  const at = (i: number, j: number) => best[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      (best[i] as number[])[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const one: Word[] = [];
  const other: Word[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      one.push({ text: a[i] as string, differs: false });
      other.push({ text: b[j] as string, differs: false });
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) {
      one.push({ text: a[i] as string, differs: (a[i] as string).trim() !== "" });
      i += 1;
    } else {
      other.push({ text: b[j] as string, differs: (b[j] as string).trim() !== "" });
      j += 1;
    }
  }
  return [joined(one), joined(other)];
}

/** Equal neighbours are one piece; the space between two differing words belongs to them. */
function joined(said: readonly Word[]): Word[] {
  const pieces: Word[] = [];
  said.forEach((word, n) => {
    const between = word.text.trim() === "" && said[n - 1]?.differs && said[n + 1]?.differs;
    const differs = word.differs || Boolean(between);
    const last = pieces.at(-1);
    if (last?.differs === differs) last.text += word.text;
    else pieces.push({ text: word.text, differs });
  });
  return pieces;
}
