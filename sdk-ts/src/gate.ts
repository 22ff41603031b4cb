/**
 * Where a step waits and for what: the agent side of pause, stop, cancel and approval.
 *
 * Rule: a step waits only while its agent is known to be paused or stopped, or while it waits for a person's approval.
 * A gate fails closed: without a verdict in time the action is refused. Because every object is true in an `if` of
 * JavaScript, a refusal is never a value here: it is thrown as `Denied`.
 */

import type { Answer } from "./client.ts";
import { decoded, writtenInput } from "./encode.ts";
import { Denied, explain, Lost, NotAnswered, Rejected } from "./errors.ts";
import { newId } from "./ids.ts";
import { verdictKey } from "./orders.ts";
import { notRequired, type Received, textOf, type Verdict, verdictOf } from "./received.ts";
import type { Sender } from "./sender.ts";
import type { SessionBranch } from "./session.ts";
import type { Step } from "./step.ts";
import { countdown, type Patience, until } from "./waiting.ts";

export const NO_VERDICT = "no_verdict";
export const GATEWAY_AWAY = "gateway_away";
export const FORBIDDEN_AWAY =
  "the gateway is unreachable, and this agent may not act without it (on_away: deny)";
const NOT_ADMITTED = "not_admitted";
const ANSWER_S = 5; // how long `permit` waits for the gateway's own answer

/** A step to be recorded: its branch, its sender, and how long its approval may take. */
export interface StepRequest {
  line: SessionBranch;
  sender: Sender;
  intent: string;
  fields: Readonly<Record<string, unknown>>;
  step_id?: string | undefined;
  patience: Patience;
}

/**
 * What was allowed: use `tool_call` and `tool_input`, which include the person's edits (as data: JSON is decoded).
 * `verdict` is the person's verdict, `not_required` when no gate held it, `gateway_away` when the gateway was
 * unreachable and no approval was needed.
 */
export interface Approval {
  verdict: Verdict["verdict"] | typeof GATEWAY_AWAY;
  edited: boolean;
  note: string | null;
  by: string | null;
  /** The whole message as edited, or null. */
  content: Record<string, unknown> | null;
  tool_call: string | null;
  tool_input: unknown;
  step: Step;
}

/** Waits while the agent is paused in this session or stopped; throws if its work there was cancelled. A terminal
 * step is allowed after a cancellation. */
export async function waitWhileHeld(
  sender: Sender,
  sessionId: string,
  signal?: AbortSignal,
  terminal = false,
): Promise<void> {
  const { orders } = sender;
  // A pause in force when the agent was closed can no longer end.
  if (!terminal) orders.refuseCancelled(sessionId, orders.isInForce(sessionId));
  while (orders.isHeld(sessionId)) {
    await until(orders.changes, () => !orders.isHeld(sessionId), { signal });
    if (!terminal || orders.closed) orders.refuseCancelled(sessionId, true);
  }
}

/** Records one step once the agent may proceed; if it needs approval, resolves only when approved. */
export async function takeStep(request: StepRequest): Promise<Step> {
  const { sender, line, fields, patience } = request;
  sender.autoListen();
  if (!sender.orders.isFree)
    await waitWhileHeld(sender, line.session_id, patience.signal, Boolean(fields.terminal));
  return recordStep(request);
}

/** Records one step now, paused or not, because it was done already. Waits for approval as `takeStep` does. */
export async function recordStep(request: StepRequest): Promise<Step> {
  const { line, sender, intent, step_id, fields, patience } = request;
  if (!fields.hitl_required) return line.record(sender, intent, step_id, fields);
  const left = countdown(patience);
  return awaitVerdict(request, async (step, key) => {
    const answer = await awaitAnswer(step, sender, left());
    if (answer.state !== "held") return notRequired(...requestedAction(fields));
    return verdictFor(request, step, key, fields, left());
  });
}

/** Like `takeStep` with `hitl_required`; resolves with what was allowed. */
export async function ask(request: StepRequest): Promise<Approval> {
  const fields = frozen({ status: "pending", ...request.fields, hitl_required: true });
  return approvalOf(await takeStep({ ...request, fields }));
}

/**
 * Asks the gateway whether an action is allowed: its rules decide, or a person where a rule, a held ancestor or
 * `needs_approval` requires one. With the gateway unreachable it is allowed (`gateway_away`), unless it needs approval;
 * the step is stored. A gateway that refuses this agent's key is not unreachable: then the action is refused.
 */
