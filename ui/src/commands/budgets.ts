// Budget commands. A cap replaces the one the user saw (`was`), so that nothing unread is overwritten
// (optimistic concurrency).
import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import type { BudgetBody, BudgetItem } from "~/protocol/openapi";
import { type Refused, runCommand } from "./session";

const TOUCHED = ["/v1/budgets", "/v1/costs/burn", "/v1/audit/acts"];
type Caps = { soft: number | null; hard: number | null };

export function capsOf({ soft, hard }: Caps): Caps {
  return { soft, hard };
}

/** `before`: the budget the user saw, null for none. */
export function putBudget(
  body: BudgetBody,
  before: BudgetItem | null,
  name: string,
  refused?: Refused,
): Promise<BudgetItem | null> {
  return runCommand(
    "Setting the budget",
    () => send("PUT /v1/budgets", { body: { ...body, was: before ? capsOf(before) : {} } }),
    (saved) => ({
      text: `The caps of ${name} apply from the next message.`,
      undo: before
        ? () => putBudget({ ...body, ...capsOf(before) }, saved, name)
        : () => removeBudget(saved.budget_id, name),
    }),
    refused,
  ).finally(() => refetch(...TOUCHED));
}

export function removeBudget(budget_id: string, name: string) {
  return runCommand(
    "Removing the budget",
    () => send("DELETE /v1/budgets/{budget_id}", { params: { budget_id } }),
    () => ({ text: `The cap of ${name} is removed; the audit trail keeps its old value.` }),
  ).finally(() => refetch(...TOUCHED));
}
