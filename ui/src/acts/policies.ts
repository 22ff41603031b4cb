// What an operator does to the rules of the Policy Engine. Each says what it saw (`was`), so that whoever was first
// wins; each can be taken back.
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { PolicyItem, RuleBody } from "~/protocol/openapi";
import { act, type Refused } from "./acts";

const again = () => askAgain("/v1/policies");

export function addRule(
  body: RuleBody,
  position: number | null,
  confirm: boolean,
  refused?: Refused,
): Promise<PolicyItem | null> {
  return act(
    "Adding the rule",
    () => send("POST /v1/policies", { body: { ...body, position, confirm } }),
    (rule) => ({
      text: `It is rule ${rule.position}, from the next message on.`,
      undo: () => removeRule(rule),
    }),
    refused,
  ).finally(again);
}

/** `was` is the rule that was seen. */
export function changeRule(
  rule_id: string,
  body: RuleBody,
  was: RuleBody,
  { confirm, text, refused }: { confirm: boolean; text: string; refused?: Refused },
): Promise<PolicyItem | null> {
  return act(
    "Changing the rule",
    () => send("PUT /v1/policies/{rule_id}", { params: { rule_id }, body: { ...body, was, confirm } }),
    () => ({
      text,
      undo: () => changeRule(rule_id, was, body, { confirm: true, text: "The rule is what it was before." }),
    }),
    refused,
  ).finally(again);
}

/** Put back, it stands at its place again, under a new id. */
export function removeRule(rule: PolicyItem, confirm = false, refused?: Refused): Promise<unknown> {
  const { effect, match, quorum, deadline_s, on_expiry, note, enabled, position } = rule;
  const body = { effect, match, quorum, deadline_s, on_expiry, note, enabled };
  return act(
    "Removing the rule",
    () => send("DELETE /v1/policies/{rule_id}", { params: { rule_id: rule.rule_id }, query: { confirm } }),
    () => ({
      text: "The rule is removed: it rules nothing from the next message on. The record keeps it.",
      undo: () => addRule(body, position, true),
    }),
    refused,
  ).finally(again);
}

export function orderRules(order: string[], was: string[], refused?: Refused): Promise<unknown> {
  return act(
    "Saving the order",
    () => send("PUT /v1/policies/order", { body: { order, was } }),
    () => ({ text: "The rules stand in their new order.", undo: () => orderRules(was, order) }),
    refused,
  ).finally(again);
}
