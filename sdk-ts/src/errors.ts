/**
 * Errors thrown by the SDK. A step fails only for people's orders (`Denied`, `Cancelled`), never because telemetry
 * failed; the others come from configuration and from waiting for an answer.
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

/** No usable gateway URL or key was found; the message says what to do. */
export class NotConfigured extends ObservatoryError {}

/** No answer arrived in time. A message is not lost: it stays in memory or in the spool. A thought is not stored; it
 * can be recorded again with the same `record_id`. */
export class NotAnswered extends ObservatoryError {}

/** Memory and spool were both full when the step was taken: it was never sent and never will be. */
export class Lost extends ObservatoryError {}

/** The gateway rejected this message; sending it again would give the same result. */
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
 * The action was not allowed and must not be performed.
 *
 * `reason`: `rejected` or `expired` at the gate, the gateway's reason code when it refused the message (`policy_denied`,
 * `budget_exceeded`, …), or `no_verdict` when none arrived: a gate fails closed.
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

/** A person cancelled this agent's work in the session, or the agent was closed while a step waited. */
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

/** The stored thoughts of a session are not those recorded; the session cannot be sealed. */
export class ChainBroken extends ObservatoryError {
  readonly session_id: string;
  readonly first_broken_index: number | null;

  constructor(sessionId: string, index: number | null) {
    super(`the thoughts of ${sessionId} are broken at record ${index}`);
    this.session_id = sessionId;
    this.first_broken_index = index;
  }
}

/** The refusal in one line: the reason, then the explanation. */
function describe(answer: Answer): string {
  const explanation = explain(answer);
  if (answer.faults?.length) return `${answer.reason} (${explanation})`;
  return [answer.reason, explanation].filter(Boolean).join(": ") || "no reason given";
}

/** Every fault as `path: problem`; otherwise the cap or rule that refused it, and the gateway's detail. */
export function explain(answer: Answer): string {
  if (answer.faults?.length)
    return answer.faults.map((fault) => `${fault.path}: ${fault.problem}`).join("; ");
  return [answer.cap, answer.rule_id && `rule ${answer.rule_id}`, answer.detail].filter(Boolean).join(": ");
}
