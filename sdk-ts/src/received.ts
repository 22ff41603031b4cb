/**
 * What reaches an agent: the items of its inbox, and the words made of them.
 *
 * Law: the wire form is read as it is, unknown members and kinds are kept; a received item knows from where the work
 * goes on (`handoff`), so a reply's parent is what triggered it (R504).
 */

import { decoded } from "./encode.ts";
import { canonicalId, stepName, traceIdOfParent, traceIdOfSession } from "./ids.ts";
import type { InboxItem, InboxSender, Party } from "./protocol.ts";

type Json = Record<string, unknown>;
const WORDS = ["approved", "edited", "rejected", "expired"] as const;

/** A line's end as plain JSON, to be sent along with the work. */
export interface Handoff {
  trace_id: string;
  session_id: string;
  parent_step_ids: string[];
}

/** One item of the inbox. `message` is what was delivered to the agent, `body` what an order says. */
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

  /** Null for what is no item. */
  static read(told: unknown): Received | null {
    const item = objectOf(told) as Partial<InboxItem>;
    if (typeof item.delivery_id !== "string" || typeof item.kind !== "string") return null;
    return new Received(item as InboxItem);
  }

  /** What it says in words: a text's content, a title, a step's intent; null if it has none. */
  get text(): string | null {
    const payload = objectOf(this.message?.payload);
    const found = payload.content || payload.title || objectOf(this.message?.cognition).intent;
    return typeof found === "string" ? found : null;
  }

  /** What the house wants, of a message of its own: a job's intent, a webhook's; `reminder`. */
  get intent(): string | null {
    const found = objectOf(this.message?.metadata).intent;
    return typeof found === "string" ? found : null;
  }

  /** What a job, a webhook or a reminder carries; null if it carries nothing. */
  get payload(): unknown {
    return objectOf(this.message?.metadata).payload ?? null;
  }

  /** Whether the agent itself had asked for it, by `remind`. */
  get is_reminder(): boolean {
    return this.intent === "reminder" && objectOf(this.message?.sender).entity_id === "sys_scheduler";
  }

  /** Where the work goes on; null for what belongs to no session. */
  handoff(): Handoff | null {
    if (this.session_id === null) return null;
    const trace =
      (this.traceparent && traceIdOfParent(this.traceparent)) || traceIdOfSession(this.session_id);
    const step = this.#step();
    return { trace_id: canonicalId(trace), session_id: this.session_id, parent_step_ids: step ? [step] : [] };
  }

  /** The name of the step that triggered this: an envelope's is its message id. */
  #step(): string | null {
    const message = this.message ?? {};
    if ("message_type" in message) return textOf(message.message_id ?? this.message_id);
    const meta = objectOf(message.meta);
    const step = meta.step_id ?? meta.trace_id;
    return step ? stepName(String(this.session_id), canonicalId(String(step))) : null;
  }
}

/** What a person put into the agent's next context. */
export interface Prompt {
  text: string;
  by: string | null;
  session_id: string | null;
  delivery_id: string;
}

/**
 * A person's word at a gate, or `not_required`. `content` is the whole message as edited, or null. `tool_call` and
 * `tool_input` are what was approved: as edited, else as asked; null if it was not.
 */
export interface Verdict {
  verdict: (typeof WORDS)[number] | "not_required";
  approved: boolean;
  edited: boolean;
  by: string | null;
  note: string | null;
  content: Json | null;
  tool_call: string | null;
  tool_input: unknown;
}

/** The option that was chosen, and which decision it answers. */
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

/** The person's word on what was asked with `toolCall` and `toolInput`. A word we do not know allows nothing. */
export function verdictOf(item: Received, toolCall: string | null, toolInput: unknown): Verdict {
  const { verdict, content } = item.body;
  const word = WORDS.find((one) => one === verdict);
  const edited = content !== undefined && content !== null;
  if (word === undefined || (word === "edited" && !edited)) return UNREADABLE; // it does not say what was approved
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

/** No gate held it: what was asked may be done. */
export function unheld(toolCall: string | null, toolInput: unknown): Verdict {
  return {
    ...UNREADABLE,
    verdict: "not_required",
    approved: true,
    note: null,
    tool_call: toolCall,
    tool_input: toolInput,
  };
}
