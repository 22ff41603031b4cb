/**
 * Decision requests to the owner, and confirmations of what was done (`decide`, `confirm`).
 *
 * Rule: a person decides or, at the deadline, the gateway takes the default option; the agent never decides. Without a
 * decision it rejects with `Denied`, as at a gate.
 */

import { Denied, NotAnswered } from "./errors.ts";
import { awaitAnswer, awaitItem, NO_VERDICT, waitWhileHeld } from "./gate.ts";
import { canonicalId, newId, spanIdOf, stepOfName, timestamp } from "./ids.ts";
import { decisionKey } from "./orders.ts";
import type {
  ActionConfirmation,
  ActionConfirmationEnvelope,
  DecisionOption,
  DecisionRequest,
  DecisionRequestEnvelope,
  Party,
} from "./protocol.ts";
import { type Decision, objectOf, textOf } from "./received.ts";
import type { Sender } from "./sender.ts";
import type { SessionBranch } from "./session.ts";
import type { Step } from "./step.ts";
import { countdown, type Patience, until } from "./waiting.ts";

const CONFIRM_S = 10;
const USER = "usr_";
const AGENT_OWNER: Party = { entity_id: "sys_owner", entity_type: "system" }; // the gateway asks the agent's owner

export type Option = string | DecisionOption;
export type ConfirmationStatus = ActionConfirmation["status"];

/** Optional terms of a decision request. */
export interface Terms extends Patience {
  /** A time, or seconds from now. */
  deadline?: Date | string | number | undefined;
  /** The option the gateway takes at the deadline. */
  default?: string | undefined;
  description?: string | undefined;
  /** A user id (`usr_…`); without it the agent's owner. */
  owner?: string | undefined;
}

export async function decide(
  line: SessionBranch,
  sender: Sender,
  title: string,
  options: readonly Option[],
  terms: Terms,
): Promise<Decision> {
  const { deadline, default: chosen, description, owner } = terms;
  const recipient = party(owner);
  sender.listenNow();
  await waitWhileHeld(sender, line.session_id, terms.signal);
  const left = countdown(terms);
  const decision_id = `dec_${newId()}`;
  const payload: DecisionRequest = {
    decision_id,
    title,
    options: options.map((option) => wireOption(option, chosen)),
    ...(description === undefined ? {} : { description }),
    ...(deadline === undefined ? {} : { deadline: moment(deadline) }),
    ...(deadline === undefined || chosen === undefined
      ? {}
      : { auto_action: { option_id: chosen, trigger: "deadline_expired" } }),
  };
  await awaitEntityId(sender, left());
  if (sender.orders.entity_id === null) throw new Denied(NO_VERDICT, "the gateway is unreachable");
  const key = decisionKey(decision_id);
  sender.orders.expect(key);
  try {
    const step = send(line, sender, "decision_request", recipient, payload);
    await awaitAnswer(step, sender, left());
    const item = await awaitItem(sender, key, line.session_id, left());
    if (item === null) throw new Denied(NO_VERDICT, "no decision arrived in time", null, step);
    const option = textOf(item.body.selected_option_id);
    const note = textOf(item.body.respondent_note);
    if (option === null) throw new Denied(item.body.expired ? "expired" : "cancelled", note, null, step);
    await waitWhileHeld(sender, line.session_id, terms.signal); // decided, but paused meanwhile
    const responder = objectOf(item.message?.sender);
    return {
      option_id: option,
      decision_id,
      note,
      owner: "entity_id" in responder ? (responder as Party) : recipient,
    };
  } finally {
    sender.orders.forget(key);
  }
}

/** Records what was done at once, paused or not. */
export async function confirm(
  line: SessionBranch,
  sender: Sender,
  decision: Decision | string | null,
  status: ConfirmationStatus,
  summary: string | null,
  fields: Record<string, unknown>,
): Promise<Step> {
  await awaitEntityId(sender, { timeout_s: CONFIRM_S });
  if (sender.orders.entity_id === null)
    throw new NotAnswered("not confirmed: this agent was never connected, so it has no entity id");
  const decisionId = decision === null || typeof decision === "string" ? decision : decision.decision_id;
  const payload: ActionConfirmation = {
    action_type: "decision",
    ...fields,
    action_id: `act_${newId()}`,
    status,
    ...(summary === null ? {} : { summary }),
    ...(decisionId === null ? {} : { triggered_by: { decision_id: decisionId } }),
  };
  const recipient = decision === null || typeof decision === "string" ? AGENT_OWNER : decision.owner;
  return send(line, sender, "action_confirmation", recipient, payload);
}

/** Waits for the entity id that names the sender of an envelope; the gateway assigns it. */
async function awaitEntityId(sender: Sender, patience: Patience): Promise<void> {
  sender.listenNow();
  const { orders } = sender;
  await until(orders.changes, () => orders.entity_id !== null || orders.closed, patience);
}

/** One envelope at the tip of this branch; its step id is its message id. */
function send(
  line: SessionBranch,
  sender: Sender,
  kind: "decision_request" | "action_confirmation",
  recipient: Party,
  payload: DecisionRequest | ActionConfirmation,
): Step {
  const message_id = `msg_${newId()}`;
  return line.advance(message_id, (tips) => {
    const step = sender.raw({
      envelope_version: "1.0.0",
      message_id,
      message_type: kind,
      trace_id: canonicalId(line.trace_id).replaceAll("-", ""),
      span_id: spanIdOf(message_id),
      parent_span_id: tips[0] === undefined ? null : spanIdOf(stepOfName(tips[0])),
      timestamp: timestamp(),
      sender: { entity_id: String(sender.orders.entity_id), entity_type: "agent" },
      recipient,
      payload,
      metadata: { session_id: line.session_id },
    } as DecisionRequestEnvelope | ActionConfirmationEnvelope);
    step.step_id = message_id;
    step.session_id = line.session_id;
    return step;
  });
}

function party(owner: string | undefined): Party {
  if (owner === undefined) return AGENT_OWNER;
  if (!owner.startsWith(USER) || owner === USER)
    throw new TypeError(`owner ${owner} is not a user id (${USER}…); \`observatory users list\` lists them`);
  return { entity_id: owner, entity_type: "user" };
}

function wireOption(option: Option, chosen: string | undefined): DecisionOption {
  const fields = typeof option === "string" ? { option_id: option, label: option } : { ...option };
  return chosen === undefined ? fields : { ...fields, is_default: fields.option_id === chosen };
}

function moment(deadline: Date | string | number): string {
  if (typeof deadline === "string") return deadline;
  return deadline instanceof Date ? deadline.toISOString() : timestamp(deadline);
}
