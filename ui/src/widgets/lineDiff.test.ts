// The line diff against its definition: without the added lines it is the old text, without the removed ones
// the new one.
import { describe, expect, it } from "vitest";
import { counted, folded, type Line, linesOf } from "./lineDiff";

const text = (lines: readonly Line[], not: Line["kind"]) =>
  lines
    .filter((line) => line.kind !== not)
    .map((line) => line.text)
    .join("\n");

/** A small repeatable source of texts over four words, so that many lines are equal. */
function texts(seed: number, length: number): string {
  const words = ["a", "b", "c", "d"];
  let state = seed;
  const lines: string[] = [];
  for (let n = 0; n < length; n += 1) {
    state = (state * 1103515245 + 12345) % 2147483648;
    lines.push(words[state % 4] as string);
  }
  return lines.join("\n");
}

/** Length of the longest common subsequence by the plain table: what the shortest edit must keep. */
function common(a: string[], b: string[]): number {
  const row = new Array<number>(b.length + 1).fill(0);
  for (const word of a) {
    let corner = 0;
    b.forEach((other, n) => {
      const above = row[n + 1] as number;
      row[n + 1] = word === other ? corner + 1 : Math.max(above, row[n] as number);
      corner = above;
    });
  }
  return row[b.length] as number;
}

describe("linesOf", () => {
  it("gives back both texts, with the fewest lines changed", () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const before = texts(seed, (seed * 7) % 23);
      const after = texts(seed * 31, (seed * 5) % 19);
      const lines = linesOf(before, after);
      expect(text(lines, "in")).toBe(before);
      expect(text(lines, "out")).toBe(after);
      const same = lines.filter((line) => line.kind === "same").length;
      expect(same).toBe(common(before.split("\n"), after.split("\n")));
    }
  });

  it("numbers the lines of each text from one without gaps", () => {
    const lines = linesOf("one\ntwo\nthree", "one\n2\nthree\nfour");
    expect(lines.filter((line) => line.old !== null).map((line) => line.old)).toEqual([1, 2, 3]);
    expect(lines.filter((line) => line.now !== null).map((line) => line.now)).toEqual([1, 2, 3, 4]);
    expect(counted(lines)).toEqual({ into: 2, out: 1 });
  });

  it("stays bounded on two long unrelated texts", () => {
    const before = Array.from({ length: 4_000 }, (_, n) => `old ${n}`).join("\n");
    const after = Array.from({ length: 4_000 }, (_, n) => `new ${n}`).join("\n");
    const lines = linesOf(before, after);
    expect(text(lines, "in")).toBe(before);
    expect(text(lines, "out")).toBe(after);
  });
});

describe("folded", () => {
  it("keeps three lines around a change and counts the rest", () => {
    const before = Array.from({ length: 20 }, (_, n) => `${n}`).join("\n");
    const shown = folded(linesOf(before, before.replace("\n10\n", "\nten\n")));
    expect(shown[0]).toEqual({ kind: "gap", hidden: 7 });
    expect(shown.at(-1)).toEqual({ kind: "gap", hidden: 6 });
    expect(shown.filter((line) => line.kind !== "gap")).toHaveLength(8);
  });

  it("of equal texts shows one gap only", () => {
    expect(folded(linesOf("a\nb", "a\nb"))).toEqual([{ kind: "gap", hidden: 2 }]);
  });
});
