/**
 * Asking the owner to decide, and confirming what was done: the envelopes of it.
 *
 * Law: a decision is taken by a person or, at its deadline, by the gateway with the option named for it; never by the
 * agent. What cannot be had is `Denied`, as at a gate.
 */

import { Denied, NotAnswered } from "./errors.ts";
import { arrival, judged, NO_VERDICT, passBy } from "./gate.ts";
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
import type { Line } from "./session.ts";
import type { Speaker } from "./speaker.ts";
import type { Step } from "./step.ts";
import { countdown, type Patience, until } from "./waiting.ts";

const CONFIRM_S = 10;
const USER = "usr_";
const NOBODY: Party = { entity_id: "sys_owner", entity_type: "system" }; // the gateway asks the agent's owner

export type Option = string | DecisionOption;
export type ConfirmationStatus = ActionConfirmation["status"];

/** How a decision is asked for, besides its title and options. */
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
  line: Line,
  speaker: Speaker,
  title: string,
  options: readonly Option[],
  terms: Terms,
): Promise<Decision> {
  const { deadline, default: chosen, description, owner } = terms;
  const recipient = party(owner);
  speaker.listenNow();
  await passBy(speaker, line.session_id, terms.signal);
  const left = countdown(terms);
  const decision_id = `dec_${newId()}`;
  const payload: DecisionRequest = {
    decision_id,
    title,
    options: options.map((option) => spelled(option, chosen)),
    ...(description === undefined ? {} : { description }),
    ...(deadline === undefined ? {} : { deadline: moment(deadline) }),
    ...(deadline === undefined || chosen === undefined
      ? {}
      : { auto_action: { option_id: chosen, trigger: "deadline_expired" } }),
  };
  await known(speaker, left());
  if (speaker.orders.entity_id === null) throw new Denied(NO_VERDICT, "the gateway is away");
  const key = decisionKey(decision_id);
  speaker.orders.expect(key);
  try {
    const step = send(line, speaker, "decision_request", recipient, payload);
    await judged(step, speaker, left());
    const item = await arrival(speaker, key, line.session_id, left());
    if (item === null) throw new Denied(NO_VERDICT, "nobody decided in time", null, step);
    const option = textOf(item.body.selected_option_id);
    const note = textOf(item.body.respondent_note);
    if (option === null) throw new Denied(item.body.expired ? "expired" : "cancelled", note, null, step);
    await passBy(speaker, line.session_id, terms.signal); // decided, but paused meanwhile
    const sender = objectOf(item.message?.sender);
    return {
      option_id: option,
      decision_id,
      note,
      owner: "entity_id" in sender ? (sender as Party) : recipient,
    };
  } finally {
    speaker.orders.forget(key);
  }
}

/** What was done is said at once, paused or not. */
export async function confirm(
  line: Line,
  speaker: Speaker,
  decision: Decision | string | null,
  status: ConfirmationStatus,
  summary: string | null,
  fields: Record<string, unknown>,
): Promise<Step> {
  await known(speaker, { timeout_s: CONFIRM_S });
  if (speaker.orders.entity_id === null)
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
  const recipient = decision === null || typeof decision === "string" ? NOBODY : decision.owner;
  return send(line, speaker, "action_confirmation", recipient, payload);
}

/** An envelope names its sender by the entity id, which the gateway tells. */
async function known(speaker: Speaker, patience: Patience): Promise<void> {
  speaker.listenNow();
  const { orders } = speaker;
  await until(orders.bell, () => orders.entity_id !== null || orders.closed, patience);
}

/** One envelope at the tip of this line; its step is its message id. */
function send(
  line: Line,
  speaker: Speaker,
  kind: "decision_request" | "action_confirmation",
  recipient: Party,
  payload: DecisionRequest | ActionConfirmation,
): Step {
  const message_id = `msg_${newId()}`;
  return line.advance(message_id, (tips) => {
    const step = speaker.raw({
      envelope_version: "1.0.0",
      message_id,
      message_type: kind,
      trace_id: canonicalId(line.trace_id).replaceAll("-", ""),
      span_id: spanIdOf(message_id),
      parent_span_id: tips[0] === undefined ? null : spanIdOf(stepOfName(tips[0])),
      timestamp: timestamp(),
      sender: { entity_id: String(speaker.orders.entity_id), entity_type: "agent" },
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
  if (owner === undefined) return NOBODY;
  if (!owner.startsWith(USER) || owner === USER)
    throw new TypeError(
      `owner ${owner} is not a user id (${USER}…); \`observatory users list\` shows everybody's`,
    );
  return { entity_id: owner, entity_type: "user" };
}

function spelled(option: Option, chosen: string | undefined): DecisionOption {
  const told = typeof option === "string" ? { option_id: option, label: option } : { ...option };
  return chosen === undefined ? told : { ...told, is_default: told.option_id === chosen };
}

function moment(deadline: Date | string | number): string {
  if (typeof deadline === "string") return deadline;
  return deadline instanceof Date ? deadline.toISOString() : timestamp(deadline);
}
