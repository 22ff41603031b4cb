/**
 * What people have ordered of one agent, as far as it knows: pauses, stops, cancellations, prompts, messages.
 *
 * Law: an item counts once, however often it is delivered. An order is acknowledged when it is in force here; a
 * prompt or a message when the agent's own code has taken it, so a killed agent gets it again. Queues are bounded:
 * what does not fit is neither taken nor acknowledged and comes again. No network here: the ear calls `take`,
 * who waits watches `bell`.
 */

import { Cancelled } from "./errors.ts";
import { canonicalId } from "./ids.ts";
import type { Log } from "./log.ts";
import { type Prompt, type Received, textOf } from "./received.ts";
import { Bell } from "./waiting.ts";

const MOST_WAITING = 1000; // prompts, and messages, that nobody has fetched
const MOST_KNOWN = 10_000; // deliveries remembered so that a repeat counts once

/** Stands for "in every session". */
const EVERYWHERE = null;
type Session = string | null;

export function verdictKey(sessionId: string | null, stepId: string | null): string {
  return JSON.stringify(["verdict", canonicalId(sessionId ?? ""), canonicalId(stepId ?? "")]);
}

export function decisionKey(decisionId: unknown): string {
  return JSON.stringify(["decision", decisionId]);
}

export class Orders {
  readonly bell = new Bell();
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

  /** No order is in force: nothing to look up for a step. */
  get isFree(): boolean {
    return !(this.#paused.size || this.#stopped || this.#cancelled.size);
  }

  /** Whether a step in this session waits; false when it would throw instead. */
  isHeld(sessionId: string): boolean {
    return !this.closed && !this.isCancelled(sessionId) && this.isInForce(sessionId);
  }

  /** Whether a pause or a stop holds there, whatever else does. */
  isInForce(sessionId: string): boolean {
    return this.#stopped || this.#paused.has(EVERYWHERE) || this.#paused.has(canonicalId(sessionId));
  }

  refuseCancelled(sessionId: string, waited = false): void {
    const told = this.#cancellation(sessionId);
    if (told !== undefined) throw new Cancelled(sessionId, told.reason, told.by);
    if (waited && this.closed) throw new Cancelled(sessionId, "the agent was closed while the step waited");
  }

  isCancelled(sessionId: string): boolean {
    return this.#cancellation(sessionId) !== undefined;
  }

  #cancellation(sessionId: string): { reason: string; by: string | null } | undefined {
    return this.#cancelled.get(canonicalId(sessionId)) ?? this.#cancelled.get(EVERYWHERE);
  }

  // What the agent asks.

  expect(key: string): void {
    if (!this.#expected.has(key)) this.#expected.set(key, null);
  }

  answer(key: string): Received | null {
    return this.#expected.get(key) ?? null;
  }

  forget(key: string): void {
    this.#expected.delete(key);
  }

  /** All that wait, or those of one session; they count as read now. */
  takePrompts(sessionId?: string): Prompt[] {
    const wanted = sessionId === undefined ? undefined : canonicalId(sessionId);
    const isWanted = (one: Prompt): boolean =>
      wanted === undefined || one.session_id === wanted || one.session_id === null;
    const taken = this.#prompts.filter(isWanted);
    this.#prompts = this.#prompts.filter((one) => !isWanted(one));
    this.#finish(taken.map((one) => one.delivery_id));
    return taken;
  }

  takeMessages(): Received[] {
    const taken = this.#messages;
    this.#messages = [];
    this.#finish(taken.map((one) => one.delivery_id));
    return taken;
  }

  /** The oldest message, not yet acknowledged: `finish` says that it was dealt with. */
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

  // What the ear brings.

  /** The gateway's own word on how things stand, at the start of a connection. */
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
    this.bell.ring();
    if (instructions !== null && isNews) this.#tell(instructions);
  }

  setConnected(connected: boolean): void {
    this.connected = connected;
    this.bell.ring();
  }

  setEntityId(entityId: string | null): void {
    this.entity_id = entityId ?? this.entity_id;
    this.bell.ring();
  }

  /** Obeys or keeps one item; false if it was known or there is no room. */
  take(item: Received): boolean {
    if (this.#waiting.has(item.delivery_id)) return false;
    if (this.#known.has(item.delivery_id)) {
      this.#acknowledge([item.delivery_id]); // our acknowledgement was lost
      return false;
    }
    const taken = this.#apply(item);
    if (taken) this.bell.ring();
    if (taken && item.kind === "instruction") this.#tell(textOf(item.body.text) ?? "");
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
      case "start": // comes only when no other switch stops the agent
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
        return this.#keepOrHandOver(item);
    }
    this.#finish([item.delivery_id]);
    return true;
  }

  /** False for an order that a later one has overtaken: it was delivered again. */
  #isNews(what: string, item: Received): boolean {
    if (item.sequence_number < (this.#last.get(what) ?? 0)) return false;
    this.#last.set(what, item.sequence_number);
    return true;
  }

  #keepPrompt(item: Received, session: Session): boolean {
    if (this.#prompts.length >= MOST_WAITING) return false;
    const { prompt, by } = item.body;
    const kept = { text: textOf(prompt) ?? "", by: textOf(by), session_id: session };
    this.#prompts.push({ ...kept, delivery_id: item.delivery_id });
    this.#waiting.add(item.delivery_id);
    return true;
  }

  /** To whoever waits for it, else among the messages: so a verdict outlives the agent that asked. */
  #keepOrHandOver(item: Received): boolean {
    let key = "";
    if (item.kind === "verdict") key = verdictKey(item.session_id, textOf(item.body.step_id));
    else if (item.kind === "decision") key = decisionKey(item.body.decision_id);
    if (this.#expected.has(key)) {
      this.#expected.set(key, item);
      this.#finish([item.delivery_id]);
      return true;
    }
    if (this.#messages.length >= MOST_WAITING) return false;
    this.#messages.push(item);
    this.#waiting.add(item.delivery_id);
    return true;
  }

  /** The agent's own code, by itself: it must not keep anybody from hearing. */
  #tell(instructions: string): void {
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
      if (this.#known.size <= MOST_KNOWN) break;
      this.#known.delete(id);
    }
  }

  #acknowledge(ids: readonly string[]): void {
    this.#acks.push(...ids);
    if (ids.length) this.on_acks();
  }

  takeAcks(most: number): string[] {
    return this.#acks.splice(0, most);
  }

  /** They could not be sent: they go first next time. */
  giveBackAcks(acks: readonly string[]): void {
    this.#acks.unshift(...acks);
  }

  /** Wakes all who wait. */
  close(): void {
    this.closed = true;
    this.connected = false;
    this.bell.ring();
  }
}
