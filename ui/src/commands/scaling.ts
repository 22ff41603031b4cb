// Scaling trigger commands. Triggers only suggest; whatever receives their notification starts or stops
// agents.
import { send } from "~/api/client";
import { refetch } from "~/api/queries";
import type { RuleItem, ScalingTriggerBody, TestAnswer } from "~/protocol/openapi";
import { type Refused, runCommand } from "./session";

const again = () => refetch("/v1/scaling-triggers");

export function createTrigger(body: ScalingTriggerBody, refused?: Refused) {
  return runCommand(
    "Creating the trigger",
    () => send("POST /v1/scaling-triggers", { body }),
    (made) => ({ text: `${made.name} is active.` }),
    refused,
  ).finally(again);
}

export function changeTrigger(rule_id: string, body: ScalingTriggerBody, was: string, refused?: Refused) {
  return runCommand(
    "Changing the trigger",
    () => send("PUT /v1/scaling-triggers/{rule_id}", { params: { rule_id }, body: { ...body, was } }),
    (made) => ({ text: `${made.name} is changed; its window restarts.` }),
    refused,
  ).finally(again);
}

export function removeTrigger(rule_id: string, name: string) {
  return runCommand(
    "Removing the trigger",
    () => send("DELETE /v1/scaling-triggers/{rule_id}", { params: { rule_id } }),
    () => ({ text: `${name} is removed. Its suggestions are kept.` }),
  ).finally(again);
}

export function muteTrigger(rule_id: string, name: string, minutes: number): Promise<RuleItem | null> {
  return runCommand(
    minutes > 0 ? "Muting" : "Unmuting",
    () => send("POST /v1/scaling-triggers/{rule_id}/mute", { params: { rule_id }, body: { minutes } }),
    () => ({
      text: minutes > 0 ? `${name} is muted for ${minutes} min.` : `${name} is unmuted.`,
      undo: minutes > 0 ? () => muteTrigger(rule_id, name, 0) : undefined,
    }),
  ).finally(again);
}

export function testResultText(name: string, { outcomes }: TestAnswer): string {
  if (outcomes.length === 0) return `${name} has no channel: the test is recorded but was not sent.`;
  const good = outcomes.filter((one) => one.ok).length;
  return `${good} of ${outcomes.length} channels accepted the test of ${name}.`;
}

export function testTrigger(rule_id: string, name: string) {
  return runCommand(
    "Testing",
    () => send("POST /v1/scaling-triggers/{rule_id}/test", { params: { rule_id } }),
    (answer) => ({ text: testResultText(name, answer) }),
  );
}
