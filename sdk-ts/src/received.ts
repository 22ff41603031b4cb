/**
 * Types of what an agent receives: inbox items, prompts, verdicts, decisions, handoffs.
 *
 * Rule: the wire form is read unchanged; unknown members and kinds are kept. A received item carries the point from
 * which work continues (`handoff`), so a reply's parent is the step that triggered it (R504).
 */

import { decoded } from "./encode.ts";
import { canonicalId, stepName, traceIdOfParent, traceIdOfSession } from "./ids.ts";
import type { InboxItem, InboxSender, Party } from "./protocol.ts";

type Json = Record<string, unknown>;
const VERDICTS = ["approved", "edited", "rejected", "expired"] as const;

/** The tip of a branch as plain JSON, to be sent along with the work. */
export interface Handoff {
  trace_id: string;
  session_id: string;
  parent_step_ids: string[];
}

/** One item of the inbox. `message` is the delivered message, `body` the content of an order. */
export class Received {
  readonly delivery_id: string;
  readonly kind: string;
  readonly sequence_number: number;
  readonly session_id: string | null;
  readonly created_at: string | null;
  readonly traceparent: string | null;
  readonly tracestate: string | null;
  readonly message_id: string | null;
  readonly message_type: string | null;
  readonly sender: Partial<InboxSender> | null;
  readonly message: Json | null;
  readonly body: Json;

  private constructor(item: Pick<InboxItem, "delivery_id" | "kind"> & Partial<InboxItem>) {
    this.delivery_id = item.delivery_id;
    this.kind = item.kind;
    this.sequence_number = item.sequence_number ?? 0;
    this.session_id = item.session_id ?? null;
    this.created_at = item.created_at ?? null;
    this.traceparent = item.traceparent ?? null;
    this.tracestate = item.tracestate ?? null;
    this.message_id = item.message_id ?? null;
    this.message_type = item.message_type ?? null;
    this.sender = item.sender ?? null;
    this.message = item.message ?? null;
    this.body = objectOf(item.body);
  }

  /** Null if it is not an item. */
  static read(value: unknown): Received | null {
    const item = objectOf(value) as Partial<InboxItem>;
    if (typeof item.delivery_id !== "string" || typeof item.kind !== "string") return null;
    return new Received(item as InboxItem);
  }

  /** Its text: a text's content, a title, or a step's intent; null if it has none. */
  get text(): string | null {
    const payload = objectOf(this.message?.payload);
    const text = payload.content || payload.title || objectOf(this.message?.cognition).intent;
    return typeof text === "string" ? text : null;
  }

  /** The intent of a message sent by the gateway itself: a job's, a webhook's, or `reminder`. */
  get intent(): string | null {
    const { intent } = objectOf(this.message?.metadata);
    return typeof intent === "string" ? intent : null;
  }

  /** The payload of a job, a webhook or a reminder; null if it has none. */
  get payload(): unknown {
    return objectOf(this.message?.metadata).payload ?? null;
  }

  /** Whether the agent requested it with `remind`. */
  get is_reminder(): boolean {
    return this.intent === "reminder" && objectOf(this.message?.sender).entity_id === "sys_scheduler";
  }

  /** The point from which work continues; null for an item without a session. */
  handoff(): Handoff | null {
    if (this.session_id === null) return null;
    const trace =
      (this.traceparent && traceIdOfParent(this.traceparent)) || traceIdOfSession(this.session_id);
    const step = this.#step();
    return { trace_id: canonicalId(trace), session_id: this.session_id, parent_step_ids: step ? [step] : [] };
  }

  /** The name of the step that triggered this item; for an envelope, its message id. */
  #step(): string | null {
    const message = this.message ?? {};
    if ("message_type" in message) return textOf(message.message_id ?? this.message_id);
    const meta = objectOf(message.meta);
    const step = meta.step_id ?? meta.trace_id;
    return step ? stepName(String(this.session_id), canonicalId(String(step))) : null;
  }
}

/** Text a person injected into the agent's next context. */
export interface Prompt {
  text: string;
  by: string | null;
  session_id: string | null;
  delivery_id: string;
}

/**
 * A person's verdict at a gate, or `not_required`. `content` is the whole message as edited, or null. `tool_call` and
 * `tool_input` are what was approved, including edits; null if it was not approved.
 */
export interface Verdict {
  verdict: (typeof VERDICTS)[number] | "not_required";
  approved: boolean;
  edited: boolean;
  by: string | null;
  note: string | null;
  content: Json | null;
  tool_call: string | null;
  tool_input: unknown;
}

/** The chosen option and the decision it answers. */
export interface Decision {
  option_id: string;
  decision_id: string;
  note: string | null;
  owner: Party;
}

export function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function textOf(value: unknown): string | null {
  return value === undefined || value === null ? null : String(value);
}

const UNREADABLE: Verdict = {
  verdict: "rejected",
  approved: false,
  edited: false,
  by: null,
  note: "the gateway's verdict could not be read",
  content: null,
  tool_call: null,
  tool_input: null,
};

/** The person's verdict on a request with `toolCall` and `toolInput`. An unknown verdict allows nothing. */
export function verdictOf(item: Received, toolCall: string | null, toolInput: unknown): Verdict {
  const { verdict, content } = item.body;
  const word = VERDICTS.find((one) => one === verdict);
  const edited = content !== undefined && content !== null;
  if (word === undefined || (word === "edited" && !edited)) return UNREADABLE; // it lacks what was approved
  if (edited) {
    const action = objectOf(objectOf(content).action);
    if (action.tool_call !== undefined && action.tool_call !== null && typeof action.tool_call !== "string")
      return UNREADABLE;
    toolCall = textOf(action.tool_call);
    toolInput = decoded(action.tool_input);
  }
  const approved = word === "approved" || word === "edited";
  return {
    verdict: word,
    approved,
    edited,
    by: textOf(item.body.by),
    note: textOf(item.body.note),
    content: edited ? objectOf(content) : null,
    tool_call: approved ? toolCall : null,
    tool_input: approved ? toolInput : null,
  };
}

/** No gate held it: what was requested is allowed. */
export function notRequired(toolCall: string | null, toolInput: unknown): Verdict {
  return {
    ...UNREADABLE,
    verdict: "not_required",
    approved: true,
    note: null,
    tool_call: toolCall,
    tool_input: toolInput,
  };
}
