// The response of GET …/steps/{step} with typed members (the gateway's schema leaves them open), and helpers
// to read them. Pure.
import type { StepAnswer } from "~/protocol/openapi";

export interface StepReasoning {
  intent: string | null;
  chosen: string | null;
  strategy: string | null;
  confidence: number | null;
  chain: string[];
  alternatives: { option: string; why_not: string | null }[];
  citations: { uri: string; ref_type: string | null; label: string | null }[];
  reported_entropy_score: number | null;
}

export interface StepInput {
  parents: {
    id: string;
    kind: string;
    agent_id: string | null;
    sequence_number: number;
    output: string | null;
  }[];
  read_from_memory: string[];
  memory_before: { text: string; step: string }[];
  memory_count: number;
  tool_input: string | null;
}

export interface StepOutput {
  status: string | null;
  text: string | null;
  added_to_memory: string[];
  duration_ms: number | null;
  payload: unknown;
}

export interface StepHold {
  state: string;
  cause: string;
  reason: string;
  gate: "none" | "open" | "approved";
  digest: string;
  approvals: string[];
  quorum: number;
  requested_by: string | null;
  deadline: string | null;
  held_at: string;
  ended_at: string | null;
  ended_by: string | null;
}

export interface StepReview {
  verdict: "ok" | "wrong" | "unsure";
  note: string | null;
  reviewed_by: string;
  reviewed_at: string;
}

export interface StepDetails extends Omit<StepAnswer, "input" | "output" | "reasoning" | "hold" | "review"> {
  input: StepInput;
  output: StepOutput;
  reasoning: StepReasoning;
  hold: StepHold | null;
  review: StepReview | null;
}

/** Parsed JSON, or the text itself. */
export function jsonOf(text: string | null | undefined): { json: unknown } | { text: string } | null {
  if (text === null || text === undefined || text === "") return null;
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null) return { json };
  } catch {
    // not JSON: the text itself
  }
  return { text };
}

/** A link only for http and https; other schemes stay text. */
export function linkOf(uri: string): string | null {
  return /^https?:\/\//i.test(uri) ? uri : null;
}

/** A sentence to follow "because": lower-case first letter, unless its first word is in capitals. */
export function midSentence(text: string): string {
  return /^[A-Z]([a-z]|\s)/.test(text) && !/^I\b/.test(text)
    ? text.charAt(0).toLowerCase() + text.slice(1)
    : text;
}
