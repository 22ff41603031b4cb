// What an admin does to scaling triggers. They suggest; whoever is told of them starts or stops agents.
import { send } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { RuleItem, ScalingTriggerBody, TestAnswer } from "~/protocol/openapi";
import { act, type Refused } from "./acts";

const again = () => askAgain("/v1/scaling-triggers");

export function createTrigger(body: ScalingTriggerBody, refused?: Refused) {
  return act(
    "Making the trigger",
    () => send("POST /v1/scaling-triggers", { body }),
    (made) => ({ text: `${made.name} watches from now on.` }),
    refused,
  ).finally(again);
}

export function changeTrigger(rule_id: string, body: ScalingTriggerBody, was: string, refused?: Refused) {
  return act(
    "Changing the trigger",
    () => send("PUT /v1/scaling-triggers/{rule_id}", { params: { rule_id }, body: { ...body, was } }),
    (made) => ({ text: `${made.name} is changed, and counts anew.` }),
    refused,
  ).finally(again);
}

export function removeTrigger(rule_id: string, name: string) {
  return act(
    "Removing the trigger",
    () => send("DELETE /v1/scaling-triggers/{rule_id}", { params: { rule_id } }),
    () => ({ text: `${name} watches no more. What it told stays on record.` }),
  ).finally(again);
}

export function muteTrigger(rule_id: string, name: string, minutes: number): Promise<RuleItem | null> {
  return act(
    minutes > 0 ? "Muting it" : "Unmuting it",
    () => send("POST /v1/scaling-triggers/{rule_id}/mute", { params: { rule_id }, body: { minutes } }),
    () => ({
      text: minutes > 0 ? `${name} tells nobody for ${minutes} min.` : `${name} is heard again.`,
      undo: minutes > 0 ? () => muteTrigger(rule_id, name, 0) : undefined,
    }),
  ).finally(again);
}

export function testSaid(name: string, { outcomes }: TestAnswer): string {
  if (outcomes.length === 0)
    return `${name} has nobody to tell: its test is on record, and was sent to no one.`;
  const good = outcomes.filter((one) => one.ok).length;
  return `${good} of ${outcomes.length} took the test of ${name}.`;
}

export function testTrigger(rule_id: string, name: string) {
  return act(
    "Testing it",
    () => send("POST /v1/scaling-triggers/{rule_id}/test", { params: { rule_id } }),
    (answer) => ({ text: testSaid(name, answer) }),
  );
}
