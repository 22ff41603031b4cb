/**
 * What the SDK throws. A step fails only by people's orders (`Denied`, `Cancelled`), never by its telemetry; the rest
 * comes from setting up and from asking for an answer.
 */

import type { Answer } from "./client.ts";
import type { Fault } from "./protocol.ts";
import type { Step } from "./step.ts";

export class ObservatoryError extends Error {
  constructor(message?: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No gateway is known, or what is known of it cannot be used; the sentence says what to do. */
export class NotConfigured extends ObservatoryError {}

/** No verdict came in time. A message is not lost: it waits in memory or in the spool; of a thought nothing is
 * kept, and it may be thought again under its `record_id`. */
export class NotAnswered extends ObservatoryError {}

/** Memory and spool were both full when the step was taken: it was never sent and never will be. */
export class Lost extends ObservatoryError {}

/** The gateway judged this one message and refused it; sending it again would change nothing. */
export class Rejected extends ObservatoryError {
  readonly answer: Answer;
  readonly step_id: string | null;

  constructor(answer: Answer, stepId: string | null) {
    super(`${stepId ?? "raw message"} was refused with ${answer.code}: ${describe(answer)}`);
    this.answer = answer;
    this.step_id = stepId;
  }

  get code(): number {
    return this.answer.code;
  }

  get reason(): string {
    return this.answer.reason ?? "";
  }

  get detail(): string | null {
    return this.answer.detail ?? null;
  }

  get faults(): readonly Fault[] {
    return this.answer.faults ?? [];
  }
}

/**
 * What was asked for was not allowed, so it must not be done.
 *
 * `reason`: `rejected` or `expired` at the gate, the gateway's own word when it refused the message (`policy_denied`,
 * `budget_exceeded`, …), or `no_verdict` when none could be had: a gate fails closed.
 */
export class Denied extends ObservatoryError {
  readonly reason: string;
  readonly note: string | null;
  readonly by: string | null;
  readonly step: Step | null;

  constructor(
    reason: string,
    note: string | null = null,
    by: string | null = null,
    step: Step | null = null,
  ) {
    super(`denied: ${reason}${by ? ` by ${by}` : ""}${note ? ` (${note})` : ""}`);
    this.reason = reason;
    this.note = note;
    this.by = by;
    this.step = step;
  }
}

/** A person ended this agent's work on the session; or the agent was closed while a step waited. */
export class Cancelled extends ObservatoryError {
  readonly session_id: string;
  readonly reason: string;
  readonly by: string | null;

  constructor(sessionId: string, reason = "", by: string | null = null) {
    super(`session ${sessionId} was cancelled${by ? ` by ${by}` : ""}${reason ? `: ${reason}` : ""}`);
    this.session_id = sessionId;
    this.reason = reason;
    this.by = by;
  }
}

/** What is stored of a session is not what was recorded; nothing can be sealed over it. */
export class ChainBroken extends ObservatoryError {
  readonly session_id: string;
  readonly first_broken_index: number | null;

  constructor(sessionId: string, index: number | null) {
    super(`the thoughts of ${sessionId} are broken at record ${index}`);
    this.session_id = sessionId;
    this.first_broken_index = index;
  }
}

/** The refusal in one line: the reason, then what explains it. */
function describe(answer: Answer): string {
  const told = explain(answer);
  if (answer.faults?.length) return `${answer.reason} (${told})`;
  return [answer.reason, told].filter(Boolean).join(": ") || "no reason given";
}

/** Why: every fault as `path: problem`; else the cap or rule that refused it, and the gateway's words. */
export function explain(answer: Answer): string {
  if (answer.faults?.length)
    return answer.faults.map((fault) => `${fault.path}: ${fault.problem}`).join("; ");
  return [answer.cap, answer.rule_id && `rule ${answer.rule_id}`, answer.detail].filter(Boolean).join(": ");
}
