/**
 * Sessions: who said what after what.
 *
 * Law: every step names its parents. A session keeps the tip of its line of thought and moves it with each step;
 * `fork` starts a second line from the same point, `join` brings lines together, `handoff` carries a line to another
 * agent or process. Inside `session.run(…)` the words of *any* agent go on that line, where the platform can tell
 * what runs inside (Node; a browser cannot, so there say `session.step`).
 */

import { type ConfirmationStatus, confirm, decide, type Option, type Terms } from "./decisions.ts";
import { Denied } from "./errors.ts";
import {
  type Approval,
  ask,
  FORBIDDEN_AWAY,
  GATEWAY_AWAY,
  passBy,
  permit,
  type Said,
  say,
  tell,
} from "./gate.ts";
import { newId } from "./ids.ts";
import type { RecordedThought } from "./protocol.ts";
import { type Decision, type Handoff, type Prompt, Received } from "./received.ts";
import type { Speaker } from "./speaker.ts";
import { readFields, type Saying, Step, type StepFields, unknownNames, writeLog } from "./step.ts";
import { type Content, type Thought, think } from "./thoughts.ts";
import type { Patience } from "./waiting.ts";

/** What a tool that was run came to. */
const RAN = new Set(["success", "failure"]);

/** What all lines of one session have in common in this process. */
interface Shared {
  trace_id: string;
  session_id: string;
  costs: Map<string, number>; // by agent: a cumulative figure is one agent's own
}

/** One line of thought in a session. */
export class Line {
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

