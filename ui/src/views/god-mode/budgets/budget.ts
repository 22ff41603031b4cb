// Caps as they are typed and as they are told: scope and target in words, faults before the gateway finds them,
// how near a budget is to its caps and how fast it gets there. Pure.
import type { BudgetBody, BudgetBurn, BudgetItem } from "~/protocol/openapi";
import { money, span } from "~/widgets/words";

export type Scope = "tenant" | "cluster" | "session" | "agent";
export type Period = "none" | "daily" | "monthly";
export interface Typed {
  scope: Scope;
  target: string;
  period: Period;
  soft: string;
  hard: string;
}
export const BLANK: Typed = { scope: "tenant", target: "", period: "daily", soft: "", hard: "" };
const LARGEST = 1_000_000_000_000;

export function nameOf({ scope, target }: Pick<BudgetItem, "scope" | "target">): string {
  if (scope === "tenant") return "the whole tenant";
  return target === "*" ? `each ${scope} on its own` : `${scope} ${target}`;
}

export function typedOf({ scope, target, period, soft, hard }: BudgetItem): Typed {
  const text = (cap: number | null) => (cap === null ? "" : String(cap));
  return { scope, target: scope === "tenant" ? "" : target, period, soft: text(soft), hard: text(hard) };
}

function capOf(text: string): number | null | undefined {
  if (text.trim() === "") return null;
  const cap = Number(text);
  return Number.isFinite(cap) && cap >= 0 && cap <= LARGEST ? cap : undefined;
}

/** What to send, or why nothing can be. */
export function bodyOf(typed: Typed): { body: BudgetBody } | { fault: string } {
  const soft = capOf(typed.soft);
  const hard = capOf(typed.hard);
  const target = typed.target.trim();
  if (typed.scope !== "tenant" && !target) return { fault: `Name the ${typed.scope}.` };
  if (typed.scope === "cluster" && target === "*")
    return { fault: "A cluster is named; * is for sessions and agents." };
  if (target === "*" && typed.period !== "none")
    return { fault: "With * each counts what it has spent in all: choose no period." };
  if (soft === undefined) return { fault: "The soft cap is an amount of 0 or more." };
  if (hard === undefined) return { fault: "The hard cap is an amount of 0 or more." };
  if (soft === null && hard === null) return { fault: "Give a soft cap, a hard cap or both." };
  if (soft !== null && hard !== null && soft > hard)
    return { fault: "The soft cap lies below the hard cap, or they are equal." };
  return {
    body: {
      scope: typed.scope,
      target: typed.scope === "tenant" ? null : target,
      period: typed.period,
      soft,
      hard,
    },
  };
}

export type Nearness = { tone: "calm" | "soft" | "hard"; word: string; mark: string };

export function nearness({ spent, soft, hard }: Pick<BudgetItem, "spent" | "soft" | "hard">): Nearness {
  if (hard !== null && spent >= hard)
    return { tone: "hard", word: "hard cap met: more is refused", mark: "×" };
  if (soft !== null && spent >= soft) return { tone: "soft", word: "past its soft cap", mark: "!" };
  return { tone: "calm", word: "within its caps", mark: "✓" };
}

/** What it burns lately and when that meets the hard cap, as the gateway reckons it. */
export function paceOf(burn: Pick<BudgetBurn, "per_min_5m" | "hard_in_s"> | undefined): string {
  if (!burn || burn.per_min_5m <= 0) return "burns nothing now";
  const pace = `${money(burn.per_min_5m)} a minute`;
  return burn.hard_in_s === null ? pace : `${pace}, hard cap in ${span(burn.hard_in_s * 1_000)}`;
}
