/**
 * `think` and `proof`: what an agent decided and why, in the gateway's decision trail.
 *
 * Law: unlike a step a thought is no telemetry. When `think` resolves it is durable and has its place in the chain;
 * while the gateway is away it rejects with `NotAnswered` and keeps nothing to send later. The record's id is chosen
 * here, so thinking the same again under that id is safe: it is recorded once.
 */

import { NoChannel } from "./ear.ts";
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
import type { Speaker } from "./speaker.ts";

const TIMEOUT_S = 10;
/** What one text may stand for: the other kinds hold more than one thing, by name. */
const MEMBER: Record<string, string> = { plan: "trajectory", analysis: "observation" };

export type Content = string | Record<string, unknown>;

/** What a thought may say besides its kind and content. */
export interface Thought {
  session_id?: string;
  task_id?: string;
  references?: readonly string[];
  audit_event_ids?: readonly string[];
  record_id?: string;
  timeout_s?: number;
}

/** Asks the gateway for something that must be durable before it is answered. */
export async function asking<T>(
  speaker: Speaker,
  path: string,
  body: unknown,
  what: string,
  timeoutS: number,
): Promise<T> {
  try {
    const { status, body: text } = await speaker.ear.request(path, body, timeoutS);
    const told = answerOf(text);
    if (status >= 200 && status < 300) return told as T;
    const [reason, detail] = [textOf(told.reason) ?? "", textOf(told.detail)];
    throw new Rejected({ code: status, reason, detail }, what);
  } catch (error) {
    if (error instanceof NoChannel)
      throw new NotAnswered(`the gateway did not answer to ${what}; nothing is kept, ask again`, {
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
  speaker: Speaker,
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
    agent_id: speaker.agent_id,
  } as NewThought;
  return asking(speaker, "/v1/thoughts", body, `the thought ${record_id}`, timeout_s);
}

/** One text is all a plan or an analysis needs. */
function written(kind: string, content: Content): Record<string, unknown> {
  if (typeof content !== "string") return content;
  const member = MEMBER[kind];
  if (member === undefined)
    throw new TypeError(`a ${kind} holds more than one text: give its members by name`);
  return { [member]: content };
}

export interface ProofTerms {
  task_id?: string;
  session_id?: string;
  /** The id of the session before. */
  predecessor?: string;
  timeout_s?: number;
}

/** A proof-grade session: think in it, `conclude`, and it is sealed when its block ends; then `root` can be pinned. */
export class Proof {
  session_id: string;
  readonly task_id: string;
  genesis: string | null = null;
  /** Of the seal. */
  root: string | null = null;
  #speaker: Speaker;
  #intent: string;
  #predecessor: string | undefined;
  #timeoutS: number;
  #closing: [Record<string, unknown>, Thought] | null = null;

  constructor(speaker: Speaker, intent: string, terms: ProofTerms) {
    this.#speaker = speaker;
    this.#intent = intent;
    this.#predecessor = terms.predecessor;
    this.#timeoutS = terms.timeout_s ?? TIMEOUT_S;
    this.session_id = terms.session_id ?? `ses_${newId()}`;
    this.task_id = terms.task_id ?? `tsk_${this.session_id}`;
  }

  /** As `agent.think`, in this session and for its task unless another is named. */
  think(kind: string, content: Content, thought: Thought = {}): Promise<RecordedThought> {
    const { session_id, task_id } = this;
    return think(this.#speaker, kind, content, {
      session_id,
      task_id,
      timeout_s: this.#timeoutS,
      ...thought,
    });
  }

  /** The closing reflection. It is recorded when the block ends, after the chain was verified. */
  conclude({
    happened,
    proved,
    uncertain,
    ...thought
  }: { happened: unknown; proved: unknown; uncertain: unknown } & Thought): void {
    // Its id is chosen now, so that finishing again records it once.
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
      agent_id: this.#speaker.agent_id,
    } as NewThoughtSession;
    const told = await this.#ask<StartedSession>("/v1/thought-sessions", body, "start");
    this.session_id = told.session_id;
    this.genesis = told.genesis;
  }

  /** The writeback order: verify, the closing reflection, the seal, the end. May be asked for again when the gateway
   * did not answer. */
  async finish(): Promise<void> {
    if (this.#closing === null)
      throw new TypeError("a proof ends with its reflection: conclude({happened, proved, uncertain})");
    const path = `/v1/sessions/${encodeURIComponent(this.session_id)}`;
    const found = await this.#ask<Record<string, unknown>>(`${path}/thoughts/verify`, {}, "verification");
    if (found.valid !== true)
      throw new ChainBroken(this.session_id, (found.first_broken_index as number | null) ?? null);
    await this.think("reflection", ...this.#closing);
    this.root = (await this.#ask<SealAnswer>(`${path}/seal`, {}, "seal")).root;
    await this.#ask(`${path}/thoughts/end`, {}, "end");
  }

  #ask<T>(path: string, body: unknown, what: string): Promise<T> {
    return asking(this.#speaker, path, body, `the ${what} of ${this.session_id}`, this.#timeoutS);
  }
}
