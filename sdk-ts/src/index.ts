/** Exports shared by both entry points (`node.ts`, `browser.ts`), besides their own `Agent`. */

export type { AgentOptions } from "./agent.ts";
export type { Answer } from "./client.ts";
export type { ConfirmationStatus, Option, Terms } from "./decisions.ts";
export type { Delivery } from "./delivery.ts";
export {
  Cancelled,
  ChainBroken,
  Denied,
  Lost,
  NotAnswered,
  NotConfigured,
  ObservatoryError,
  Rejected,
} from "./errors.ts";
export type { Approval } from "./gate.ts";
export type { Level, Log } from "./log.ts";
export type * from "./protocol.ts";
export { type Decision, type Handoff, type Prompt, Received, type Verdict } from "./received.ts";
export { Session, type ToolCall } from "./session.ts";
export { type Saying, Step, type StepFields } from "./step.ts";
export { type Content, Proof, type ProofTerms, type Thought } from "./thoughts.ts";
export type { Patience } from "./waiting.ts";
