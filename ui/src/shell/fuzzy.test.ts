// Fuzzy matching.
import { describe, expect, it } from "vitest";
import { fuzzy, ranked } from "./fuzzy";

const AGENTS = [
  "researcher-beta-3",
  "researcher-gamma-2",
  "writer-1",
  "writer-12",
  "fact-checker-1",
  "code-runner-3",
];
const best = (typed: string) => ranked(typed, AGENTS, (name) => name, 3)[0];

describe("fuzzy", () => {
  it.each([
    ["rb3", "researcher-beta-3"],
    ["gamma", "researcher-gamma-2"],
    ["writer-1", "writer-1"],
    ["WRITER-12", "writer-12"],
    ["fc1", "fact-checker-1"],
    ["cr", "code-runner-3"],
    ["code 3", "code-runner-3"],
  ])("%s means %s", (typed, meant) => {
    expect(best(typed)).toBe(meant);
  });

  it("does not match scattered letters", () => {
    expect(
      fuzzy("fiscal year", "Flash note: Solden Biotech filings-alpha-2 checker-beta-1 writer-1"),
    ).toBeNull();
    expect(fuzzy("sch", "researcher-beta-3")).toBeNull();
  });

  it("does not match letters in another order", () => {
    expect(fuzzy("3b", "researcher-beta-3")).toBeNull();
    expect(ranked("zzz", AGENTS, (name) => name, 3)).toEqual([]);
  });

  it("marks the letters it found", () => {
    expect(fuzzy("wr1", "writer-1")?.marks).toEqual([0, 1, 7]);
    expect(fuzzy("rite", "writer-1")?.marks).toEqual([1, 2, 3, 4]);
  });

  it("keeps the list's own order when nothing is typed", () => {
    expect(ranked("  ", AGENTS, (name) => name, 2)).toEqual(AGENTS.slice(0, 2));
  });
});
