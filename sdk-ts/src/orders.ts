/**
 * The orders one agent has received: pauses, stops, cancellations, prompts, messages.
 *
 * Rule: an item counts once, however often it is delivered. An order is acknowledged when it is in force here; a
 * prompt or a message when the agent's code has taken it, so a killed agent receives it again. Queues are bounded: an
 * item that does not fit is neither accepted nor acknowledged and is delivered again. No network here: the receiver
 * calls `take`, waiters watch `changes`.
 */

import { Cancelled } from "./errors.ts";
import { canonicalId } from "./ids.ts";
import type { Log } from "./log.ts";
import { type Prompt, type Received, textOf } from "./received.ts";
import { ChangeNotifier } from "./waiting.ts";

const MAX_WAITING = 1000; // prompts, and messages, that the agent has not fetched
const MAX_KNOWN = 10_000; // delivery ids remembered so that a repeat counts once

/** Key of orders for every session. */
const EVERYWHERE = null;
type Session = string | null;

export function verdictKey(sessionId: string | null, stepId: string | null): string {
  return JSON.stringify(["verdict", canonicalId(sessionId ?? ""), canonicalId(stepId ?? "")]);
}

export function decisionKey(decisionId: unknown): string {
  return JSON.stringify(["decision", decisionId]);
}

export class Orders {
  readonly changes = new ChangeNotifier();
  readonly name: string;
  entity_id: string | null = null;
  instructions: string | null = null;
  connected = false;
  closed = false;
  on_acks: () => void = () => {};
  #onInstruction: ((text: string) => void) | undefined;
  #log: Log;
  #paused = new Set<Session>();
  #cancelled = new Map<Session, { reason: string; by: string | null }>();
  #stopped = false;
  #last = new Map<string, number>(); // what an order changes -> number of the latest one obeyed
  #expected = new Map<string, Received | null>();
  #prompts: Prompt[] = [];
  #messages: Received[] = [];
  #waiting = new Set<string>();
  #known = new Set<string>();
  #acks: string[] = [];

  constructor(name: string, log: Log, onInstruction?: (text: string) => void) {
    this.name = name;
    this.#log = log;
    this.#onInstruction = onInstruction;
  }

  // Waiting.

  /** No order is in force: a step has nothing to check. */
  get isFree(): boolean {
    return !(this.#paused.size || this.#stopped || this.#cancelled.size);
  }

  /** Whether a step in this session waits; false when it would throw instead. */
  isHeld(sessionId: string): boolean {
    return !this.closed && !this.isCancelled(sessionId) && this.isInForce(sessionId);
  }

  /** Whether a pause or a stop applies there, whatever else does. */
  isInForce(sessionId: string): boolean {
    return this.#stopped || this.#paused.has(EVERYWHERE) || this.#paused.has(canonicalId(sessionId));
  }

  refuseCancelled(sessionId: string, waited = false): void {
    const cancellation = this.#cancellation(sessionId);
    if (cancellation !== undefined) throw new Cancelled(sessionId, cancellation.reason, cancellation.by);
    if (waited && this.closed) throw new Cancelled(sessionId, "the agent was closed while the step waited");
  }

  isCancelled(sessionId: string): boolean {
    return this.#cancellation(sessionId) !== undefined;
  }

  #cancellation(sessionId: string): { reason: string; by: string | null } | undefined {
    return this.#cancelled.get(canonicalId(sessionId)) ?? this.#cancelled.get(EVERYWHERE);
  }

  // Called by the agent.

