/**
 * Where a step waits, and for what: the agent's side of pause, stop, cancel and approval.
 *
 * Law: a step waits only when its agent is known to be paused or stopped (until that ends), or when it asks for a
 * person's approval (until the verdict). A gate fails closed: without a verdict in time the answer is no. And since
 * every object is true in an `if` of JavaScript, a no is never a value here: it is `Denied`.
 */

import type { Answer } from "./client.ts";
import { decoded, writtenInput } from "./encode.ts";
import { Denied, explain, Lost, NotAnswered, Rejected } from "./errors.ts";
import { newId } from "./ids.ts";
import { verdictKey } from "./orders.ts";
import { type Received, textOf, unheld, type Verdict, verdictOf } from "./received.ts";
import type { Line } from "./session.ts";
import type { Speaker } from "./speaker.ts";
import type { Step } from "./step.ts";
import { countdown, type Patience, until } from "./waiting.ts";

export const NO_VERDICT = "no_verdict";
export const GATEWAY_AWAY = "gateway_away";
export const FORBIDDEN_AWAY = "the gateway is away, and this agent may not act without it (on_away: deny)";
const NOT_ADMITTED = "not_admitted";
const ANSWER_S = 5; // how long `permit` waits for the gateway's own answer

/** A step to be: on which line, by whom, and how long its approval may take. */
export interface Said {
  line: Line;
  speaker: Speaker;
  intent: string;
  fields: Readonly<Record<string, unknown>>;
  step_id?: string | undefined;
  patience: Patience;
}

/**
 * What was allowed: do what `tool_call` and `tool_input` say, as the person edited it, else as it was asked (both as
 * data: JSON is decoded). `verdict` is the person's word, `not_required` when no gate held it, `gateway_away` when
 * there was nobody to ask and no approval was needed.
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
 * step is the agent's last word: it passes after a cancellation. */
export async function passBy(
  speaker: Speaker,
  sessionId: string,
  signal?: AbortSignal,
  terminal = false,
): Promise<void> {
  const { orders } = speaker;
  // A pause in force when the agent was closed holds for good: nobody can end it any more.
  if (!terminal) orders.refuseCancelled(sessionId, orders.isInForce(sessionId));
  while (orders.isHeld(sessionId)) {
    await until(orders.bell, () => !orders.isHeld(sessionId), { signal });
    if (!terminal || orders.closed) orders.refuseCancelled(sessionId, true);
  }
}

/** Records one step when it may be; if it asks for approval, resolves only when it was given. */
export async function say(said: Said): Promise<Step> {
  const { speaker, line, fields, patience } = said;
  speaker.hear();
  if (!speaker.orders.isFree)
    await passBy(speaker, line.session_id, patience.signal, Boolean(fields.terminal));
  return tell(said);
}

/** Records one step now, paused or not: what was done is said. Approval is waited for as in `say`. */
export async function tell(said: Said): Promise<Step> {
  const { line, speaker, intent, step_id, fields, patience } = said;
  if (!fields.hitl_required) return line.record(speaker, intent, step_id, fields);
  const left = countdown(patience);
  return held(said, async (step, key) => {
    const answer = await judged(step, speaker, left());
    if (answer.state !== "held") return unheld(...askedOf(fields));
    return verdictFor(said, step, key, fields, left());
  });
}

/** As `say` with `hitl_required`, and what may be done as the answer. */
export async function ask(said: Said): Promise<Approval> {
  const fields = frozen({ status: "pending", ...said.fields, hitl_required: true });
  return approvalOf(await say({ ...said, fields }));
}

/**
 * Asks the gateway whether it may be done: its rules answer, or a person where a rule, a held ancestor or
 * `needs_approval` says so. Without the gateway it may (`gateway_away`), unless it needs approval; the step is kept.
 * But one that does not take our key is not away: who was shut out may do nothing.
 */
