/**
 * Sessions: which agent recorded which step, and what each step follows from.
 *
 * Rule: every step names its parents. A session keeps the tip of its branch and moves it with each step; `fork` starts
 * a second branch from the same point, `join` merges branches, `handoff` passes a branch to another agent or process.
 * Inside `session.run(…)` steps of *any* agent are recorded on that branch, if the platform can track what runs inside
 * (Node can; in a browser call `session.step`).
 */

import { type ConfirmationStatus, confirm, decide, type Option, type Terms } from "./decisions.ts";
import { Denied } from "./errors.ts";
import {
  type Approval,
  ask,
  FORBIDDEN_AWAY,
  GATEWAY_AWAY,
  permit,
  recordStep,
  type StepRequest,
  takeStep,
  waitWhileHeld,
} from "./gate.ts";
import { newId } from "./ids.ts";
import type { RecordedThought } from "./protocol.ts";
import { type Decision, type Handoff, type Prompt, Received } from "./received.ts";
import type { Sender } from "./sender.ts";
import { readFields, type Saying, Step, type StepFields, unknownNames, writeLog } from "./step.ts";
import { type Content, type Thought, think } from "./thoughts.ts";
import type { Patience } from "./waiting.ts";

/** Statuses of a tool that ran. */
const RAN = new Set(["success", "failure"]);

/** State shared by all branches of one session in this process. */
interface Shared {
  trace_id: string;
  session_id: string;
  costs: Map<string, number>; // by agent: cumulative cost is per agent
}

/** One branch of a session. */
export class SessionBranch {
  readonly shared: Shared;
  readonly #origin: readonly string[];
  #tips: readonly string[];

  constructor(shared: Shared, tips: readonly string[] = []) {
    this.shared = shared;
    this.#origin = this.#tips = tips;
  }

  get session_id(): string {
    return this.shared.session_id;
  }

  get trace_id(): string {
    return this.shared.trace_id;
  }

  /** The steps the next one will name as its parents. */
  get tips(): readonly string[] {
    return this.#tips;
  }