  expect(key: string): void {
    if (!this.#expected.has(key)) this.#expected.set(key, null);
  }

  answer(key: string): Received | null {
    return this.#expected.get(key) ?? null;
  }

  forget(key: string): void {
    this.#expected.delete(key);
  }

  /** All waiting prompts, or those of one session; they count as read now. */
  takePrompts(sessionId?: string): Prompt[] {
    const session = sessionId === undefined ? undefined : canonicalId(sessionId);
    const matches = (one: Prompt): boolean =>
      session === undefined || one.session_id === session || one.session_id === null;
    const taken = this.#prompts.filter(matches);
    this.#prompts = this.#prompts.filter((one) => !matches(one));
    this.#finish(taken.map((one) => one.delivery_id));
    return taken;
  }

  takeMessages(): Received[] {
    const taken = this.#messages;
    this.#messages = [];
    this.#finish(taken.map((one) => one.delivery_id));
    return taken;
  }

  /** The oldest message, not yet acknowledged: `finish` marks it as handled. */
  nextMessage(): Received | null {
    return this.#messages.shift() ?? null;
  }

  finish(item: Received): void {
    this.#finish([item.delivery_id]);
  }

  get hasMessages(): boolean {
    return this.#messages.length > 0;
  }

  get hasPrompts(): boolean {
    return this.#prompts.length > 0;
  }

  // Called by the receiver.

  /** The gateway's state for this agent, sent at the start of a connection. */
  hello(
    entityId: string | null,
    paused: readonly string[],
    stopped: boolean,
    instructions: string | null,
    everywhere = false,
  ): void {
    const isNews = instructions !== null && instructions !== this.instructions;
    this.instructions = instructions ?? this.instructions;
    this.entity_id = entityId ?? this.entity_id;
    this.#paused = new Set<Session>(paused.map(canonicalId));
    if (everywhere) this.#paused.add(EVERYWHERE);
    this.#stopped = stopped;
    this.connected = true;
    this.changes.notify();
    if (instructions !== null && isNews) this.#notifyInstruction(instructions);
  }

  setConnected(connected: boolean): void {
    this.connected = connected;
    this.changes.notify();
  }

  setEntityId(entityId: string | null): void {
    this.entity_id = entityId ?? this.entity_id;
    this.changes.notify();
  }

  /** Applies or queues one item; false if it is known already or the queue is full. */
  take(item: Received): boolean {
    if (this.#waiting.has(item.delivery_id)) return false;
    if (this.#known.has(item.delivery_id)) {
      this.#acknowledge([item.delivery_id]); // the acknowledgement was lost
      return false;
    }
    const taken = this.#apply(item);
    if (taken) this.changes.notify();
    if (taken && item.kind === "instruction") this.#notifyInstruction(textOf(item.body.text) ?? "");
    return taken;
  }

  #apply(item: Received): boolean {
    const session = item.session_id === null ? EVERYWHERE : canonicalId(item.session_id);
    switch (item.kind) {
      case "hold":
      case "resume":
        if (this.#isNews(`pause ${session}`, item))
          item.kind === "hold" ? this.#paused.add(session) : this.#paused.delete(session);
        break;
      case "stop":
      case "start": // sent only when no other switch stops the agent
        if (this.#isNews("stop", item)) this.#stopped = item.kind === "stop";
        break;
      case "cancel":
        this.#cancelled.set(session, { reason: textOf(item.body.reason) ?? "", by: textOf(item.body.by) });
        break;
      case "instruction":
        if (this.#isNews("instruction", item)) this.instructions = textOf(item.body.text);
        break;
      case "inject":
        return this.#keepPrompt(item, session);
      default:
        return this.#queueOrHandOver(item);
    }
    this.#finish([item.delivery_id]);
    return true;
  }

  /** False for a redelivered order that a later one has replaced. */
  #isNews(what: string, item: Received): boolean {
    if (item.sequence_number < (this.#last.get(what) ?? 0)) return false;
    this.#last.set(what, item.sequence_number);
    return true;
  }

  #keepPrompt(item: Received, session: Session): boolean {
    if (this.#prompts.length >= MAX_WAITING) return false;
    const { prompt, by } = item.body;
    const kept = { text: textOf(prompt) ?? "", by: textOf(by), session_id: session };
    this.#prompts.push({ ...kept, delivery_id: item.delivery_id });
    this.#waiting.add(item.delivery_id);
    return true;
  }

  /** To the caller waiting for it, else to the message queue: a verdict outlives the agent that asked. */
  #queueOrHandOver(item: Received): boolean {
    let key = "";
    if (item.kind === "verdict") key = verdictKey(item.session_id, textOf(item.body.step_id));
    else if (item.kind === "decision") key = decisionKey(item.body.decision_id);
    if (this.#expected.has(key)) {
      this.#expected.set(key, item);
      this.#finish([item.delivery_id]);
      return true;
    }
    if (this.#messages.length >= MAX_WAITING) return false;
    this.#messages.push(item);
    this.#waiting.add(item.delivery_id);
    return true;
  }

  /** Calls the agent's listener asynchronously: it must not block the receiver. */
  #notifyInstruction(instructions: string): void {
    const listener = this.#onInstruction;
    if (listener === undefined) return;
    void Promise.resolve()
      .then(() => listener(instructions))
      .catch((error: unknown) => this.#log("error", `${this.name}: on_instruction failed (${error})`));
  }

  // Acknowledging.

  #finish(ids: readonly string[]): void {
    for (const id of ids) {
      this.#waiting.delete(id);
      this.#known.add(id);
    }
    this.#acknowledge(ids);
    for (const id of this.#known) {
      if (this.#known.size <= MAX_KNOWN) break;
      this.#known.delete(id);
    }
  }

  #acknowledge(ids: readonly string[]): void {
    this.#acks.push(...ids);
    if (ids.length) this.on_acks();
  }

  takeAcks(limit: number): string[] {
    return this.#acks.splice(0, limit);
  }

  /** They could not be sent: send them first next time. */
  giveBackAcks(acks: readonly string[]): void {
    this.#acks.unshift(...acks);
  }

  /** Wakes all waiters. */
  close(): void {
    this.closed = true;
    this.connected = false;
    this.changes.notify();
  }
}
