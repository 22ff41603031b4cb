// Policy rule commands. Each carries the version the user saw (`was`, optimistic concurrency) and can be
// undone.
import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import type { PolicyItem, RuleBody } from "~/protocol/openapi";
import { type Refused, runCommand } from "./session";

const again = () => refetch("/v1/policies");

export function addRule(
  body: RuleBody,
  position: number | null,
  confirm: boolean,
  refused?: Refused,
): Promise<PolicyItem | null> {
  return runCommand(
    "Adding the rule",
    () => send("POST /v1/policies", { body: { ...body, position, confirm } }),
    (rule) => ({
      text: `Added as rule ${rule.position}; it applies from the next message.`,
      undo: () => removeRule(rule),
    }),
    refused,
  ).finally(again);
}

/** `was` is the rule the user saw. */
export function changeRule(
  rule_id: string,
  body: RuleBody,
  was: RuleBody,
  { confirm, text, refused }: { confirm: boolean; text: string; refused?: Refused },
): Promise<PolicyItem | null> {
  return runCommand(
    "Changing the rule",
    () => send("PUT /v1/policies/{rule_id}", { params: { rule_id }, body: { ...body, was, confirm } }),
    () => ({
      text,
      undo: () => changeRule(rule_id, was, body, { confirm: true, text: "The rule is restored." }),
    }),
    refused,
  ).finally(again);
}

/** When restored it has its old position again, under a new id. */
export function removeRule(rule: PolicyItem, confirm = false, refused?: Refused): Promise<unknown> {
  const { effect, match, quorum, deadline_s, on_expiry, note, enabled, position } = rule;
  const body = { effect, match, quorum, deadline_s, on_expiry, note, enabled };
  return runCommand(
    "Removing the rule",
    () => send("DELETE /v1/policies/{rule_id}", { params: { rule_id: rule.rule_id }, query: { confirm } }),
    () => ({
      text: "The rule is removed from the next message on. It stays in the audit trail.",
      undo: () => addRule(body, position, true),
    }),
    refused,
  ).finally(again);
}

export function orderRules(order: string[], was: string[], refused?: Refused): Promise<unknown> {
  return runCommand(
    "Saving the order",
    () => send("PUT /v1/policies/order", { body: { order, was } }),
    () => ({ text: "The new order is saved.", undo: () => orderRules(was, order) }),
    refused,
  ).finally(again);
}
