/**
 * `think` and `proof`: record what an agent decided and why in the gateway's decision trail.
 *
 * Rule: unlike a step, a thought is not telemetry. When `think` resolves, it is durable and part of the chain; while
 * the gateway is unreachable it rejects with `NotAnswered` and stores nothing to send later. The client chooses the
 * record id, so retrying with the same id is safe: the thought is recorded once.
 */

import { ChainBroken, NotAnswered, Rejected } from "./errors.ts";
import { newId } from "./ids.ts";
import type {
  NewThought,
  NewThoughtSession,
  RecordedThought,
  SealAnswer,
  StartedSession,
} from "./protocol.ts";
import { objectOf, textOf } from "./received.ts";
import { NoResponse } from "./receiver.ts";
import type { Sender } from "./sender.ts";

const TIMEOUT_S = 10;
/** The member a single text stands for; other kinds have more than one member. */
const TEXT_MEMBER: Record<string, string> = { plan: "trajectory", analysis: "observation" };

export type Content = string | Record<string, unknown>;

/** Optional fields of a thought, besides its kind and content. */
export interface Thought {
  session_id?: string;
  task_id?: string;
  references?: readonly string[];
  audit_event_ids?: readonly string[];
  record_id?: string;
  timeout_s?: number;
}

/** Sends a request that must be durable before it is answered. */
export async function requestDurably<T>(
  sender: Sender,
  path: string,
  body: unknown,
  what: string,
  timeoutS: number,
): Promise<T> {
  try {
    const { status, body: text } = await sender.receiver.request(path, body, timeoutS);
    const answer = answerOf(text);
    if (status >= 200 && status < 300) return answer as T;
    const [reason, detail] = [textOf(answer.reason) ?? "", textOf(answer.detail)];
    throw new Rejected({ code: status, reason, detail }, what);
  } catch (error) {
    if (error instanceof NoResponse)
      throw new NotAnswered(`the gateway did not answer ${what}; nothing was stored, try again`, {
        cause: error,
      });
    throw error;
  }
}

function answerOf(text: string): Record<string, unknown> {
  try {
    return objectOf(JSON.parse(text));
  } catch {
    return {};
  }
}

export async function think(
  sender: Sender,
  kind: string,
  content: Content,
  thought: Thought & { session_id: string },
): Promise<RecordedThought> {
  const { session_id, timeout_s = TIMEOUT_S } = thought;
  const record_id = thought.record_id ?? `rec_${newId()}`;
  const body = {
    session_id,
    task_id: thought.task_id ?? `tsk_${session_id}`,
    type: kind,
    content: written(kind, content),
    references: [...(thought.references ?? [])],
    audit_event_ids: [...(thought.audit_event_ids ?? [])],
    record_id,
    agent_id: sender.agent_id,
  } as NewThought;
  return requestDurably(sender, "/v1/thoughts", body, `the thought ${record_id}`, timeout_s);
}

/** A plan or an analysis can be given as a single text. */
function written(kind: string, content: Content): Record<string, unknown> {
  if (typeof content !== "string") return content;
  const member = TEXT_MEMBER[kind];
  if (member === undefined) throw new TypeError(`a ${kind} has more than one member: pass them by name`);
  return { [member]: content };
}

export interface ProofTerms {
  task_id?: string;
  session_id?: string;
  /** The id of the previous session. */
  predecessor?: string;
  timeout_s?: number;
}

/** A proof-grade session: call `think` and `conclude`; it is sealed when its block ends; then `root` can be pinned. */
export class Proof {
  session_id: string;
  readonly task_id: string;
  genesis: string | null = null;
  /** Root of the seal. */
  root: string | null = null;
  #sender: Sender;
  #intent: string;
  #predecessor: string | undefined;
  #timeoutS: number;
  #closing: [Record<string, unknown>, Thought] | null = null;

  constructor(sender: Sender, intent: string, terms: ProofTerms) {
    this.#sender = sender;
    this.#intent = intent;
    this.#predecessor = terms.predecessor;
    this.#timeoutS = terms.timeout_s ?? TIMEOUT_S;
    this.session_id = terms.session_id ?? `ses_${newId()}`;
    this.task_id = terms.task_id ?? `tsk_${this.session_id}`;
  }

  /** Like `agent.think`, in this session and for its task unless another is given. */
  think(kind: string, content: Content, thought: Thought = {}): Promise<RecordedThought> {
    const { session_id, task_id } = this;
    return think(this.#sender, kind, content, {
      session_id,
      task_id,
      timeout_s: this.#timeoutS,
      ...thought,
    });
  }

  /** Sets the closing reflection. It is recorded when the block ends, after the chain is verified. */
  conclude({
    happened,
    proved,
    uncertain,
    ...thought
  }: { happened: unknown; proved: unknown; uncertain: unknown } & Thought): void {
    // The id is chosen now, so that a retry of `finish` records it once.
    this.#closing = [
      { happened, proved, uncertain },
      { record_id: `rec_${newId()}`, ...thought },
    ];
  }

  async start(): Promise<void> {
    const body = {
      intent: this.#intent,
      task_id: this.task_id,
      session_id: this.session_id,
      predecessor_session_id: this.#predecessor ?? null,
      agent_id: this.#sender.agent_id,
    } as NewThoughtSession;
    const started = await this.#ask<StartedSession>("/v1/thought-sessions", body, "start");
    this.session_id = started.session_id;
    this.genesis = started.genesis;
  }

  /** The writeback order: verify, the closing reflection, the seal, the end. May be called again when the gateway did
   * not answer. */
  async finish(): Promise<void> {
    if (this.#closing === null)
      throw new TypeError("a proof needs its closing reflection: conclude({happened, proved, uncertain})");
    const path = `/v1/sessions/${encodeURIComponent(this.session_id)}`;
    const report = await this.#ask<Record<string, unknown>>(`${path}/thoughts/verify`, {}, "verification");
    if (report.valid !== true)
      throw new ChainBroken(this.session_id, (report.first_broken_index as number | null) ?? null);
    await this.think("reflection", ...this.#closing);
    this.root = (await this.#ask<SealAnswer>(`${path}/seal`, {}, "seal")).root;
    await this.#ask(`${path}/thoughts/end`, {}, "end");
  }

  #ask<T>(path: string, body: unknown, what: string): Promise<T> {
    return requestDurably(this.#sender, path, body, `the ${what} of ${this.session_id}`, this.#timeoutS);
  }
}