  fork(): Line {
    return new Line(this.shared, this.#tips);
  }

  join(lines: readonly Line[]): void {
    if (lines.some((line) => line.session_id !== this.session_id))
      throw new Error("only lines of one session can be joined; use handoff() to continue another's");
    const moved = lines.filter((line) => line.#tips !== line.#origin);
    const stood = !moved.length || !moved.some((line) => same(line.#origin, this.#tips));
    this.#tips = [...new Set([...(stood ? this.#tips : []), ...moved.flatMap((line) => line.#tips)])];
  }

  handoff(): Handoff {
    return { trace_id: this.trace_id, session_id: this.session_id, parent_step_ids: [...this.#tips] };
  }

  /** Writes one step of `speaker` at the tip of this line. */
  record(
    speaker: Speaker,
    intent: string,
    stepId: string | undefined,
    fields: Readonly<Record<string, unknown>>,
  ): Step {
    const id = stepId ?? newId();
    const step = new Step(speaker.outbox, id, this.session_id);
    const meta = {
      trace_id: this.trace_id,
      step_id: id,
      session_id: this.session_id,
      parent_step_id: this.#tips[0] ?? null,
      cluster_id: speaker.cluster,
      timestamp: "",
      ...(this.#tips.length > 1 ? { parent_step_ids: [...this.#tips] } : {}),
    };
    const total = this.#total(speaker.agent_id, fields.cost);
    const wasRun = fields.tool_call && RAN.has((fields.status as string | undefined) ?? "success");
    const isAway = wasRun && speaker.outbox.failures > 0;
    const said = isAway ? { ...fields, gateway_away: true } : fields;
    speaker.outbox.put(writeLog(meta, speaker.identity, total, intent, said), step);
    this.#tips = [id];
    if (total !== undefined) this.shared.costs.set(speaker.agent_id, total);
    return step;
  }

  /** For what is written otherwise: `say` gets the parents, and the tip moves when it was said. */
  advance(stepId: string, say: (tips: readonly string[]) => Step): Step {
    const step = say(this.#tips);
    this.#tips = [stepId];
    return step;
  }

  /** Goes on from `tips` instead, unless more was said since. */
  retreat(stepId: string, tips: readonly string[]): void {
    if (same(this.#tips, [stepId])) this.#tips = tips;
  }

  #total(agentId: string, cost: unknown): number | undefined {
    const spent = this.shared.costs.get(agentId);
    const total = typeof cost === "number" ? (spent ?? 0) + cost : Number.NaN; // not a number: the gateway will say so
    return Number.isFinite(total) ? Number(total.toFixed(10)) : spent; // no 0.30000000000000004
  }
}

const same = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((tip, n) => tip === other[n]);

/** Nobody need listen to a step's promise: one that fails unheard must not end the agent's process. */
export function unattended<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** An error's own words; one that cannot even say them is told as such. */
function described(error: unknown): string {
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

/** What agents and sessions say alike; each knows on which line, and by whom. */
export abstract class Words {
  protected abstract here(): [Line, Speaker];

  #said(intent: string, given: StepFields & Saying): Said {
    const [line, speaker] = this.here();
    const { told, unreadable } = readFields(given ?? {});
    const odd = [...unknownNames(told), ...unreadable];
    if (odd.length)
      speaker.log("warning", `${speaker.agent_id}: a step does not know ${odd.join(", ")}; said without`);
    const { step_id, timeout_s, signal, ...fields } = told;
    const patience = { timeout_s, signal } as Patience;
    return { line, speaker, intent, step_id: step_id as string | undefined, fields, patience };
  }

  /**
   * Says what was done, on this session's line; it is queued before this returns.
   *
   * The promise waits in two cases only: while the agent is known to be paused or stopped, and with `hitl_required`
   * for the verdict: `step.verdict` when approved or edited, else `Denied`, also when none came within `timeout_s`.
   * Rejects with `Cancelled` when a person ended this work.
   */
  step(intent: string, fields: StepFields & Saying = {}): Promise<Step> {
    return unattended(say(this.#said(intent, fields)));
  }

  /** Asks a person before it is done: resolves with what was approved, rejects with `Denied`. */
  ask(intent: string, fields: StepFields & Saying = {}): Promise<Approval> {
    return unattended(ask(this.#said(intent, fields)));
  }

  /** May this be done? As `ask` where a rule, a cap or `needs_approval` holds it; else at once. */
  permit(intent: string, fields: StepFields & Saying & { needs_approval?: boolean } = {}): Promise<Approval> {
    return unattended(permit(this.#said(intent, fields)));
  }

  /** Runs `act`, times it and records it as a step, failed if it throws; a paused agent waits before it. */
  async tool<T>(
    toolCall: string,
    toolInput: unknown,
    act: (call: ToolCall) => T | Promise<T>,
    { intent = `Call ${toolCall}` }: { intent?: string } = {},
  ): Promise<T> {
    const [line, speaker] = this.here();
    speaker.hear();
    await passBy(speaker, line.session_id);
    const isAway = speaker.outbox.failures > 0;
    if (isAway && speaker.on_away === "deny") throw new Denied(GATEWAY_AWAY, FORBIDDEN_AWAY, null, null);
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
      return await act(call);
    } catch (error) {
      call.fields.status = "failure";
      call.output ??= described(error);
      throw error;
    } finally {
      call.fields.duration_ms = Math.round(performance.now() - began);
      if (call.output !== null) call.fields.tool_output_summary = call.output;
      const fields = { ...call.fields };
      call.step = await tell({ line, speaker, intent, fields, patience: {} });
    }
  }

  /** Asks to be spoken to in this session after `in_s` seconds or at a time: it comes as a message (`is_reminder`,
   * `payload`) to this agent, also after a restart of either side. */
  remind(
    when: { in_s: number } | { at: Date | string },
    payload: unknown = null,
    intent = "Be reminded later",
  ): Promise<Step> {
    const asked: Record<string, unknown> = { payload };
    if ("in_s" in when) asked.delay_ms = Math.round(when.in_s * 1000);
    else asked.at = when.at instanceof Date ? when.at.toISOString() : when.at;
    return this.step(intent, { tool_call: "schedule_reminder", tool_input: asked });
  }

  /** Lets the owner choose. `default` is taken by the gateway at `deadline` (a time, or seconds from now). Rejects
   * with `Denied` when nobody chose, also within `timeout_s`. */
  decide(title: string, options: readonly Option[], terms: Terms = {}): Promise<Decision> {
    return unattended(decide(...this.here(), title, options, terms));
  }

  /** Says what came of a decision (`action_confirmation`); `fields` as on the wire. Paused or not; an agent that was
   * never connected waits for that, and rejects with `NotAnswered`. */
  confirm(
    decision: Decision | string | null,
    status: ConfirmationStatus = "success",
    summary: string | null = null,
    fields: Record<string, unknown> = {},
  ): Promise<Step> {
    return unattended(confirm(...this.here(), decision, status, summary, fields));
  }

  /** Records a plan, an analysis, a decision or a reflection in the decision trail; durable when it resolves. Rejects
   * with `Rejected`, or `NotAnswered` while the gateway is away: then nothing is kept, and thinking it again with the
   * same `record_id` is safe. */
  think(kind: string, content: Content, thought: Thought = {}): Promise<RecordedThought> {
    const [line, speaker] = this.here();
    return think(speaker, kind, content, { session_id: line.session_id, ...thought });
  }
}

/** A session as an agent sees it; also what `fork` returns. */
export class Session extends Words {
  readonly #line: Line;
  readonly #speaker: Speaker;

  constructor(speaker: Speaker, line: Line) {
    super();
    this.#speaker = speaker;
    this.#line = line;
  }

  protected here(): [Line, Speaker] {
    return [this.#line, this.#speaker];
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

  /** A second line from here; its first step has the same parent as this line's next one. */
  fork(): Session {
    return new Session(this.#speaker, this.#line.fork());
  }

  /** Brings these lines together: this line's next step has all their tips as parents. */
  join(...sessions: readonly Session[]): this {
    this.#line.join(sessions.map((session) => session.#line));
    return this;
  }

  /** What another agent needs to go on from here: `other.session({ continues: … })`. Plain JSON. */
  handoff(): Handoff {
    return this.#line.handoff();
  }

  /** What people have injected into this session since this was last asked, oldest first. */
  prompts(): Prompt[] {
    this.#speaker.hear();
    return this.#speaker.orders.takePrompts(this.session_id);
  }

  /** A chat's messages with what was injected into this session at their end. */
  context<M>(messages: readonly M[]): (M | { role: "user"; content: string })[] {
    return [
      ...messages,
      ...this.prompts().map((prompt) => ({ role: "user" as const, content: prompt.text })),
    ];
  }

  /** Runs `act` in this session: in Node the words of any agent in it belong here. */
  run<T>(act: (session: this) => T): T {
    return this.#speaker.ambient.run(this.#line, () => act(this));
  }

  /** Of the SDK: the line another session goes on from. */
  static lineOf(session: Session): Line {
    return session.#line;
  }
}

export type Continued = Session | Handoff | Received;

/** A new session, or the end of another's line to go on from; what was received is such an end. */
export function openLine(continues?: Continued | null, sessionId?: string): Line {
  if (continues instanceof Session) {
    const line = Session.lineOf(continues);
    return new Line(line.shared, line.tips);
  }
  const from = continues instanceof Received ? continues.handoff() : continues;
  if (from) {
    const { trace_id, session_id, parent_step_ids } = from;
    return new Line({ trace_id, session_id, costs: new Map() }, [...parent_step_ids]);
  }
  const trace_id = newId();
  return new Line({ trace_id, session_id: sessionId ?? trace_id, costs: new Map() });
}
