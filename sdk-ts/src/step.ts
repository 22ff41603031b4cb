/**
 * `Step`, the handle returned by `step`, and the encoding of a step as a DecisionLog.
 *
 * Rule: a step is encoded when it is recorded, so later changes to the agent's objects do not change it. Field names
 * are those on the wire. A step never throws because of a value: the gateway validates it.
 */

import { type Answer, isAccepted } from "./client.ts";
import { encoded, writtenInput } from "./encode.ts";
import { Lost, NotAnswered, Rejected } from "./errors.ts";
import { timestamp } from "./ids.ts";
import type { Outbox } from "./outbox.ts";
import type { Action, Cognition, DecisionLog, Identity, Meta, StateDelta } from "./protocol.ts";
import type { Verdict } from "./received.ts";
import { type Patience, until } from "./waiting.ts";

type Text = readonly string[] | string | null;

/** Optional fields of a step, besides its intent (names as on the wire). */
export interface StepFields {
  tool_call?: string | null;
  /** Anything; sent as JSON. */
  tool_input?: unknown;
  tool_output_summary?: string | null;
  status?: Action["status"];
  duration_ms?: number | null;
  reasoning_chain?: Text;
  confidence_score?: number | null;
  strategy_used?: string | null;
  entropy_score?: number | null;
  alternatives?: Cognition["alternatives"];
  citations?: Cognition["citations"] | string;
  added_to_memory?: Text;
  read_from_memory?: Text;
  tokens_consumed?: number | null;
  /** Cost of this step; the SDK adds the sum for agent and session. */
  cost?: number | null;
  recipient?: string | null;
  /** Waits for a person's verdict. */
  hitl_required?: boolean;
  terminal?: boolean;
  /** It was done without the gateway's verdict. */
  gateway_away?: boolean;
}

/** Options of `step`: its id, and how long its approval may take. */
export interface Saying extends Patience {
  step_id?: string | undefined;
}

const COGNITION = [
  "reasoning_chain",
  "confidence_score",
  "strategy_used",
  "entropy_score",
  "alternatives",
  "citations",
] as const satisfies readonly (keyof Cognition)[];
const STATE = [
  "added_to_memory",
  "read_from_memory",
  "tokens_consumed",
  "cost",
] as const satisfies readonly (keyof StateDelta)[];
const REST = [
  "tool_call",
  "tool_input",
  "tool_output_summary",
  "status",
  "duration_ms",
] as const satisfies readonly (keyof Action)[];
const KNOWN = new Set<string>([
  ...[...COGNITION, ...STATE, ...REST, "recipient", "hitl_required", "terminal", "gateway_away"],
  ...["step_id", "timeout_s", "signal", "needs_approval"],
]);
/** A single string becomes a list of one: `reasoning_chain: "…"` is a common mistake. */
const LISTS = new Set<string>(["reasoning_chain", "citations", "added_to_memory", "read_from_memory"]);

export function unknownNames(fields: object): string[] {
  return Object.keys(fields).filter((name) => !KNOWN.has(name));
}

/** One recorded step, queued for sending; `answer` waits for the gateway's answer. */
export class Step {
  step_id: string | null;
  session_id: string | null;
  /** The result of sending it. */
  outcome: Answer | Lost | null = null;
  /** The verdict, for a step with `hitl_required`; `tool_input` is what was approved. */
  verdict: Verdict | null = null;
  #outbox: Outbox;

  constructor(outbox: Outbox, stepId: string | null, sessionId: string | null) {
    this.#outbox = outbox;
    this.step_id = stepId;
    this.session_id = sessionId;
  }

  /** The gateway's answer if it accepted; else `Rejected`, `Lost`, or `NotAnswered` after `timeout_s`. */
  async answer(patience: Patience = {}): Promise<Answer> {
    await this.settled(patience);
    return this.result();
  }

  settled(patience: Patience): Promise<boolean> {
    return until(this.#outbox.changes, () => this.isSettled, patience);
  }

  result(): Answer {
    const { outcome } = this;
    if (outcome === null)
      throw new NotAnswered(`no answer yet for step ${this.step_id}; it is stored and will be sent`);
    if (outcome instanceof Lost) throw outcome;
    if (!isAccepted(outcome)) throw new Rejected(outcome, this.step_id);
    return outcome;
  }

  /** Its result will not change any more in this process. */
  get isSettled(): boolean {
    return this.outcome !== null || this.#outbox.closed;
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** The DecisionLog of one step as one line of JSON. */
export function writeLog(
  meta: Meta,
  identity: Identity,
  total: number | undefined,
  intent: string,
  fields: Fields,
): string {
  const { recipient, hitl_required, terminal } = fields;
  const log: DecisionLog = {
    meta: { ...meta, timestamp: timestamp() },
    identity: isSet(recipient) ? { ...identity, recipient: recipient as string } : identity,
    cognition: { intent, ...picked(fields, COGNITION) },
    action: {
      ...picked(fields, REST),
      ...(isSet(fields.tool_input) ? { tool_input: writtenInput(fields.tool_input) } : {}),
      status: (fields.status ?? "success") as Action["status"],
    },
    state_delta: {
      ...picked(fields, STATE),
      ...(total === undefined ? {} : { cumulative_session_cost: total }),
    },
    control: {
      hitl_required: Boolean(hitl_required),
      interrupt_signal: null,
      is_terminal: Boolean(terminal),
      ...(fields.gateway_away ? { gateway_away: true } : {}),
    },
  };
  return encoded(log);
}

function picked(fields: Fields, names: readonly string[]): Record<string, unknown> {
  const present = names.filter((name) => isSet(fields[name]));
  return Object.fromEntries(
    present.map((name) => [
      name,
      LISTS.has(name) && typeof fields[name] === "string" ? [fields[name]] : fields[name],
    ]),
  );
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null;

/** The field values, read once; a getter that throws is left out and listed by name. */
export function readFields(fields: object): { values: Record<string, unknown>; unreadable: string[] } {
  const values: Record<string, unknown> = {};
  const unreadable: string[] = [];
  for (const name of namesOf(fields)) {
    try {
      values[name] = (fields as Record<string, unknown>)[name];
    } catch {
      unreadable.push(name);
    }
  }
  return { values, unreadable };
}

function namesOf(fields: object): string[] {
  try {
    return Object.keys(fields);
  } catch {
    return [];
  }
}
