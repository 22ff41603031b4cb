import { describe, expect, it } from "vitest";
import type { InfectionAnswer } from "~/protocol/openapi";
import { moments } from "./scrubMoments";

const answer = {
  steps: [
    { agent_id: "b", sequence_number: 9, at: "T9" },
    { agent_id: "a", sequence_number: 7, at: "T7" },
    { agent_id: "b", sequence_number: 5, at: "T5" },
  ],
} as unknown as InfectionAnswer;

describe("state scrub", () => {
  it("starts just before the agent received the claim and selects where it did", () => {
    const { steps, chosen } = moments(answer, "b", undefined);
    expect(steps.map((step) => step.sequence_number)).toEqual([4, 5, 9]);
    expect([steps[0]?.before, chosen]).toEqual([true, 1]);
  });

  it("selects the step in the URL, if it exists", () => {
    expect(moments(answer, "b", "9").chosen).toBe(2);
    expect(moments(answer, "b", "1000").chosen).toBe(1);
  });

  it("has no moment of an agent it never reached", () => {
    expect(moments(answer, "z", undefined)).toEqual({ steps: [], chosen: -1 });
  });
});