  fork(): SessionBranch {
    return new SessionBranch(this.shared, this.#tips);
  }

  join(lines: readonly SessionBranch[]): void {
    if (lines.some((line) => line.session_id !== this.session_id))
      throw new Error("only lines of one session can be joined; use handoff() to continue another's");
    const moved = lines.filter((line) => line.#tips !== line.#origin);
    const keepsOwnTips = !moved.length || !moved.some((line) => same(line.#origin, this.#tips));
    this.#tips = [...new Set([...(keepsOwnTips ? this.#tips : []), ...moved.flatMap((line) => line.#tips)])];
  }

  handoff(): Handoff {
    return { trace_id: this.trace_id, session_id: this.session_id, parent_step_ids: [...this.#tips] };
  }

  /** Writes one step of `sender` at the tip of this branch. */
  record(
    sender: Sender,
    intent: string,
    stepId: string | undefined,
    fields: Readonly<Record<string, unknown>>,
  ): Step {
    const id = stepId ?? newId();
    const step = new Step(sender.outbox, id, this.session_id);
    const meta = {
      trace_id: this.trace_id,
      step_id: id,
      session_id: this.session_id,
      parent_step_id: this.#tips[0] ?? null,
      cluster_id: sender.cluster,
      timestamp: "",
      ...(this.#tips.length > 1 ? { parent_step_ids: [...this.#tips] } : {}),
    };
    const total = this.#total(sender.agent_id, fields.cost);
    const wasRun = fields.tool_call && RAN.has((fields.status as string | undefined) ?? "success");
    const isAway = wasRun && sender.outbox.failures > 0;
    const complete = isAway ? { ...fields, gateway_away: true } : fields;
    sender.outbox.put(writeLog(meta, sender.identity, total, intent, complete), step);
    this.#tips = [id];
    if (total !== undefined) this.shared.costs.set(sender.agent_id, total);
    return step;
  }

  /** For messages that are not steps: `write` receives the parents; the tip moves afterwards. */
  advance(stepId: string, write: (tips: readonly string[]) => Step): Step {
    const step = write(this.#tips);
    this.#tips = [stepId];
    return step;
  }

  /** Continues from `tips` instead, unless more was recorded since. */
  retreat(stepId: string, tips: readonly string[]): void {
    if (same(this.#tips, [stepId])) this.#tips = tips;
  }

  #total(agentId: string, cost: unknown): number | undefined {
    const spent = this.shared.costs.get(agentId);
    const total = typeof cost === "number" ? (spent ?? 0) + cost : Number.NaN; // not a number: the gateway will report it
    return Number.isFinite(total) ? Number(total.toFixed(10)) : spent; // no 0.30000000000000004
  }
}

const same = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((tip, n) => tip === other[n]);

/** A step's promise may be ignored: its rejection must not end the agent's process. */
export function unattended<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** An error as text, even if its `toString` throws. */
function describeError(error: unknown): string {
  try {
    return String(error).slice(0, 500);
  } catch {
    return "an error that cannot be read";
  }
}

/** A tool call being timed. Set `output`, and any step field in `fields`, before it ends. */
export interface ToolCall {
  output: string | null;
  fields: StepFields;
  /** What recorded it, once it has ended. */
  step: Step | null;
}

/** The methods agents and sessions share; `here` returns the branch and the sender. */
export abstract class StepMethods {
  protected abstract here(): [SessionBranch, Sender];

  #request(intent: string, given: StepFields & Saying): StepRequest {
    const [line, sender] = this.here();
    const { values, unreadable } = readFields(given ?? {});
    const odd = [...unknownNames(values), ...unreadable];
    if (odd.length)
      sender.log("warning", `${sender.agent_id}: a step does not know ${odd.join(", ")}; recorded without`);
    const { step_id, timeout_s, signal, ...fields } = values;
    const patience = { timeout_s, signal } as Patience;
    return { line, sender, intent, step_id: step_id as string | undefined, fields, patience };
  }

  /**
   * Records what was done in this session; it is queued before this returns.
   *
   * The promise waits in two cases only: while the agent is known to be paused or stopped, and with `hitl_required`
   * for the verdict: `step.verdict` when approved or edited, else `Denied`, also when none arrived within `timeout_s`.
   * Rejects with `Cancelled` when a person cancelled this work.
   */
  step(intent: string, fields: StepFields & Saying = {}): Promise<Step> {
    return unattended(takeStep(this.#request(intent, fields)));
  }

  /** Asks a person before an action: resolves with what was approved, rejects with `Denied`. */
  ask(intent: string, fields: StepFields & Saying = {}): Promise<Approval> {
    return unattended(ask(this.#request(intent, fields)));
  }

  /** Asks whether an action is allowed: waits like `ask` where a rule, a cap or `needs_approval` holds it; else resolves at once. */
  permit(intent: string, fields: StepFields & Saying & { needs_approval?: boolean } = {}): Promise<Approval> {
    return unattended(permit(this.#request(intent, fields)));
  }

  /** Runs `action`, times it and records it as a step, failed if it throws; a paused agent waits before it. */
  async tool<T>(
    toolCall: string,
    toolInput: unknown,
    action: (call: ToolCall) => T | Promise<T>,
    { intent = `Call ${toolCall}` }: { intent?: string } = {},
  ): Promise<T> {
    const [line, sender] = this.here();
    sender.autoListen();
    await waitWhileHeld(sender, line.session_id);
    const isAway = sender.outbox.failures > 0;
    if (isAway && sender.on_away === "deny") throw new Denied(GATEWAY_AWAY, FORBIDDEN_AWAY, null, null);
    const call: ToolCall = {
      output: null,
      fields: {
        tool_call: toolCall,
        tool_input: toolInput,
        ...(isAway ? { gateway_away: true } : {}),
      },
      step: null,
    };
    const began = performance.now();
    try {
      return await action(call);
    } catch (error) {
      call.fields.status = "failure";
      call.output ??= describeError(error);
      throw error;
    } finally {
      call.fields.duration_ms = Math.round(performance.now() - began);
      if (call.output !== null) call.fields.tool_output_summary = call.output;
      const fields = { ...call.fields };
      call.step = await recordStep({ line, sender, intent, fields, patience: {} });
    }
  }

  /** Requests a reminder in this session after `in_s` seconds or at a time: it arrives as a message (`is_reminder`,
   * `payload`) to this agent, also after either side restarts. */
  remind(
    when: { in_s: number } | { at: Date | string },
    payload: unknown = null,
    intent = "Be reminded later",
  ): Promise<Step> {
    const request: Record<string, unknown> = { payload };
    if ("in_s" in when) request.delay_ms = Math.round(when.in_s * 1000);
    else request.at = when.at instanceof Date ? when.at.toISOString() : when.at;
    return this.step(intent, { tool_call: "schedule_reminder", tool_input: request });
  }

  /** Lets the owner choose. The gateway takes `default` at `deadline` (a time, or seconds from now). Rejects with
   * `Denied` when no option was chosen, or none within `timeout_s`. */
  decide(title: string, options: readonly Option[], terms: Terms = {}): Promise<Decision> {
    return unattended(decide(...this.here(), title, options, terms));
  }

  /** Reports the result of a decision (`action_confirmation`); `fields` as on the wire. Works while paused; an agent
   * that was never connected waits for a connection, then rejects with `NotAnswered`. */
  confirm(
    decision: Decision | string | null,
    status: ConfirmationStatus = "success",
    summary: string | null = null,
    fields: Record<string, unknown> = {},
  ): Promise<Step> {
    return unattended(confirm(...this.here(), decision, status, summary, fields));
  }

  /** Records a plan, an analysis, a decision or a reflection in the decision trail; durable when it resolves. Rejects
   * with `Rejected`, or `NotAnswered` while the gateway is unreachable: then nothing is stored, and retrying with the same
   * `record_id` is safe. */
  think(kind: string, content: Content, thought: Thought = {}): Promise<RecordedThought> {
    const [line, sender] = this.here();
    return think(sender, kind, content, { session_id: line.session_id, ...thought });
  }
}

/** A session of an agent; also returned by `fork`. */
export class Session extends StepMethods {
  readonly #line: SessionBranch;
  readonly #sender: Sender;

  constructor(sender: Sender, line: SessionBranch) {
    super();
    this.#sender = sender;
    this.#line = line;
  }

  protected here(): [SessionBranch, Sender] {
    return [this.#line, this.#sender];
  }

  get session_id(): string {
    return this.#line.session_id;
  }

  get trace_id(): string {
    return this.#line.trace_id;
  }

  get tips(): readonly string[] {
    return this.#line.tips;
  }

  /** A second branch from here; its first step has the same parent as this branch's next one. */
  fork(): Session {
    return new Session(this.#sender, this.#line.fork());
  }

  /** Merges these branches: this branch's next step has all their tips as parents. */
  join(...sessions: readonly Session[]): this {
    this.#line.join(sessions.map((session) => session.#line));
    return this;
  }

  /** What another agent needs to continue from here: `other.session({ continues: … })`. Plain JSON. */
  handoff(): Handoff {
    return this.#line.handoff();
  }

  /** Prompts injected into this session since the last call, oldest first. */
  prompts(): Prompt[] {
    this.#sender.autoListen();
    return this.#sender.orders.takePrompts(this.session_id);
  }

  /** A chat's messages followed by the prompts injected into this session. */
  context<M>(messages: readonly M[]): (M | { role: "user"; content: string })[] {
    return [
      ...messages,
      ...this.prompts().map((prompt) => ({ role: "user" as const, content: prompt.text })),
    ];
  }

  /** Runs `action` in this session: in Node, steps of any agent inside belong to it. */
  run<T>(action: (session: this) => T): T {
    return this.#sender.ambient.run(this.#line, () => action(this));
  }

  /** Internal: the branch another session continues from. */
  static branchOf(session: Session): SessionBranch {
    return session.#line;
  }
}

export type Continued = Session | Handoff | Received;

/** A new session, or the continuation of another session, a handoff or a received message. */
export function openLine(continues?: Continued | null, sessionId?: string): SessionBranch {
  if (continues instanceof Session) {
    const line = Session.branchOf(continues);
    return new SessionBranch(line.shared, line.tips);
  }
  const from = continues instanceof Received ? continues.handoff() : continues;
  if (from) {
    const { trace_id, session_id, parent_step_ids } = from;
    return new SessionBranch({ trace_id, session_id, costs: new Map() }, [...parent_step_ids]);
  }
  const trace_id = newId();
  return new SessionBranch({ trace_id, session_id: sessionId ?? trace_id, costs: new Map() });
}