export async function permit(said: Said): Promise<Approval> {
  const { needs_approval, ...rest } = said.fields;
  const { speaker, line, patience } = said;
  const { outbox } = speaker;
  const fields = frozen({ status: "pending", ...rest, hitl_required: Boolean(needs_approval) });
  speaker.hear();
  if (!speaker.orders.isFree) await passBy(speaker, line.session_id, patience.signal);
  const wasAway = outbox.failures;
  const left = countdown(patience);
  try {
    const step = await held({ ...said, fields }, async (step, key) => {
      outbox.hurry();
      const { timeout_s = ANSWER_S, signal } = left();
      const waited = countdown({ timeout_s: ANSWER_S, signal });
      // Whoever was away before gets one try, not its time over again: ten tools are not ten times slower.
      const isOver = (): boolean =>
        step.isSettled || (outbox.failures > wasAway && (wasAway > 0 || outbox.barred));
      await until(outbox.bell, isOver, { timeout_s: Math.min(timeout_s, ANSWER_S), signal });
      // One that is only slower than `timeout_s` is not away: its rules may forbid it.
      if (!needs_approval)
        await until(outbox.bell, () => step.isSettled || outbox.failures > wasAway, waited());
      if (accepted(step).state !== "held") return unheld(...askedOf(fields));
      return verdictFor(said, step, key, fields, left());
    });
    return approvalOf(step);
  } catch (no) {
    if (!(no instanceof Denied) || no.step === null) throw no;
    const { step } = no;
    const isSilent = step.outcome === null || step.outcome instanceof Lost;
    if (isSilent && outbox.barred)
      throw new Denied(NOT_ADMITTED, "the gateway does not take this agent's key", null, step);
    if (needs_approval || outbox.closed || !isSilent) throw no;
    await passBy(speaker, line.session_id, patience.signal);
    if (speaker.on_away === "deny") throw new Denied(GATEWAY_AWAY, FORBIDDEN_AWAY, null, step);
    const [tool_call, tool_input] = askedOf(fields);
    const told = { edited: false, note: no.note, by: null, content: null, tool_call, tool_input, step };
    return { verdict: GATEWAY_AWAY, ...told };
  }
}

/** Records a step whose verdict is looked for; without a yes the line goes on from where it stood. */
async function held(said: Said, look: (step: Step, key: string) => Promise<Verdict>): Promise<Step> {
  const { line, speaker, intent, fields } = said;
  const stepId = said.step_id ?? newId();
  const key = verdictKey(line.session_id, stepId);
  const { tips } = line;
  let isOpen = true;
  speaker.listenNow();
  speaker.orders.expect(key);
  let step: Step;
  try {
    step = line.record(speaker, intent, stepId, frozen(fields));
    step.verdict = await look(step, key);
    isOpen = !step.verdict.approved;
  } finally {
    speaker.orders.forget(key);
    if (isOpen) line.retreat(stepId, tips); // what names it as its parent would be held, or refused, with it
  }
  const { approved, verdict, note, by } = step.verdict;
  if (!approved) throw new Denied(verdict, note, by, step);
  await passBy(speaker, line.session_id, said.patience.signal); // approved, but perhaps paused meanwhile
  return step;
}

async function verdictFor(
  { speaker, line }: Said,
  step: Step,
  key: string,
  fields: Readonly<Record<string, unknown>>,
  patience: Patience,
): Promise<Verdict> {
  const item = await arrival(speaker, key, line.session_id, patience);
  if (item === null) throw new Denied(NO_VERDICT, "nobody answered in time", null, step);
  return verdictOf(item, ...askedOf(fields));
}

function approvalOf(step: Step): Approval {
  const { verdict, edited, note, by, content, tool_call, tool_input } = step.verdict as Verdict; // a step that asked has one
  return { verdict, edited, note, by, content, tool_call, tool_input, step };
}

/** With the input as it will be sent: what the agent changes while it waits is not what was approved. */
function frozen(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { ...fields, tool_input: writtenInput(fields.tool_input) };
}

/** Tool and input as they were said. */
function askedOf(fields: Readonly<Record<string, unknown>>): [string | null, unknown] {
  return [textOf(fields.tool_call), decoded(writtenInput(fields.tool_input))];
}

/** Sends it at once and waits for the gateway's answer; whatever is not an acceptance is a denial. */
export async function judged(step: Step, speaker: Speaker, patience: Patience): Promise<Answer> {
  speaker.outbox.hurry();
  await step.settled(patience);
  return accepted(step);
}

function accepted(step: Step): Answer {
  try {
    return step.judged();
  } catch (error) {
    if (error instanceof Rejected)
      throw new Denied(error.reason || "refused", explain(error.answer) || null, null, step);
    if (error instanceof Lost || error instanceof NotAnswered)
      throw new Denied(NO_VERDICT, "the gateway did not answer", null, step);
    throw error;
  }
}

/** What answers `key`, or null if it did not come in time; throws when the work was cancelled. */
export async function arrival(
  speaker: Speaker,
  key: string,
  sessionId: string,
  patience: Patience,
): Promise<Received | null> {
  const { orders } = speaker;
  await until(
    orders.bell,
    () => orders.answer(key) !== null || orders.closed || orders.isCancelled(sessionId),
    patience,
  );
  const item = orders.answer(key);
  if (item === null) orders.refuseCancelled(sessionId);
  return item;
}
