// What may be spent. Caps are put over those one saw (`was`), so nobody overwrites what they did not read.
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { BudgetBody, BudgetItem } from "~/protocol/openapi";
import { act, type Refused } from "./acts";

const TOUCHED = ["/v1/budgets", "/v1/costs/burn", "/v1/audit/acts"];
type Caps = { soft: number | null; hard: number | null };

export function capsOf({ soft, hard }: Caps): Caps {
  return { soft, hard };
}

/** `before`: the budget that was seen, null for none. */
export function putBudget(
  body: BudgetBody,
  before: BudgetItem | null,
  name: string,
  refused?: Refused,
): Promise<BudgetItem | null> {
  return act(
    "Setting the budget",
    () => send("PUT /v1/budgets", { body: { ...body, was: before ? capsOf(before) : {} } }),
    (saved) => ({
      text: `The caps of ${name} count from the next message on.`,
      undo: before
        ? () => putBudget({ ...body, ...capsOf(before) }, saved, name)
        : () => removeBudget(saved.budget_id, name),
    }),
    refused,
  ).finally(() => askAgain(...TOUCHED));
}

export function removeBudget(budget_id: string, name: string) {
  return act(
    "Removing the budget",
    () => send("DELETE /v1/budgets/{budget_id}", { params: { budget_id } }),
    () => ({ text: `${name} has no such cap any more; the record keeps what it was.` }),
  ).finally(() => askAgain(...TOUCHED));
}
