// Budgets as text: spend between soft and hard cap, and when a cap is reached. Pure.
import type { BudgetBurn } from "~/protocol/openapi";
import { money, span } from "~/widgets/format";
import { capState } from "./session";

export interface Bar {
  /** Shares of the bar's length, 0 to 1. */
  filled: number;
  soft: number | null;
  hard: number | null;
  tone: "under" | "soft" | "hard";
}

/** The bar ends at the larger of the last cap and the spend, so that overspend is visible. */
export function bar(spent: number, soft: number | null, hard: number | null): Bar {
  const end = Math.max(hard ?? soft ?? 0, spent, Number.MIN_VALUE);
  const reached = capState({ budget_id: "", scope: "session", target: "", spent, soft, hard, share: 0 });
  return {
    filled: Math.min(1, Math.max(0, spent / end)),
    soft: soft === null ? null : soft / end,
    hard: hard === null ? null : hard / end,
    tone: reached === "hard" || reached === "soft" ? reached : "under",
  };
}

/** "hard cap in 12 min": the next cap to be reached, or the reached one. */
export function outlook(
  budget: Pick<BudgetBurn, "soft" | "hard" | "soft_in_s" | "hard_in_s" | "spent" | "per_min_5m">,
): string {
  const { soft, hard, soft_in_s, hard_in_s, spent } = budget;
  if (hard !== null && spent >= hard) return "hard cap reached: messages are refused";
  const beyond = soft !== null && spent >= soft ? "over soft cap" : null;
  if (hard_in_s !== null && hard !== null) return also(beyond, `hard cap in ${span(hard_in_s * 1000)}`);
  if (beyond === null && soft_in_s !== null && soft !== null) return `soft cap in ${span(soft_in_s * 1000)}`;
  return also(beyond, budget.per_min_5m > 0 ? "next cap not in sight" : "no spend now");
}

function also(first: string | null, then: string): string {
  return first === null ? then : `${first}, ${then}`;
}

const WHOSE: Record<BudgetBurn["scope"], string> = {
  tenant: "all sessions",
  cluster: "cluster",
  session: "session",
  agent: "agent",
};
const PERIOD: Record<BudgetBurn["period"], string> = { daily: "daily", monthly: "monthly", none: "" };

/** The budget's scope; a session by its goal if known. */
export function nameOf(
  budget: Pick<BudgetBurn, "scope" | "target" | "whose" | "period">,
  goal?: string | null,
): string {
  const ownerText = goal ? `“${goal}”` : (budget.whose ?? budget.target);
  const name = budget.scope === "tenant" ? WHOSE.tenant : `${WHOSE[budget.scope]} ${ownerText}`;
  return PERIOD[budget.period] ? `${name}, ${PERIOD[budget.period]}` : name;
}

/** "$4.20 of $5.00". */
export function against(spent: number, soft: number | null, hard: number | null): string {
  if (hard !== null) return `${money(spent)} of ${money(hard)}`;
  if (soft !== null) return `${money(spent)} of ${money(soft)} (soft)`;
  return money(spent);
}
