import { describe, expect, it } from "vitest";
import type { QuestionItem } from "~/protocol/openapi";
import { pointed, runsOf, sentenceOf, whyOf } from "./queryText";

const nothing: QuestionItem = {
  words: [],
  without: [],
  phrases: [],
  meaning: null,
  filters: [],
  since: null,
  until: null,
};

describe("the sentence of a question (S663)", () => {
  it.each([
    [{}, "hybrid", "All messages, newest first."],
    [
      { words: [["refund", "reimburse"], ["invoice"]], meaning: "refund invoice" },
      "text",
      "Messages with “refund” or “reimburse” and “invoice”; best first.",
    ],
    [
      { words: [["refund"]], meaning: "refund" },
      "hybrid",
      "Messages with “refund”, or with similar meaning; best first.",
    ],
    [{ meaning: "money back" }, "hybrid", "Messages with a meaning similar to “money back”; best first."],
    [
      {
        filters: [
          { field: "agent", op: "in", values: ["a", "b"], negated: false },
          { field: "cost", op: ">", values: [1], negated: false },
        ],
        without: ["test"],
      },
      "hybrid",
      "Messages without “test”, by a or b, cost above 1; newest first.",
    ],
  ])("%j", (query, mode, sentence) => {
    expect(sentenceOf({ ...nothing, ...(query as object) }, mode as never, "used")).toBe(sentence);
  });
});

describe("a problem (S660)", () => {
  it("stands under its characters, also behind those a browser counts twice", () => {
    const question = "🚀🚀🚀 cost:x rest";
    expect(pointed(question, { start: 4, end: 10, sentence: "no" })).toEqual({
      before: "🚀🚀🚀 ",
      bad: "cost:x",
      after: " rest",
      sentence: "no",
    });
  });
  it("is shown with its surroundings only", () => {
    const found = pointed(`${"a ".repeat(100)}cost:x`, { start: 200, end: 206, sentence: "" });
    expect(found.before.startsWith("…")).toBe(true);
    expect(found.before.length).toBeLessThan(32);
  });
});

describe("a quote (S664)", () => {
  it("is marked where the words stand", () => {
    expect(runsOf({ text: "🚀 refund now", matches: [[2, 8]] })).toEqual([
      { text: "🚀 ", marked: false },
      { text: "refund", marked: true },
      { text: " now", marked: false },
    ]);
    const hostile = runsOf({ text: `<img onerror=x> a${String.fromCharCode(0x202e)}b`, matches: [] });
    expect(hostile).toEqual([{ text: "<img onerror=x> a⟨U+202E⟩b", marked: false }]);
  });
  it("says why it is there", () => {
    const why = { text_rank: 2, semantic_rank: 5, likeness: 0.617, words: ["refund"] };
    expect(whyOf({ why }).short).toBe("“refund” ≈ 62 %");
    expect(whyOf({ why }).whole).toContain("rank 2 by words");
    const none = { text_rank: null, semantic_rank: null, likeness: null, words: [] };
    expect(whyOf({ why: none }).short).toBe("filter");
  });
});
