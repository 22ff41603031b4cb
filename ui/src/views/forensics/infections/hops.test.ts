import { describe, expect, it } from "vitest";
import type { InfectedStep, InfectionAnswer } from "~/protocol/openapi";
import { best, drawn, reached } from "./hops";

const step = (
  seq: number,
  agent: string | null,
  from: number,
  strength: "strong" | "weak" = "strong",
): InfectedStep => ({
  agent_id: agent,
  session_id: "s",
  step: `step-${seq}`,
  sequence_number: seq,
  at: new Date(Date.UTC(2026, 0, 1, 0, 0, seq)).toISOString(),
  strength,
  weight: 1,
  cost: 0,
  evidence: [
    { kind: "message", weight: 0.1, from_sequence_number: 1, from_step: null, fact_id: null },
    {
      kind: from === seq ? "source" : "declared",
      weight: 1,
      from_sequence_number: from,
      from_step: null,
      fact_id: null,
    },
  ],
});

const answer = (steps: InfectedStep[]): InfectionAnswer =>
  ({
    steps,
    source: { agent_id: "a" },
    agents: [
      { agent_id: "a", strength: "strong", sessions: ["s", "t"] },
      { agent_id: "b", strength: "strong", sessions: ["t"] },
      { agent_id: "c", strength: "weak", sessions: ["u"] },
    ],
  }) as unknown as InfectionAnswer;

describe("a spread", () => {
  const spread = answer([step(1, "a", 1), step(3, "c", 1, "weak"), step(5, "b", 1), step(11, "b", 5)]);

  it("has the source's lane first, then affected agents, then downstream ones", () => {
    expect(drawn(spread, 9, true).lanes.map((lane) => lane.agent)).toEqual(["a", "b", "c"]);
    expect(drawn(spread, 9, false).lanes.map((lane) => lane.agent)).toEqual(["a", "b"]);
  });

  it("draws each step from its source, by its best evidence", () => {
    const { dots } = drawn(spread, 9, true);
    expect(dots.map(({ x }) => x)).toEqual([0, Math.log(3) / Math.log(11), Math.log(5) / Math.log(11), 1]);
    expect(dots[0]?.from).toBeNull();
    expect(dots[2]).toMatchObject({ from: { x: 0, row: 0 }, first: true });
    expect(dots[3]).toMatchObject({ from: null, first: false });
    expect(best(step(5, "b", 1))?.kind).toBe("declared");
  });

  it("draws a readable number of lanes and counts the rest", () => {
    const few = drawn(spread, 1, true);
    expect([few.lanes.length, few.more, few.dots.length]).toEqual([1, 2, 1]);
  });

  it("of one moment does not divide by zero", () => {
    expect(drawn(answer([step(1, "a", 1)]), 9, true).dots[0]?.x).toBe(0);
    expect(drawn(answer([]), 9, true).dots).toEqual([]);
  });

  it("reaches affected agents; downstream ones are counted separately", () => {
    expect(reached(spread)).toEqual({ agents: 2, after: 1, sessions: 2 });
  });
});
