import { describe, expect, it } from "vitest";
import { highlightBlast, highlightCauses } from "./highlight";
import { advanced, lengthOf, shownAt } from "./playback";
import { jsonOf, linkOf, midSentence } from "./stepDetails";

const LINES = ["The filing is newer.", "So I take its figure."];

describe("playing reasoning back", () => {
  it("shows nothing at first, a part in between and everything at the end", () => {
    expect(shownAt(LINES, 0)).toEqual([]);
    expect(shownAt(LINES, 3)).toEqual(["The"]);
    expect(shownAt(LINES, lengthOf(LINES))).toEqual(LINES);
  });

  it("pauses between two thoughts", () => {
    const first = LINES[0] ?? "";
    expect(shownAt(LINES, first.length + 5)).toEqual([first]);
  });

  it("only ever adds", () => {
    let before = "";
    for (let n = 0; n <= lengthOf(LINES); n += 1) {
      const now = shownAt(LINES, n).join("\n");
      expect(now.startsWith(before)).toBe(true);
      before = now;
    }
  });

  it("advances twice as far at twice the speed", () => {
    expect(advanced(10, 500, 2) - 10).toBeCloseTo(2 * (advanced(10, 500, 1) - 10));
  });
});

describe("step details", () => {
  it("parses JSON and keeps anything else as text", () => {
    expect(jsonOf('{"q": 1}')).toEqual({ json: { q: 1 } });
    expect(jsonOf("42 hits")).toEqual({ text: "42 hits" });
    expect(jsonOf("42")).toEqual({ text: "42" });
    expect(jsonOf("")).toBeNull();
    expect(jsonOf(null)).toBeNull();
  });

  it("links only to http and https", () => {
    expect(linkOf("https://example.com/10-K")).not.toBeNull();
    expect(linkOf("javascript:alert(1)")).toBeNull();
    expect(linkOf("memory://fct_1-0")).toBeNull();
  });
});

describe("a reason after because", () => {
  it.each([
    ["The parts grow.", "the parts grow."],
    ["NVDA closes in January", "NVDA closes in January"],
    ["I was asked to", "I was asked to"],
    ["too slow", "too slow"],
    ["", ""],
  ])("%s reads %s", (text, read) => {
    expect(midSentence(text)).toBe(read);
  });
});

describe("highlighted steps", () => {
  it("distinguishes the origin of a blast from what it reached", () => {
    const steps = [
      { sequence_number: 2, strength: "strong" },
      { sequence_number: 1, strength: "weak" },
    ];
    expect([...highlightBlast({ steps } as never, 1).steps]).toEqual([
      [2, "strong"],
      [1, "origin"],
    ]);
  });

  it("distinguishes a cause from the path to it", () => {
    const items = [
      { sequence_number: 1, path: [{ sequence_number: 1 }, { sequence_number: 2 }] },
      { sequence_number: 2, path: [{ sequence_number: 2 }] },
      { sequence_number: 0, path: [{ sequence_number: 0 }, { sequence_number: 5 }] },
    ];
    const lit = highlightCauses({ items } as never, 9).steps;
    expect(lit.get(2)).toBe("cause");
    expect(lit.get(5)).toBe("way");
  });
});
