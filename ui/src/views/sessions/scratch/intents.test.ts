import { describe, expect, it } from "vitest";
import { graph, graphWith } from "../dag/fixture";
import { linesOf, placeAt } from "./intents";
import { strengths } from "./useInfected";

describe("the scratchpad", () => {
  it("lists every agent's intent, oldest first, and no heartbeat", () => {
    const it = graphWith({ b: { message_type: "heartbeat" }, c: { intent: null } }, "a", "b<a", "c<b", "d<c");
    expect(linesOf(it).lines.map((line) => line.id)).toEqual(["a", "d"]);
  });

  it("keeps the newest lines and counts the rest", () => {
    const it = graph("a", "b<a", "c<b", "d<c");
    const { lines, older } = linesOf(it, { most: 2 });
    expect(lines.map((line) => line.id)).toEqual(["c", "d"]);
    expect(older).toBe(2);
  });

  it("filters by agent and by time", () => {
    const it = graphWith({ b: { agent_id: "other" } }, "a", "b<a", "c<b");
    expect(linesOf(it, { who: "other" }).lines.map((line) => line.id)).toEqual(["b"]);
    expect(linesOf(it, { at: 2 }).lines.map((line) => line.id)).toEqual(["a", "b"]);
  });
});

describe("the moment of the scrub", () => {
  const { steps } = graph("a", "b<a", "c<b");
  it.each([
    [null, 2],
    [1, 0],
    [2, 1],
    [99, 2],
    [0, 0],
  ])("%s is index %s", (at, place) => {
    expect(placeAt(steps, at)).toBe(place);
  });
});

describe("an infection by step", () => {
  it("marks the source whatever else applies to it", () => {
    const steps = [
      { sequence_number: 4, strength: "strong" },
      { sequence_number: 9, strength: "weak" },
    ];
    const map = strengths({ steps, source: { sequence_number: 4 } } as never);
    expect(map.get(4)).toBe("source");
    expect(map.get(9)).toBe("weak");
    expect(strengths(undefined).size).toBe(0);
  });
});
