// Budget input and display: scope and target as text, validation before the gateway's, distance to the caps
// and time until they are reached. Pure.
import type { BudgetBody, BudgetBurn, BudgetItem } from "~/protocol/openapi";
import { money, span } from "~/widgets/format";

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
  return target === "*" ? `each ${scope} separately` : `${scope} ${target}`;
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

/** The request body, or why it is invalid. */
export function bodyOf(typed: Typed): { body: BudgetBody } | { fault: string } {
  const soft = capOf(typed.soft);
  const hard = capOf(typed.hard);
  const target = typed.target.trim();
  if (typed.scope !== "tenant" && !target) return { fault: `Enter the ${typed.scope}.` };
  if (typed.scope === "cluster" && target === "*")
    return { fault: "Enter a cluster name; * is only for sessions and agents." };
  if (target === "*" && typed.period !== "none")
    return { fault: "With * each target counts its lifetime spend: choose no period." };
  if (soft === undefined) return { fault: "The soft cap must be 0 or more." };
  if (hard === undefined) return { fault: "The hard cap must be 0 or more." };
  if (soft === null && hard === null) return { fault: "Enter a soft cap, a hard cap or both." };
  if (soft !== null && hard !== null && soft > hard)
    return { fault: "The soft cap must not exceed the hard cap." };
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
    return { tone: "hard", word: "hard cap reached: messages are refused", mark: "×" };
  if (soft !== null && spent >= soft) return { tone: "soft", word: "over soft cap", mark: "!" };
  return { tone: "calm", word: "within caps", mark: "✓" };
}

/** The recent burn rate and the time until the hard cap, as computed by the gateway. */
export function paceOf(burn: Pick<BudgetBurn, "per_min_5m" | "hard_in_s"> | undefined): string {
  if (!burn || burn.per_min_5m <= 0) return "no spend now";
  const pace = `${money(burn.per_min_5m)}/min`;
  return burn.hard_in_s === null ? pace : `${pace}, hard cap in ${span(burn.hard_in_s * 1_000)}`;
}