export async function permit(request: StepRequest): Promise<Approval> {
  const { needs_approval, ...rest } = request.fields;
  const { sender, line, patience } = request;
  const { outbox } = sender;
  const fields = frozen({ status: "pending", ...rest, hitl_required: Boolean(needs_approval) });
  sender.autoListen();
  if (!sender.orders.isFree) await waitWhileHeld(sender, line.session_id, patience.signal);
  const earlierFailures = outbox.failures;
  const left = countdown(patience);
  try {
    const step = await awaitVerdict({ ...request, fields }, async (step, key) => {
      outbox.hurry();
      const { timeout_s = ANSWER_S, signal } = left();
      const waited = countdown({ timeout_s: ANSWER_S, signal });
      // A gateway that was already unreachable gets one try: ten tools must not wait ten times as long.
      const isOver = (): boolean =>
        step.isSettled || (outbox.failures > earlierFailures && (earlierFailures > 0 || outbox.keyRefused));
      await until(outbox.changes, isOver, { timeout_s: Math.min(timeout_s, ANSWER_S), signal });
      // Slower than `timeout_s` is not unreachable: its rules may forbid it.
      if (!needs_approval)
        await until(outbox.changes, () => step.isSettled || outbox.failures > earlierFailures, waited());
      if (accepted(step).state !== "held") return notRequired(...requestedAction(fields));
      return verdictFor(request, step, key, fields, left());
    });
    return approvalOf(step);
  } catch (no) {
    if (!(no instanceof Denied) || no.step === null) throw no;
    const { step } = no;
    const isSilent = step.outcome === null || step.outcome instanceof Lost;
    if (isSilent && outbox.keyRefused)
      throw new Denied(NOT_ADMITTED, "the gateway does not accept this agent's key", null, step);
    if (needs_approval || outbox.closed || !isSilent) throw no;
    await waitWhileHeld(sender, line.session_id, patience.signal);
    if (sender.on_away === "deny") throw new Denied(GATEWAY_AWAY, FORBIDDEN_AWAY, null, step);
    const [tool_call, tool_input] = requestedAction(fields);
    const details = { edited: false, note: no.note, by: null, content: null, tool_call, tool_input, step };
    return { verdict: GATEWAY_AWAY, ...details };
  }
}

/** Records a step and awaits its verdict; without an approval the branch continues from its previous tip. */
async function awaitVerdict(
  request: StepRequest,
  findVerdict: (step: Step, key: string) => Promise<Verdict>,
): Promise<Step> {
  const { line, sender, intent, fields } = request;
  const stepId = request.step_id ?? newId();
  const key = verdictKey(line.session_id, stepId);
  const { tips } = line;
  let isOpen = true;
  sender.listenNow();
  sender.orders.expect(key);
  let step: Step;
  try {
    step = line.record(sender, intent, stepId, frozen(fields));
    step.verdict = await findVerdict(step, key);
    isOpen = !step.verdict.approved;
  } finally {
    sender.orders.forget(key);
    if (isOpen) line.retreat(stepId, tips); // a step that names it as parent would be held or refused with it
  }
  const { approved, verdict, note, by } = step.verdict;
  if (!approved) throw new Denied(verdict, note, by, step);
  await waitWhileHeld(sender, line.session_id, request.patience.signal); // approved, but possibly paused meanwhile
  return step;
}

async function verdictFor(
  { sender, line }: StepRequest,
  step: Step,
  key: string,
  fields: Readonly<Record<string, unknown>>,
  patience: Patience,
): Promise<Verdict> {
  const item = await awaitItem(sender, key, line.session_id, patience);
  if (item === null) throw new Denied(NO_VERDICT, "no verdict arrived in time", null, step);
  return verdictOf(item, ...requestedAction(fields));
}

function approvalOf(step: Step): Approval {
  const { verdict, edited, note, by, content, tool_call, tool_input } = step.verdict as Verdict; // set for every step that asked
  return { verdict, edited, note, by, content, tool_call, tool_input, step };
}

/** With the input as it will be sent: later changes by the agent are not part of what was approved. */
function frozen(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { ...fields, tool_input: writtenInput(fields.tool_input) };
}

/** Tool and input as they were requested. */
function requestedAction(fields: Readonly<Record<string, unknown>>): [string | null, unknown] {
  return [textOf(fields.tool_call), decoded(writtenInput(fields.tool_input))];
}

/** Sends it at once and waits for the gateway's answer; anything but an acceptance is a denial. */
export async function awaitAnswer(step: Step, sender: Sender, patience: Patience): Promise<Answer> {
  sender.outbox.hurry();
  await step.settled(patience);
  return accepted(step);
}

function accepted(step: Step): Answer {
  try {
    return step.result();
  } catch (error) {
    if (error instanceof Rejected)
      throw new Denied(error.reason || "refused", explain(error.answer) || null, null, step);
    if (error instanceof Lost || error instanceof NotAnswered)
      throw new Denied(NO_VERDICT, "the gateway did not answer", null, step);
    throw error;
  }
}

/** The item that answers `key`, or null if it did not arrive in time; throws when the work was cancelled. */
export async function awaitItem(
  sender: Sender,
  key: string,
  sessionId: string,
  patience: Patience,
): Promise<Received | null> {
  const { orders } = sender;
  await until(
    orders.changes,
    () => orders.answer(key) !== null || orders.closed || orders.isCancelled(sessionId),
    patience,
  );
  const item = orders.answer(key);
  if (item === null) orders.refuseCancelled(sessionId);
  return item;
}
