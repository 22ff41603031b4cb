// The messages between two agents, read from each one's last messages: those the first addressed to the
// second, and steps of the second that follow a step of the first (a causal edge has no recipient). Pure.
import type { MessageItem } from "~/protocol/openapi";

export interface EdgeMessage {
  message_id: string;
  session_id: string;
  step_id: string;
  sequence_number: number;
  how: "addressed" | "followed";
  text: string;
  type: string;
  state: string;
}

interface Spoken {
  recipient?: { entity_id?: string } | null;
  cognition?: { intent?: string | null } | null;
  action?: { tool_call?: string | null } | null;
  content?: unknown;
  payload?: Record<string, unknown> | null;
}

function textOf(item: MessageItem): string {
  const messageBody = (item.message ?? {}) as Spoken;
  const content =
    typeof messageBody.content === "string" ? messageBody.content : messageBody.payload?.content;
  const text = messageBody.cognition?.intent ?? content ?? messageBody.action?.tool_call;
  return typeof text === "string" && text ? text : item.message_type.replaceAll("_", " ");
}

function addressed(item: MessageItem, names: readonly string[]): boolean {
  const recipient = ((item.message ?? {}) as Spoken).recipient;
  return recipient?.entity_id !== undefined && names.includes(recipient.entity_id);
}

const passed = (item: MessageItem, how: EdgeMessage["how"]): EdgeMessage => ({
  message_id: item.message_id,
  session_id: item.session_id,
  step_id: item.step_id,
  sequence_number: item.sequence_number,
  how,
  text: textOf(item),
  type: item.message_type.replaceAll("_", " "),
  state: item.state,
});

/** Newest first; `names` are the second agent's: its id and entity id. */
export function between(
  ofFirst: readonly MessageItem[],
  ofSecond: readonly MessageItem[],
  names: readonly string[],
): EdgeMessage[] {
  const steps = new Set(ofFirst.map((item) => item.step_id));
  const found = [
    ...ofFirst.filter((item) => addressed(item, names)).map((item) => passed(item, "addressed")),
    ...ofSecond
      .filter((item) => item.parents.some((step) => steps.has(step)))
      .map((item) => passed(item, "followed")),
  ];
  return found.sort((a, b) => b.sequence_number - a.sequence_number);
}
