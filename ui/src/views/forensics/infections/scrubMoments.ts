// The moments at which an agent's memory can be viewed: just before it received the claim, and each of its
// steps since. Pure.
import type { InfectionAnswer } from "~/protocol/openapi";

export interface Moment {
  sequence_number: number;
  at: string;
  before?: boolean;
}

/** `chosen` is the moment in the URL, else the first at which the agent held the claim. */
export function moments(
  answer: InfectionAnswer,
  agent: string | undefined,
  seq: string | undefined,
): { steps: Moment[]; chosen: number } {
  const mine = answer.steps
    .filter((step) => step.agent_id === agent)
    .map(({ sequence_number, at }): Moment => ({ sequence_number, at }))
    .sort((a, b) => a.sequence_number - b.sequence_number);
  const first = mine[0];
  const steps: Moment[] = first
    ? [{ sequence_number: first.sequence_number - 1, at: first.at, before: true }, ...mine]
    : [];
  const named = steps.findIndex((step) => String(step.sequence_number) === seq);
  return { steps, chosen: named >= 0 ? named : Math.min(1, steps.length - 1) };
}
